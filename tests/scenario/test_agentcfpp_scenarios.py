"""The scenarios of AgentCF++ load, and a tiny cut of each runs in all its variants, with groups where it has them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios

VARIANTS = ["agentcf", "dual", "shared", "history-groups", "full"]
GROUPED = VARIANTS[2:]
UNTRAINED = "variants.rankers.stages[0].rank.rankers=[random, pop, seqsim]"
"""What the scenarios on real data tell those who have no torch to say."""


def _tiny(name: str, out: Path, *sets: str) -> tuple[Path, scenarios.ManyReport]:
    """Six users of a scenario, whose groups are formed behind every ten interactions."""
    often = [f"variants.{variant}.method.every=10" for variant in GROUPED]
    reads = scenarios.read_all(runs.ROOT / "scenarios" / f"{name}.yaml", ["data.users=6", *often, *sets])
    return asyncio.run(scenarios.run_many(reads, out=out))


def _all_variants_ran(folder: Path, report: scenarios.ManyReport, rankings: int) -> None:
    """Each variant ranked so often, and those with groups, which alone form any, showed them."""
    for variant in VARIANTS:
        assert len(runs.events(folder / variant, "ranking")) == rankings
        assert not report.variants[variant].failures
        formed = runs.events(folder / variant, "grouping.form")
        views = [m for event in runs.events(folder / variant) for m in event.get("messages", []) if m["kind"] == "view"]
        assert (bool(formed), bool(views)) == (variant in GROUPED, variant in GROUPED), variant
    assert {row.n for row in report.results()} == {6}


@pytest.mark.parametrize("name", ["agentcfpp-market", "agentcfpp-null-market"])
def test_a_tiny_market_runs(name: str, tmp_path: Path) -> None:
    folder, report = _tiny(name, tmp_path / "runs")
    assert list(report.variants) == VARIANTS
    _all_variants_ran(folder, report, rankings=6)


@pytest.mark.parametrize(
    ("name", "data", "domains", "cases"),
    [
        ("agentcfpp-amazon", "amazon2023-multidomain", "Electronics, Tools_and_Home_Improvement, Toys_and_Games", 6),
        ("agentcfpp-arts-office", "arts-office-crossdomain", "Office, Arts", 9),
    ],
)
def test_a_tiny_cut_of_real_data_runs(
    name: str, data: str, domains: str, cases: int, real_data: Path, tmp_path: Path
) -> None:
    """Domains are a parameter. Each case is ranked five times, with other negatives each time; LLMRank stands once."""
    folder, report = _tiny(
        name, tmp_path / "runs", f"data.path={real_data / data}", f"data.domains=[{domains}]", UNTRAINED
    )
    assert list(report.variants) == ["rankers", *VARIANTS]
    _all_variants_ran(folder, report, rankings=5 * cases)
    named = [row.ranker for row in report.results() if (row.metric, row.k) == ("ndcg", 10)]
    assert sorted(named) == sorted(
        ["random", "pop", "seqsim", "rankers: LLMRank", "agentcf: agentcf B"]
        + [f"{variant}: agentcfpp B" for variant in VARIANTS[1:]]
    )


@pytest.mark.parametrize(
    ("name", "data", "users", "kept"),
    [
        ("agentcfpp-amazon", "amazon2023-multidomain", 100, 85),
        ("agentcfpp-arts-office", "arts-office-crossdomain", 50, 50),
    ],
)
def test_a_few_dozen_users_are_kept_and_candidates_are_of_the_targets_domain(
    name: str, data: str, users: int, kept: int, real_data: Path
) -> None:
    """Amazon's has 86 users with ten ratings of 4 or 5, all in several domains; one is lost with Baby_Products. Of Arts
    and Office so many as are asked for are there."""
    reads = scenarios.read_all(
        runs.ROOT / "scenarios" / f"{name}.yaml", [f"data.path={real_data / data}", f"data.users={users}"]
    )
    dataset = scenarios.Setup.of(reads["full"][0]).dataset
    assert len(dataset.users) == len({case.user for case in dataset.cases}) == kept
    for user, taken in dataset.own.items():
        assert len({dataset.items[item].domain for item in taken}) > 1, user
    for case in dataset.cases:
        assert len(case.candidates or ()) == 10
        assert len({dataset.items[item].domain for item in case.candidates or ()}) == 1
