"""Walks a history along its causes: what led to a message or a memory version, and what depends on an event.

A record is named as the log names it: a message by its id (``rank/u1/B/1#rank.10``), a memory version by agent, slot
and number (``user:12/short@3``). Version 0 is what an agent starts with. It is not in the log, and is known only where
the caller can say what it was.
"""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from rapidfuzz import fuzz, process

from simengine.errors import InputError, LogError
from simengine.runlog.reader import Reader
from simengine.runlog.records import EventLine

Initial: TypeAlias = Callable[[str], Mapping[str, Any]]
"""For each agent the values that its slots start with."""

_VERSION = re.compile(r"(.+)@(\d+)", re.DOTALL)
_KEPT_LINES = 512  # decoded events that are held at once


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message or a memory version, and the names of its causes.

    ``value`` is the text (or plain data) of a memory, or the body of a message, ``None`` where it only shows what its
    causes hold. ``agent`` is the owner or the sender. ``event`` and ``time`` are missing in a version 0; ``known`` is
    false where nobody could say what that was. A memory has ``slot``, ``version`` and ``unit``, a message ``kind`` and
    ``recipient``; ``append`` marks an entry of a slot that keeps all of its entries.
    """

    name: str
    agent: str
    value: Any = None
    because: tuple[str, ...] = ()
    event: str | None = None
    time: int | float | None = None
    kind: str = ""
    recipient: str = ""
    slot: str = ""
    version: int = 0
    unit: str = ""
    append: bool = False
    known: bool = True

    @property
    def text(self) -> str:
        """The value as text; data other than text as JSON."""
        if self.value is None or isinstance(self.value, str):
            return self.value or ""
        return msgspec.json.encode(self.value).decode()


class Cause(msgspec.Struct):
    """A record and what led to it. ``again``: it stands in the tree more than once, and its causes at another place."""

    record: Record
    causes: list[Cause] = []
    again: bool = False


class Dependant(msgspec.Struct, frozen=True):
    """An event that depends on something, and the names of its messages and memory versions that do."""

    event: str
    records: tuple[str, ...]


class Trace:
    """An index over one log, made in one pass that verifies it: events stay on disk and are read when asked for.

    Iteration gives all events in their order. ``header`` is that of the log; ``finished`` tells whether the log goes to
    its run's end. ``initial`` says what agents start with. An unknown name is an :class:`InputError` that tells the
    nearest ones.
    """

    def __init__(self, path: Path, initial: Initial | None = None) -> None:
        self._path = path
        self._initial = lru_cache(_KEPT_LINES)(initial) if initial is not None else None
        self._line = lru_cache(_KEPT_LINES)(self._read)
        self._offsets = array("q")
        self._events: dict[str, int] = {}
        self._slots: dict[str, list[str]] = {}
        self._versions: dict[tuple[str, str], array[int]] = {}
        with Reader(path) as reader:
            self.header = reader.header
            offset = reader.size
            for line in reader:
                self._take(line, offset)
                offset = reader.size
            self.finished = reader.end is not None

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[EventLine]:
        return self._from(0)

    def event(self, name: str) -> EventLine:
        """The event of this id."""
        return self._line(self.position(name))

    def position(self, event: str) -> int:
        """The place of an event among all events of the log, from 0."""
        if event not in self._events:
            raise _unknown("event", event, self._events)
        return self._events[event]

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents that the log names as ends of an edge, in a message or as owners of a memory, as they come."""
        return tuple(self._slots)

    def begun(self, agent: str) -> Mapping[str, Any]:
        """The values that the slots of an agent of the log started with; empty where nobody can say."""
        if agent not in self._slots:
            raise _unknown("agent", agent, self._slots)
        return self._begun(agent)

    def memories(self, agent: str) -> Iterator[Record]:
        """All versions of all slots of an agent in the order of the log, known versions 0 first."""
        yield from (_first(agent, slot, value) for slot, value in self.begun(agent).items())
        numbers = {number for slot in self._slots[agent] for number in self._versions[agent, slot]}
        for number in sorted(numbers):
            line = self._line(number)
            yield from (record for record in records(line) if record.slot and record.agent == agent)

    def record(self, name: str) -> Record:
        """The message or memory version of this name."""
        found = self._version(name) or self._message(name)
        if found is None:
            raise _unknown("message or memory version", name, self._near(name))
        return found

    def before(self, memory: Record) -> Record | None:
        """The version that a memory version took the place of, where there is one and it is known."""
        if not memory.version or memory.append:
            return None
        earlier = self._version(f"{memory.agent}/{memory.slot}@{memory.version - 1}")
        return earlier if earlier is not None and earlier.known else None

    def causes(self, name: str) -> Cause:
        """What led to a record, back to memory versions; those have causes too, which a call with their name tells.

        Each record's causes are given once, at the place nearest to the root.
        """
        root = Cause(self.record(name))
        seen, waiting = {name}, deque([root])
        while waiting:
            node = waiting.popleft()
            for cause in node.record.because:
                child = Cause(self.record(cause), again=cause in seen)
                node.causes.append(child)
                if cause not in seen and not child.record.slot:
                    waiting.append(child)
                seen.add(cause)
        return root

    def cone(self, name: str) -> Iterator[Dependant]:
        """What depends on an event or a record: all later events that it has reached along causes, in their order.

        A child of an event that was reached counts as a whole, since what an event schedules may hang on all it knew.
        """
        start = self._events.get(name)
        if start is not None:
            events, reached = {name}, {record.name for record in records(self._line(start))}
            start += 1
        else:
            record = self.record(name)
            reached = {name}
            events, start = ({record.event}, self.position(record.event)) if record.event is not None else (set(), 0)
        for line in self._from(start):
            new = [record.name for record in records(line)] if line.parent in events else _spread(line, reached)
            if new or line.parent in events:
                reached.update(new)
                events.add(line.event)
                yield Dependant(line.event, tuple(new))

    # -- the index ------------------------------------------------------------------------------------------------

    def _take(self, line: EventLine, offset: int) -> None:
        number = self._events[line.event] = len(self._offsets)
        self._offsets.append(offset)
        for edge in line.edges:
            self._slots.setdefault(edge.user, [])
            self._slots.setdefault(edge.node, [])
        for message in line.messages:
            self._slots.setdefault(message.sender, [])
            self._slots.setdefault(message.recipient, [])
        for version in line.memories:
            key = (version.agent, version.slot)
            if key not in self._versions:
                self._versions[key] = array("q")
                self._slots.setdefault(version.agent, []).append(version.slot)
            self._versions[key].append(number)
            if version.version != len(self._versions[key]):
                raise LogError(
                    f"this memory version follows on number {len(self._versions[key]) - 1}",
                    remedy="the log was not written by a run: name the folder of a run",
                    file=str(self._path),
                    event=line.event,
                    memory=version.ref,
                )

    def _read(self, number: int) -> EventLine:
        return next(self._from(number))

    def _from(self, number: int) -> Iterator[EventLine]:
        """The events from a position on; what has been verified once is not verified again."""
        decode = msgspec.json.Decoder(EventLine).decode
        if number >= len(self):
            return
        with self._path.open("rb") as file:
            file.seek(self._offsets[number])
            for _ in range(number, len(self)):
                yield decode(file.readline())

    def _version(self, name: str) -> Record | None:
        parts = _VERSION.fullmatch(name)
        if parts is None:
            return None
        number = int(parts[2])
        for agent, slot in _splits(parts[1], "/"):
            written = self._versions.get((agent, slot))
            if number == 0 and (written is not None or agent in self._slots):
                begun = self._begun(agent)
                if slot in begun:
                    return _first(agent, slot, begun[slot])
                # Where nobody can say, a slot that is written later had a version 0, and so may any other.
                return Record(name, agent, slot=slot, known=False) if self._initial is None else None
            if written is not None and 0 < number <= len(written):
                return next(record for record in records(self._line(written[number - 1])) if record.name == name)
        return None

    def _begun(self, agent: str) -> Mapping[str, Any]:
        return self._initial(agent) if self._initial is not None else {}

    def _message(self, name: str) -> Record | None:
        for event, _ in _splits(name, "#"):
            if event in self._events:
                found = (record for record in records(self.event(event)) if record.name == name)
                return next(found, None)
        return None

    def _near(self, name: str) -> Iterator[str]:
        """Names of records that might be meant by an unknown one."""
        yield from (f"{agent}/{slot}@{len(of)}" for (agent, slot), of in self._versions.items())
        event = process.extractOne(name.rpartition("#")[0] or name, list(self._events), scorer=fuzz.ratio)
        if event is not None:
            yield from (record.name for record in records(self.event(event[0])) if not record.slot)


