"""Says what a scenario would run, without running it."""

from __future__ import annotations

import msgspec

from simengine.llm.backends.refuse import Refuse
from simengine.scenario.cast import Cast
from simengine.scenario.dependencies import Dependencies, find_dependencies
from simengine.scenario.schema import Scenario
from simengine.scenario.setup import Setup


class PlannedStage(msgspec.Struct, frozen=True):
    """A stage: its events, and the fewest and most calls that it asks of a model when every reply can be read."""

    name: str
    events: int
    least_calls: int
    most_calls: int


class Plan(msgspec.Struct, frozen=True):
    """What a scenario would run."""

    name: str
    users: int
    items: int
    interactions: int
    stages: list[PlannedStage]
    notes: list[str]
    dependencies: Dependencies | None


def plan(scenario: Scenario, *, dependencies: bool = False) -> Plan:
    """Load the data, make every event, and count. Raises :class:`~simengine.errors.InputError`."""
    setup = Setup.of(scenario)
    setup.check()
    cast = Cast(setup, Refuse())
    stages, found = [], None
    for placed in setup.stages():
        events = list(cast.events(placed))
        if dependencies and placed.kind == "optimize" and found is None:
            found = find_dependencies(events)
        calls = [cast.calls[event.kind] for event in events]
        least, most = sum(low for low, _ in calls), sum(high for _, high in calls)
        stages.append(PlannedStage(placed.name, len(events), least, most))
    data = setup.dataset
    return Plan(scenario.name, len(data.users), len(data.items), len(data.train), stages, list(data.notes), found)
