"""Exports the demonstrations that a run has generated, those that are new, to a file that scenarios can name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from simengine.errors import InputError
from simengine.methods.interec import store
from simengine.methods.interec.demonstrations import Demonstrations
from simengine.methods.interec.generate import DEMONSTRATION, DIALOGUES, WAYS
from simengine.methods.interec.novelty import novel
from simengine.methods.interec.settings import InteRecSettings
from simengine.runlog import EventLine, Reader
from simengine.scenario.folder import Folder
from simengine.scenario.newfile import refuse_existing, write_lines
from simengine.scenario.schema import Scenario, read


class Way(msgspec.Struct, frozen=True):
    """What came of one way to generate: pairs asked for, generated, and exported; failures by unit and reason."""

    way: str
    asked: int
    made: int
    kept: int
    failed: dict[str, int]


def export_demonstrations(run: Path, out: Path) -> list[Way]:
    """Write the requests of a run with their plans, a line each, as far as they are new; what became of the others.

    A pair is new where its request is not nearly alike to one that the run's planner could be shown already, nor to one
    before it in the log. Talks are none of them: what is said last in a talk does not stand alone. Raises
    :class:`InputError` where the run has generated none, and where ``out`` is there.
    """
    refuse_existing(out)
    folder = Folder.of(run)
    settings = method_of(read(folder.scenario)[0], run)
    generated = [line for line in Reader(folder.events) if way_of(line)]
    pairs = [(line, pair_of(line)) for line in generated if way_of(line) != DIALOGUES]
    made = [(line, body) for line, body in pairs if body]
    if not made:
        remedy = "Name a run with a stage `demonstrate: {input_first: N, output_first: N}`."
        raise InputError("this run has generated no demonstrations", remedy=remedy, file=str(run))
    known = Demonstrations(settings.pairs).requests
    kept = [made[at] for at in novel([body["request"] for _, body in made], known)]
    write_lines(
        out, [store.line(body["request"], body["plan"], way=body["way"], event=line.event) for line, body in kept]
    )
    exported = Counter(way_of(line) for line, _ in kept)
    return [_became(way, generated, exported[way]) for way in WAYS if any(way_of(line) == way for line in generated)]


def method_of(scenario: Scenario, run: Path) -> InteRecSettings:
    """The method of a run. Raises :class:`InputError` where it makes no plans."""
    if not isinstance(scenario.method, InteRecSettings):
        remedy = "Name a run of the method interec."
        raise InputError(f"the method {scenario.method.kind} makes no plans", remedy=remedy, file=str(run))
    return scenario.method


def way_of(line: EventLine) -> str:
    """In which way an event generates a pair; empty where it does nothing of the kind."""
    way = line.kind.rpartition(".")[2]
    return way if way in WAYS else ""


def pair_of(line: EventLine) -> dict[str, Any]:
    """The pair that an event has generated, as the log tells it; empty where there is none."""
    return next((message.body for message in line.messages if message.kind == DEMONSTRATION), {})


def _became(way: str, generated: list[EventLine], kept: int) -> Way:
    lines = [line for line in generated if way_of(line) == way]
    failed = Counter(f"{unit}: {outcome}" for line in lines for unit, outcome in line.units.items() if outcome != "ok")
    return Way(way, len(lines), sum(bool(pair_of(line)) for line in lines), kept, dict(sorted(failed.items())))