def records(line: EventLine) -> Iterator[Record]:
    """The messages and the memory versions of an event."""
    for said in line.messages:
        yield Record(
            said.id,
            said.sender,
            said.body,
            tuple(said.because),
            line.event,
            line.time,
            kind=said.kind,
            recipient=said.recipient,
        )
    for kept in line.memories:
        yield Record(
            kept.ref,
            kept.agent,
            kept.value,
            tuple(map(str, kept.because)),
            line.event,
            line.time,
            slot=kept.slot,
            version=kept.version,
            unit=kept.unit,
            append=kept.append,
        )


def _spread(line: EventLine, reached: set[str]) -> list[str]:
    """The records of an event that have a cause among those reached, or among one another's."""
    mine = [record for record in records(line) if record.name not in reached]
    new: dict[str, None] = {}
    while more := [
        record.name
        for record in mine
        if record.name not in new and any(cause in reached or cause in new for cause in record.because)
    ]:
        new.update(dict.fromkeys(more))
    return list(new)


def _first(agent: str, slot: str, value: Any) -> Record:
    return Record(f"{agent}/{slot}@0", agent, value, slot=slot)


def _splits(name: str, mark: str) -> Iterator[tuple[str, str]]:
    """A name cut in two at each place where the mark stands; ids of users and items may hold it too."""
    at = name.find(mark)
    while at >= 0:
        yield name[:at], name[at + 1 :]
        at = name.find(mark, at + 1)


def _unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    near = [found[0] for found in process.extract(name, list(known), scorer=fuzz.ratio, limit=3)]
    remedy = f"Nearest: {', '.join(near)}." if near else "The log holds none."
    return InputError(f"the log holds no {what} {name}", remedy=remedy)
