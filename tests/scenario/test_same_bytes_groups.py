"""Groups that are formed again and again have one history too: whatever runs side by side, cut, replayed or forked."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import pytest
import runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simengine import scenario as scenarios

MARKET = "{format: market, users: 6, items: 24, domains: 2, interests: 3, interactions: 7, seed: 4}"
TEXT = f"""
name: groups
seed: 5
data: {MARKET}
method: {{kind: agentcfpp, every: 7}}
stages: [{{optimize: {{}}}}, {{rank: {{}}}}]
"""
MODES = {
    "at once": [],
    "lag": ["method.lag=5"],
    "period": ["method.every=1 step"],
    "history": ["method.groups_by=history", "method.kept=2", "method.lag=3"],
    "single": ["method.dual=false"],
    "two rounds": ["method.rounds=2"],
    "live": [
        "method.online=true",
        "stages=[{optimize: {}}, {rank: {when: live}}]",
        f"data={MARKET[:-1]}, clock: time}}",
    ],
    "published": ["engine.visibility.items=every 2 steps", "engine.visibility.users=every 5 events"],
    "batch": ["engine.schedule={batch: 5}"],
}
every_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each mode with one call and one event at a time."""
    folder = tmp_path_factory.mktemp("serial")
    alone = ["llm.limits.concurrency=1", "engine.window=1"]
    return {mode: runs.run(folder / mode, *sets, *alone, text=TEXT).path for mode, sets in MODES.items()}


def test_the_modes_differ_and_each_forms_groups_several_times(serial: dict[str, Path]) -> None:
    assert len({json.dumps(runs.events(path)) for path in serial.values()}) == len(MODES)
    assert all(len(runs.events(path, "grouping.join")) >= 3 for path in serial.values())
    views = [message for path in serial.values() for event in runs.events(path) for message in event.get("messages", ())
             if message["kind"] == "view"]  # fmt: skip
    assert len(views) > 100


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mode=st.sampled_from(list(MODES)),
    concurrency=st.sampled_from([1, 2, 5, 64]),
    window=st.sampled_from([1, 2, 3, 8, 4096]),
    latency=st.integers(0, 1000),
)
def test_concurrency_latency_and_window_change_nothing(
    mode: str,
    concurrency: int,
    window: int,
    latency: int,
    serial: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    shape = [
        f"llm.limits.concurrency={concurrency}",
        f"engine.window={window}",
        f"llm.latency={{median: 0.0005, sigma: 1.5, seed: {latency}}}",
    ]
    found = runs.run(tmp_path_factory.mktemp("run") / "run", *MODES[mode], *shape, text=TEXT)
    assert runs.history(found.path) == runs.history(serial[mode])


@every_mode
def test_a_replay_has_the_same_history(mode: str, serial: dict[str, Path]) -> None:
    assert runs.replay(serial[mode]).hash == runs.report(serial[mode]).hash


@every_mode
def test_a_run_cut_round_its_formations_grows_to_the_same_history(
    mode: str, serial: dict[str, Path], tmp_path: Path
) -> None:
    """Cut before and behind each event of a formation, where children wait to be issued, and inside of it."""
    whole = serial[mode]
    ends = runs.ends(whole)
    places = [at for at, line in enumerate(runs.history(whole)) if b'"kind":"grouping' in line]
    assert places
    for number, at in enumerate(itertools.chain(places, (place - 1 for place in places))):
        copy = runs.cut(whole, tmp_path / str(number), ends[at] + (9 if number % 2 else 0))
        runs.resume(copy, backend=runs.no_model())
        assert runs.history(copy) == runs.history(whole)


def test_a_fork_from_before_a_formation_keeps_what_comes_before(serial: dict[str, Path], tmp_path: Path) -> None:
    """Kept to one group from the second formation on: all before it is as it was, and the groups behind it are not."""
    whole = serial["at once"]
    at = "grouping.form/2"
    forked = asyncio.run(scenarios.fork(whole, ["method.kept=1"], at=at, out=tmp_path / "fork"))
    ours, theirs = runs.events(whole), runs.events(forked.path)
    place = next(number for number, event in enumerate(ours) if event["event"] == at)
    assert ours[:place] == theirs[:place]
    groups = next(memory["value"] for memory in theirs[place]["memories"] if memory["slot"] == "groups")
    assert len(groups) == 1
    assert runs.replay(forked.path).hash == forked.report.hash
