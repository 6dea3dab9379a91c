"""What a log tells of one agent beside its memories: who read them, who wrote into them, what it held at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from simengine.errors import InputError
from simengine.runlog.records import EventLine
from simengine.runlog.trace import Record, Trace, records

CHOICE = "choice"
"""The kind of the messages in which a user says what it takes, and why."""


class Reading(msgspec.Struct, frozen=True):
    """An event in which a memory version was read, by whom, and how it came to be shown.

    ``how`` is the kind of the edge between the two in the event (``interaction``, ``exposure``), else that of another
    edge of the agent in it, else the event's kind.
    """

    event: str
    time: int | float
    by: str
    how: str


class AsOf(NamedTuple):
    """What an agent knew at a time: the last version of each slot, and the last choice that it had made, if any."""

    memories: list[Record]
    choice: Record | None


def find_readings(trace: Trace, agent: str) -> dict[str, list[Reading]]:
    """For each memory version of an agent that others read who did, in the order of the log; one pass over it.

    A version was read in an event where a record of another agent names it as a cause. What another agent was shown in
    a message it has read itself.
    """
    found: dict[str, list[Reading]] = {}
    for line in trace:
        shown: dict[tuple[str, str], None] = {}
        for record in records(line):
            reader = record.recipient if record.agent == agent else record.agent
            names = (name for name in record.because if name.startswith(f"{agent}/"))
            shown.update(((name, reader), None) for name in names if reader not in ("", agent))
        for name, reader in shown:
            found.setdefault(name, []).append(Reading(line.event, line.time, reader, _how(line, agent, reader)))
    return found


def find_writers(trace: Trace, memory: Record) -> list[str]:
    """The agents other than its own whose messages and memories are causes of a version, in their order."""
    agents = (trace.record(cause).agent for cause in memory.because)
    return [agent for agent in dict.fromkeys(agents) if agent != memory.agent]


def find_as_of(trace: Trace, agent: str, time: float) -> AsOf:
    """What an agent knew after all that happened up to a simulated time. Raises :class:`InputError` outside the log."""
    memories = {record.slot: record for record in trace.memories(agent) if record.time is None or record.time <= time}
    choice: Record | None = None
    start, finish = math.inf, -math.inf
    for line in trace:
        start, finish = min(start, line.time), max(finish, line.time)
        if line.time <= time:
            choice = next(_choices(line, agent), choice)
    if not start <= time <= finish:
        spans = f"say one from {start} to {finish}" if len(trace) else "the log holds no event"
        raise InputError("the run has nothing at this time", remedy=spans, agent=agent, value=time)
    return AsOf(list(memories.values()), choice)


def _choices(line: EventLine, agent: str) -> Iterator[Record]:
    """The choices of an agent in an event, the last first."""
    said = [record for record in records(line) if record.kind == CHOICE and record.agent == agent]
    yield from reversed(said)


def _how(line: EventLine, agent: str, reader: str) -> str:
    mine = [edge for edge in line.edges if agent in (edge.user, edge.node)]
    mine.sort(key=lambda edge: reader not in (edge.user, edge.node))
    return mine[0].kind if mine else line.kind
