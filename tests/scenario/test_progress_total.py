"""How far a run is: of how many events, which is told before they are issued, and never fewer than are done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios
from simengine.llm.backends.refuse import Refuse
from simengine.scenario import drive
from simengine.scenario.cast import Cast
from simengine.scenario.drive import Snapshot
from simengine.scenario.setup import Setup

GROUPS = """
name: groups
seed: 5
data: {format: market, users: 6, items: 24, domains: 2, interests: 3, interactions: 7, clock: time, seed: 4}
method: {kind: agentcfpp, every: 7}
stages: [{optimize: {}}, {rank: {when: live}}]
"""
# Of the 7 interactions of 6 users each 4 are training: 24 steps, with 3 formations between them, and 6 rankings.
CASES = {
    "agentcf": (runs.SMALL, [], 24 + 8, 0),
    "planted and asked": (
        runs.SMALL,
        [
            "plant={statements: [{preference: I like theremin duets., seeds: {users: [u3]}}]}",
            "stages=[{optimize: {}}, {probe: {at: [start, end]}}]",
        ],
        1 + 24 + 2 * 8,
        0,
    ),
    "groups": (GROUPS, [], 24 + 3 + 6, 3),
    "lag": (GROUPS, ["method.lag=3"], 24 + 2 * 3 + 6, 3),
    "online": (GROUPS, ["method.online=true"], 24 + 3 + 6 + 6, 3),
}
"""Of each scenario the events that are known beforehand, and the joins that formations bring about."""


@pytest.fixture(autouse=True)
def _look_at_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "_TICK", 0)


@pytest.mark.parametrize("case", CASES)
def test_what_is_done_comes_up_to_the_total_and_never_beyond(case: str, tmp_path: Path) -> None:
    text, sets, known, joins = CASES[case]
    seen: list[Snapshot] = []
    slow = "llm.latency={median: 0.0005, sigma: 1.0, seed: 1}"
    folder = runs.run(tmp_path / "run", *sets, slow, "engine.window=8", text=text, observe=seen.append).path
    assert len(runs.events(folder)) == known + joins
    assert all(now.done <= now.total for now in seen)
    assert (seen[0].total, seen[-1].total, seen[-1].done) == (known, known + joins, known + joins)
    assert len({now.done for now in seen}) > 10


def test_what_a_resume_finds_done_counts_with_what_it_brought_about(tmp_path: Path) -> None:
    """Cut behind the first join, which counts although no event of the resume brings it about."""
    whole = runs.run(tmp_path / "run", text=GROUPS).path
    (at, *_) = [place for place, line in enumerate(runs.history(whole)) if b'"kind":"grouping.join"' in line]
    copy = runs.cut(whole, tmp_path / "copy", runs.ends(whole)[at])
    seen: list[Snapshot] = []
    asyncio.run(scenarios.resume(copy, backend=runs.no_model(), observe=seen.append))
    assert all(now.done <= now.total for now in seen)
    assert (seen[-1].done, seen[-1].total) == (36, 36)


@pytest.mark.parametrize("case", CASES)
def test_counting_leaves_the_events_as_they_are(case: str) -> None:
    text, sets, known, _ = CASES[case]
    cast = Cast(Setup.of(scenarios.read("total.yaml", sets, text)[0]), Refuse())
    source = cast.source()
    before = [event.id for event in cast.source()]
    assert cast.total() == known
    assert [event.id for event in source] == before
