"""The ready scenarios of AgentCF's own analyses: its parts taken out, bias, reflection. They run on any data."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios
from simengine.measure import Result

SCENARIOS = runs.ROOT / "scenarios"
MARKET = "data={format: market, users: 8, items: 60, interests: 4, interactions: 6, seed: 2}"


def results(name: str, out: Path, *sets: str) -> list[Result]:
    """What a scenario file reports, run with all its variants."""
    reads = scenarios.read_all(SCENARIOS / f"{name}.yaml", sets)
    if list(reads) == [""]:
        return list(asyncio.run(scenarios.run(*reads[""], out=out)).report.results)
    return asyncio.run(scenarios.run_many(reads, out=out))[1].results()


def test_table_3_has_a_row_for_agentcf_without_each_part(tmp_path: Path) -> None:
    found = results("agentcf-table3", tmp_path / "run", MARKET)
    parts = ("full", "no-autonomous", "no-user", "no-item")
    assert list(dict.fromkeys(row.ranker for row in found)) == [
        "random",
        "pop",
        *(f"{part}: agentcf B" for part in parts),
    ]
    calls = {part: runs.report(tmp_path / "run" / part).costs.calls for part in parts}
    assert all(calls["full"][task] for task in ("choose", "reflect.user", "reflect.item"))
    for part, task in (("no-autonomous", "choose"), ("no-user", "reflect.user"), ("no-item", "reflect.item")):
        assert calls[part].keys() == calls["full"].keys() - {task}


def test_the_study_of_bias_has_both_conditions_and_four_rankers(tmp_path: Path) -> None:
    found = results("agentcf-bias", tmp_path / "run", MARKET)
    rows = {(row.stage, row.ranker, row.group): row for row in found if row.metric == "sensitivity"}
    assert list(rows) == [
        (stage, ranker, contrast)
        for stage, contrast in (("bias", "first less last half"), ("bias-2", "rare less popular"))
        for ranker in ("pop", "bm25", "agentcf B", "LLMRank")
    ]
    assert rows["bias", "bm25", "first less last half"].value == 0, "who does not see the order is not moved by it"
    assert sorted(path.name for path in (tmp_path / "run").glob("*.png")) == ["bias-2.png", "bias.png"]


def test_the_study_of_reflection_has_a_row_for_each_step(tmp_path: Path) -> None:
    found = results("agentcf-reflection", tmp_path / "run", MARKET)
    gains = {row.group: row for row in found if row.metric == "gain"}
    assert list(gains) == ["step 1", "step 2", "step 3", "all steps"]
    assert gains["all steps"].low > 0, "the rules learn what they were told"
    assert (tmp_path / "run" / "optimize.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agentcf-table3", "agentcf-bias", "agentcf-reflection"])
def test_on_the_papers_data_each_takes_less_than_two_minutes(name: str, real_data: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    found = results(name, tmp_path / "run", f"data.path={real_data / 'agentcf-cds-dense'}")
    assert time.monotonic() - began < 120
    assert {row.n for row in found} == {100}
