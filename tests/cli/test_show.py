"""What is printed can be read in eighty columns and in a file, and says what it was given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console

from simengine.cli import beside, show
from simengine.errors import InputError
from simengine.measure.compare import Paired
from simengine.scenario.check import Plan, PlannedStage
from simengine.scenario.estimate import Estimate, TaskEstimate
from simengine.scenario.versus import Versus


@dataclass
class Value:
    stage: str
    ranker: str
    metric: str
    k: int | None
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 100
    repeats: int = 1
    group: str = ""


def piped(width: int = 80) -> Console:
    return Console(file=StringIO(), width=width)


def terminal() -> Console:
    return Console(file=StringIO(), width=80, force_terminal=True, color_system=None)


def text(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def lines(console: Console) -> list[str]:
    return [line.rstrip() for line in text(console).splitlines() if line.strip()]


def test_a_table_has_a_row_for_each_ranker_and_a_column_for_each_metric() -> None:
    console = piped()
    results = [
        Value("rank", "agentcf B", "NDCG", 1, 0.21875, 0.1, 0.30004, repeats=5),
        Value("rank", "agentcf B", "MRR", None, 0.4, 0.35, 0.45, n=98, repeats=5),
        Value("rank", "pop", "NDCG", 1, 0.125),
        Value("after", "pop", "Hit", 10, None),
    ]
    show.results_table(results, console)
    shown = lines(console)
    assert shown[0] == "Stage rank"
    assert shown[1].split() == ["ranker", "n", "NDCG@1", "MRR"]
    assert shown[3].split() == ["agentcf", "B", "98-100", "x", "5", "0.2188", "0.4000"]
    assert shown[4].split() == ["[0.1000,", "0.3000]", "[0.3500,", "0.4500]"]
    assert shown[5].split() == ["pop", "100", "0.1250", "-"]
    assert shown[6] == "Stage after"
    assert shown[9].split() == ["pop", "100", "n/a"]
    assert "\x1b" not in text(console)


def test_a_ranker_has_a_row_for_each_condition_and_its_contrast_a_table_of_its_own() -> None:
    """Conditions come from the log one after the other; they are read ranker by ranker."""
    console = piped()
    results = [
        Value("bias", ranker, "ndcg", 10, value, group=group)
        for group, value in (("rare", 0.75), ("popular", 0.25))
        for ranker in ("pop", "agentcf B")
    ]
    contrast = [
        Value("bias", name, "sensitivity", 10, 0.5, 0.25, 0.75, group="rare less popular") for name in ("pop", "x")
    ]
    show.results_table([*results, *contrast], console)
    assert [line.split() for line in lines(console)] == [
        ["Stage", "bias"],
        ["ranker", "condition", "n", "ndcg@10"],
        ["─" * len(lines(console)[2])],
        ["pop", "rare", "100", "0.7500"],
        ["popular", "100", "0.2500"],
        ["agentcf", "B", "rare", "100", "0.7500"],
        ["popular", "100", "0.2500"],
        ["Stage", "bias"],
        ["ranker", "condition", "n", "sensitivity@10"],
        ["─" * len(lines(console)[9])],
        ["pop", "rare", "less", "popular", "100", "0.5000"],
        ["[0.2500,", "0.7500]"],
        ["x", "rare", "less", "popular", "100", "0.5000"],
        ["[0.2500,", "0.7500]"],
    ]


def test_rows_that_share_a_metric_share_a_table() -> None:
    console = piped()
    results = [Value("s", "a", "ndcg", 1, 0.5, group="x"), Value("s", "b", "mrr", None, 0.25)]
    show.results_table([*results, Value("s", "b", "ndcg", 1, 0.125)], console)
    assert [line.split() for line in lines(console)[3:]] == [
        ["a", "x", "100", "0.5000", "-"],
        ["b", "100", "0.1250", "0.2500"],
    ]


def _wide() -> list[Value]:
    rankers = ["LLMSeqSim", "a ranker with quite a long name of its own"]
    metrics = [(metric, k) for metric in ("NDCG", "Hit") for k in (1, 5, 10, 100)]
    return [
        Value("rank", ranker, metric, k, k / 1000, -k / 900, k / 800, n=1000, repeats=5)
        for ranker in rankers
        for metric, k in metrics
    ]


@pytest.mark.parametrize("console", [piped(), terminal(), piped(200)])
def test_a_wide_table_goes_on_below_and_nothing_is_cut(console: Console) -> None:
    results = _wide()
    show.results_table(results, console)
    shown = text(console)
    assert max(map(len, shown.splitlines())) <= console.width
    for result in results:
        assert f"{result.metric}@{result.k}" in shown
        assert f"[{result.low:.4f}, {result.high:.4f}]" in shown
    assert "…" not in shown
    assert shown.count("Stage rank") == (1 if console.width == 200 else 4)


def test_brackets_in_names_are_no_markup() -> None:
    console = piped()
    show.results_table([Value("s[/b]", "[red]x[/]", "NDCG[k]", 1, 0.5)], console)
    show.failures({"[bold]odd[/]": 1}, console)
    show.error(InputError("no [/such] thing", remedy="See stages[1].rank.k[0]."), console)
    shown = text(console)
    for name in ("s[/b]", "[red]x[/]", "NDCG[k]@1", "[bold]odd[/]", "no [/such] thing\n  See stages[1].rank.k[0].\n"):
        assert name in shown


def test_nothing_to_show_is_said() -> None:
    console = piped()
    show.results_table([], console)
    show.failures({"refusal": 0}, console)
    assert lines(console) == ["No results.", "Failures: none"]


def test_failures_are_counted_by_reason_the_commonest_first() -> None:
    console = piped()
    show.failures({"refusal": 2, "content filter": 12, "ambiguous": 2, "parse": 0}, console)
    assert [line.split() for line in lines(console)[3:]] == [
        ["content", "filter", "12"],
        ["ambiguous", "2"],
        ["refusal", "2"],
    ]


def test_skipped_cases_are_no_failures() -> None:
    console = piped()
    show.failures({}, console)
    show.skipped({"rank": {"agentcf B: refusal": 2}, "rank-2": {"agentcf B: parse": 3}}, console)
    shown = [line.split() for line in lines(console)]
    assert shown[:3] == [["Failures:", "none"], ["Skipped", "test", "cases"], ["reason", "count"]]
    assert shown[4:] == [["rank-2:", "agentcf", "B:", "parse", "3"], ["rank:", "agentcf", "B:", "refusal", "2"]]
    silent = piped()
    show.skipped({}, silent)
    assert text(silent) == ""


def test_an_error_goes_to_stderr_whole_and_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "expected one of " + ", ".join(f"choice {number}" for number in range(30))
    show.error(InputError(problem, remedy="Choose one.", file="s.yaml", line=3, column=7, field="llm.backend"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"Error: s.yaml:3:7, field llm.backend: {problem}\n  Choose one.\n"


def test_differences_of_variants_are_whole_in_eighty_columns() -> None:
    """Five metrics with intervals do not fit beside a long name: the last ones stand in a table of their own."""
    console = piped()
    metrics = [("hit", 5), ("at", 5), ("text hit", 5), ("text at", 5), ("calls per turn", None)]
    rows = [
        Versus("talk", "x", "full", name, [Paired(metric, k, 1, 0, -1.25, -1.5, 0.75, 10) for metric, k in metrics])
        for name in ("no-demonstrations", "bare")
    ]
    beside.versus(rows, console)
    shown = text(console)
    assert max(map(len, lines(console))) <= 80
    assert "…" not in shown
    assert shown.count("[-1.5000, +0.7500]") == shown.count("-1.2500") == 10
    title = "Stage talk, x: less the variant full, over the users of both"
    assert (
        shown.count(title) == shown.count("no-demonstrations") == len(re.findall(r"^ +variant +n ", shown, re.M)) == 3
    )


def test_an_estimate_names_its_tasks_whole_in_eighty_columns() -> None:
    console = piped()
    plan = Plan("s", 1, 1, 0, [PlannedStage("converse", 1, 1, 9)], [], None)
    tasks = [TaskEstimate("converse", "converse.critic", "", 49, 51230, 766, None)]
    show.estimated(Estimate(plan, tasks, 1, 0, [""], []), console)
    assert "converse   converse.critic   -          49    51230          766     -" in lines(console)
