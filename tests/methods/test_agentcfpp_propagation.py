"""What is planted in users with two layers of memory: where it stands, whom it reaches, and what a run will cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios
from simengine.scenario.estimate import estimate
from simengine.scenario.propagation import measure_spread, pairs

TEXT = """
name: layers
seed: 5
data: {format: market, users: 8, items: 30, domains: 2, interests: 3, interactions: 8, seed: 4}
method: {kind: agentcfpp, every: 9, item_words: 60}
plant: {statements: [{preference: I like theremin duets., seeds: {users: [u3]}}]}
stages: [{optimize: {}}, {probe: {at: [start, end]}}]
"""


def test_what_is_planted_stands_first_in_every_memory(tmp_path: Path) -> None:
    folder = runs.run(tmp_path / "run", text=TEXT).path
    (planted,) = runs.events(folder, "plant")
    assert {memory["slot"]: memory["value"] for memory in planted["memories"]} == dict.fromkeys(
        ["separate:album", "fused:album", "separate:film", "fused:film", "self"], "I like theremin duets."
    )
    holds = {
        (event["data"]["user"], event["data"]["at"]): message["body"]["holds"]
        for event in runs.events(folder, "probe.ask")
        for message in event["messages"]
    }
    assert [user for (user, at), yes in holds.items() if at == "start" and yes] == ["u3"]
    assert holds["u3", "end"]


def test_what_is_planted_reaches_others_and_nobody_whom_nothing_leads_to(tmp_path: Path) -> None:
    treatment = runs.run(tmp_path / "treatment", text=TEXT)
    control = asyncio.run(scenarios.fork(treatment.path, ["plant.enabled=false"], out=tmp_path / "control"))
    spread = asyncio.run(measure_spread(pairs([treatment.path], control.path)))
    assert spread.outside == ()
    assert spread.false_positives == ()
    holders = {
        memory["agent"]
        for event in runs.events(treatment.path)
        for memory in event.get("memories", ())
        if "theremin duets" in str(memory["value"])
    }
    assert any(agent.startswith("item:") for agent in holders)
    assert {agent for agent in holders if agent.startswith("user:")} > {"user:u3"}


@pytest.mark.parametrize("more", [[], ["method.dual=false"], ["method.groups_by=history"]])
def test_what_a_run_will_cost_is_told_beforehand(more: list[str], tmp_path: Path) -> None:
    found = estimate(scenarios.read("layers.yaml", more, TEXT)[0])
    assert found.sampled == sum(stage.events for stage in found.plan.stages)
    calls: Counter[str] = Counter()
    for task in found.tasks:
        calls[task.task] += round(task.calls)
    made = {
        name: count
        for name, count in runs.run(tmp_path / "run", *more, text=TEXT).report.costs.calls.items()
        if name != "cluster"
    }
    # clusters are not looked for in an estimate, so that groups and their views are not quite those of the run
    named = calls.pop("group.name", 0), made.get("group.name", 0)
    least, most = found.calls
    assert least <= sum(made.values()) <= most
    made.pop("group.name", None)
    assert calls == pytest.approx(made, rel=0.15)
    assert named[0] >= named[1]
