"""Planting a preference and probing for it: who is given it, when, and that nothing else is touched."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.errors import InputError
from simengine.llm.backends.scripted import Scripted
from simengine.testing import MethodContract

PHRASE = "harpsichord lullabies"
PLANT = f"plant={{statements: [{{preference: I like {PHRASE}., seeds: {{users: [u3]}}}}]}}"
PROBE = "stages=[{optimize: {}}, {probe: {at: [start, 2, end]}}]"
WITHOUT = "stages=[{optimize: {}}]"


def memories(folder: Path, agent: str) -> list[str]:
    """What an agent's short-term memory was, version by version."""
    found = [version for event in runs.events(folder) for version in event.get("memories", [])]
    return [version["value"] for version in found if (version["agent"], version["slot"]) == (agent, "short")]


def answers(folder: Path) -> dict[tuple[str, Any], bool]:
    """What each user answered, by user and time."""
    return {
        (event["data"]["user"], event["data"]["at"]): event["messages"][0]["body"]["holds"]
        for event in runs.events(folder, "probe.ask")
    }


def test_the_statement_stands_first_and_what_was_there_behind_it(tmp_path: Path) -> None:
    runs.run(tmp_path / "run", PLANT, WITHOUT)
    first = runs.events(tmp_path / "run")[0]
    assert (first["event"], first["kind"]) == ("plant/0/u3", "plant")
    assert memories(tmp_path / "run", "user:u3")[0].splitlines() == [
        f"I like {PHRASE}.",
        "I like albums and am curious about new ones.",
    ]


def test_a_planting_at_a_time_stands_before_the_interactions_of_that_time(tmp_path: Path) -> None:
    runs.run(tmp_path / "run", PLANT, WITHOUT)
    times = sorted({event["time"] for event in runs.events(tmp_path / "run", "interaction")})
    at = times[len(times) // 2]
    runs.run(tmp_path / "later", PLANT, WITHOUT, f"plant.statements[0].at={at}")
    order = [event["event"] for event in runs.events(tmp_path / "later")]
    place = order.index("plant/0/u3")
    found = {event["event"]: event["time"] for event in runs.events(tmp_path / "later")}
    assert all(found[name] < at for name in order[:place])
    assert all(found[name] >= at for name in order[place:])


@pytest.mark.parametrize(("seeds", "count"), [("{most_active: 3}", 3), ("{random: 4}", 4), ("{users: [u1, u2]}", 2)])
def test_seeds_by_rule(tmp_path: Path, seeds: str, count: int) -> None:
    runs.run(tmp_path / "run", PLANT, WITHOUT, f"plant.statements[0].seeds={seeds}")
    planted = runs.events(tmp_path / "run", "plant")
    assert len({event["data"]["user"] for event in planted}) == count
    if "most" in seeds:
        taken = Counter(event["data"]["user"] for event in runs.events(tmp_path / "run", "interaction"))
        least = min(taken[event["data"]["user"]] for event in planted)
        assert all(taken[name] <= least for name in taken.keys() - {event["data"]["user"] for event in planted})


def test_who_holds_it_says_so_and_the_control_does_not(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run", PLANT, PROBE)
    held = answers(whole.path)
    assert {user for (user, at), holds in held.items() if at == "start" and holds} == {"u3"}
    assert sum(holds for (_, at), holds in held.items() if at == "end") > 1
    control = asyncio.run(scenarios.fork(whole.path, ["plant.enabled=false"], out=tmp_path / "control"))
    assert not any(answers(control.path).values())


def test_a_probe_changes_no_other_event(tmp_path: Path) -> None:
    runs.run(tmp_path / "with", PLANT, PROBE)
    runs.run(tmp_path / "without", PLANT, WITHOUT)
    left = [event for event in runs.events(tmp_path / "with") if event["kind"] != "probe.ask"]
    assert left == runs.events(tmp_path / "without")


def test_the_control_differs_by_the_planting_alone(tmp_path: Path) -> None:
    runs.run(tmp_path / "never", WITHOUT)
    runs.run(tmp_path / "off", PLANT, WITHOUT, "plant.enabled=false")
    assert runs.events(tmp_path / "never") == runs.events(tmp_path / "off")


@pytest.mark.parametrize(
    ("seeds", "problem"),
    [
        ("{users: [nobody]}", "there is no such user"),
        ("{users: [u3, u1, u3]}", "u3: this user is named twice"),
        ("{random: 9}", "more seeds are asked for"),
        ("{random: 1, most_active: 1}", "say one of"),
        ("{}", "say one of"),
    ],
)
def test_seeds_that_cannot_be_are_refused_before_the_run(tmp_path: Path, seeds: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        runs.run(tmp_path / "run", PLANT, WITHOUT, f"plant.statements[0].seeds={seeds}")
    assert not (tmp_path / "run" / "events.jsonl").exists()


class TestPlantingKeepsTheContract(MethodContract):
    scenario = runs.SMALL.replace("  - rank: {}\n", "  - probe: {at: [start, 2, end]}\n") + (
        f"plant: {{statements: [{{preference: I like {PHRASE}., seeds: {{random: 2}}}}]}}\n"
    )

    def test_garbage_crashes_nothing_and_changes_no_memory(self, tmp_path: Path) -> None:
        """What is planted is no model's answer, and stays whatever the model says."""
        finished = self._run(tmp_path / "run", Scripted(lambda _: "???"))
        assert finished.report.failures
        changed = [event for event in runs.events(finished.path) if event.get("memories")]
        assert [event["kind"] for event in changed] == ["plant", "plant"]
