"""What the command trace tells of a talk: who said what, how each answer came about, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from simengine.cli import told, work
from simengine.cli.stories import find_agent
from simengine.errors import InputError
from simengine.runlog import EventLine
from simengine.runlog.trace import Trace
from simengine.scenario.attempts import attempts

VENUE = "venue:"
_END = "end"


def of_talk(traced: Trace, name: str) -> Iterator[told.Part]:
    """Each event of the talks at a venue, or of an agent. Raises :class:`InputError` where there is none."""
    agent = find_agent(traced, name)
    events = [line for line in traced if agent in _parties(line) and _venue(line)]
    if not events:
        talkers = dict.fromkeys(_venue(line) for line in traced if _venue(line))
        known = ", ".join([*talkers][:5]) or "none: no stage of this run has talks"
        raise InputError("there is no talk of this agent", remedy=f"talks take place at {known}", value=name)
    for line in events:
        yield told.Part(line, _lines(line))


def _parties(line: EventLine) -> set[str]:
    return {end for said in line.messages for end in (said.sender, said.recipient)}


def _venue(line: EventLine) -> str:
    """Where the talk of an event takes place; empty where nobody talks in it."""
    ends = (end for said in line.messages if _spoken(said.body) for end in (said.recipient, said.sender))
    return next((end for end in ends if end.startswith(VENUE)), "")


def _spoken(body: object) -> bool:
    return isinstance(body, dict) and isinstance(body.get("text"), str)


def _lines(line: EventLine) -> Iterator[Text]:
    yield Text.assemble((_venue(line), "bold"), f"  {line.event}, time {line.time}")
    worked = attempts(line.messages)
    for said in line.messages:
        if _spoken(said.body) and said.kind != "reply":
            yield Text.assemble((f"  {said.sender}: ", "cyan"), said.body["text"])
    yield from work.lines(worked)
    for said in line.messages:
        if said.kind == _END:
            yield Text(f"  end: {said.body.get('how', '')}", style="bold")
    for unit, outcome in line.units.items():
        if outcome != "ok":
            yield Text(f"  failed: {unit or 'the event'}: {outcome}", style="red")
