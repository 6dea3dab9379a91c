"""Says what a scenario would run, without running it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import msgspec

from simengine import llm
from simengine.errors import InputError
from simengine.llm.backends.refuse import Refuse
from simengine.scenario.cast import Cast
from simengine.scenario.dependencies import Dependencies, find_dependencies
from simengine.scenario.person import with_person
from simengine.scenario.schema import Scenario
from simengine.scenario.setup import Setup


class PlannedStage(msgspec.Struct, frozen=True):
    """A stage: its events, and the fewest and most calls that it asks of a model when every reply can be read."""

    name: str
    events: int
    least_calls: int
    most_calls: int


class Plan(msgspec.Struct, frozen=True):
    """What a scenario would run. ``notes`` say what the data are like, and what a run would lack here and now."""

    name: str
    users: int
    items: int
    interactions: int
    stages: list[PlannedStage]
    notes: list[str]
    dependencies: Dependencies | None


def plan(scenario: Scenario, *, dependencies: bool = False, environ: Mapping[str, str] = os.environ) -> Plan:
    """Load the data, make every event, and count. Raises :class:`~simengine.errors.InputError`."""
    setup = Setup.of(scenario)
    setup.check()
    cast = Cast(setup, Refuse())
    stages, found = [], None
    for placed in setup.stages():
        events = list(cast.events(placed))
        if dependencies and placed.kind == "optimize" and found is None:
            found = find_dependencies(events, setup.rules.batch)
        calls = [cast.calls[event.kind] for event in events]
        least, most = sum(low for low, _ in calls), sum(high for _, high in calls)
        stages.append(PlannedStage(placed.name, len(events), least, most))
    data = setup.dataset
    notes = [*data.notes, *_lacking(scenario, environ)]
    if dependencies and found is None:
        notes.append("no stage `optimize` re-enacts interactions, so there are no dependencies between them to tell")
    if any(placed.kind == "converse" for placed in setup.stages()):
        notes.append("a talk is counted as one event here; in the run each of its turns is one")
    if found is not None and setup.rules.periods:
        notes.append("the dependencies are those of latest reads: engine.visibility lets more run side by side")
    return Plan(scenario.name, len(data.users), len(data.items), len(data.train), stages, notes, found)


def _lacking(scenario: Scenario, environ: Mapping[str, str]) -> Iterator[str]:
    """What a run could not begin without, such as a variable that is not set: a plan asks nobody, and needs none."""
    try:
        llm.make_backend(scenario.llm, environ)
    except InputError as error:
        told = str(error).replace("\n  ", "; ")
        yield f"a run could not begin: {told}"
    if with_person(scenario):
        yield "a person speaks in the stage `chat`: `simengine chat` runs this scenario, `simengine run` does not"
