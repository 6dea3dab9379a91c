"""Reads out of a log who could have passed something on to whom, and when: the contacts of a run, as arrays.

In each event every participant is a source for every agent that the event has written a memory of. Participants are
the ends of its edges, the owners of memories that it wrote, and the agents whose memories its records name as causes.
Where an event goes on from an earlier one (its parent, or one whose message is a cause), all who took part in that one
take part in it too. Whoever is a source without an edge in the event gives its contacts the name of its own kind, as a
group or a venue does. Only users and items, whose memory is read, and groupings are named here: a grouping, which keeps
who is in which group, is that by which groups reach their members.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.errors import LogError
from simengine.runlog import EventLine

READ = "read"
"""The kind of a contact by which a user's or an item's memory is read that no edge of the event leads to."""
_BY_NATURE = {"user": READ, "item": READ, "grouping": "group"}


def is_grouping(agent: str) -> bool:
    """Whether this is no user or item but what keeps who is in which group: it passes on, and holds nothing itself."""
    return agent.startswith("grouping:")


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contacts of a log of E events, in the order of the log. An event's position is its index among these.

    ``agents``, ``events`` and ``kinds`` are the names behind the numbers. Of each event: ``times``, shape (E,). Of each
    contact: ``position`` of its event, ``source`` and ``target`` among the agents, ``kind`` among the kinds. Of each
    part that an agent has in an event, whether or not that writes a memory: ``part_position`` and ``part_agent``.
    ``edges``, shape (edges, 2), are the pairs of agents that edges join, once for each edge.

    The kind of a contact is that of the edge between source and target in the event (``interaction``, ``exposure``,
    ``membership``, ``attendance``), else that of the source's first edge in it, else what the source is (``group``,
    ``venue``), with ``group`` for groupings and :data:`READ` for users and items.
    """

    agents: tuple[str, ...]
    events: tuple[str, ...]
    kinds: tuple[str, ...]
    times: NDArray[np.float64]
    position: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    kind: NDArray[np.int32]
    part_position: NDArray[np.int32]
    part_agent: NDArray[np.int32]
    edges: NDArray[np.int32]

    @property
    def time(self) -> NDArray[np.float64]:
        """The time of each contact."""
        return self.times[self.position]


def read_contacts(lines: Iterable[EventLine]) -> Contacts:
    """The contacts of a log's events. :class:`LogError` where an event goes on from one that does not stand before."""
    gathered = _Gathering()
    for line in lines:
        gathered.take(line)
    return gathered.contacts()


def pair_events(
    control: Iterable[EventLine], treatment: Iterable[EventLine]
) -> Iterator[tuple[EventLine | None, EventLine | None]]:
    """The events of two logs side by side by their ids, in the order of both; ``None`` where one log lacks an event.

    Logs are read on together only as far as the next event that both hold. Events between two such ones come from the
    first log first.
    """
    sides = (iter(control), iter(treatment))
    ahead: tuple[dict[str, EventLine], dict[str, EventLine]] = ({}, {})
    going = True
    while going:
        going = False
        for here, lines in enumerate(sides):
            line = next(lines, None)
            if line is None:
                continue
            going = True
            ahead[here][line.event] = line
            if line.event in ahead[1 - here]:
                yield from _upto(line.event, *ahead)
    yield from ((line, None) for line in ahead[0].values())
    yield from ((None, line) for line in ahead[1].values())


def merge_events(control: Iterable[EventLine], treatment: Iterable[EventLine]) -> Iterator[EventLine]:
    """The events of either log, each with the edges, messages and memories that it has in the one and in the other.

    Contacts of these tell what could have reached the difference of two runs: an update that failed in one of them is
    written in the other only, and nevertheless the two differ from there on.
    """
    for one, other in pair_events(control, treatment):
        if one is None or other is None:
            yield from (line for line in (one, other) if line is not None)
            continue
        yield msgspec.structs.replace(
            other,
            edges=(*other.edges, *one.edges),
            messages=[*other.messages, *one.messages],
            memories=[*other.memories, *one.memories],
        )


def _upto(event: str, *ahead: dict[str, EventLine]) -> Iterator[tuple[EventLine | None, EventLine | None]]:
    """Empty both buffers up to an event that both hold, the lines of only one log first."""
    found = []
    for here, lines in enumerate(ahead):
        for name in list(lines):
            line = lines.pop(name)
            if name == event:
                found.append(line)
                break
            yield (None, line) if here else (line, None)
    yield found[0], found[1]


class _Gathering:
    """Takes in one event after the other."""

    def __init__(self) -> None:
        self._agents: dict[str, int] = {}
        self._events: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._by_nature: list[int] = []  # of each agent the kind of its contacts where no edge tells
        self._owners: dict[str, int] = {}  # by agent and slot, as names of memory versions have them
        self._times = array("d")
        self._contacts = array("i")  # position, source, target, kind of the first; of the second; ...
        self._starts = array("q")  # of each event its first part
        self._parts = array("i")
        self._edges = array("i")

    def take(self, line: EventLine) -> None:
        """Note who took part in an event, and who could have passed on something in it to whom."""
        parts: dict[int, int] = {}  # with the kind of contact that each is a source of where no edge joins the two
        joined: dict[tuple[int, int], int] = {}
        for edge in line.edges:
            user, node, kind = self._agent(edge.user), self._agent(edge.node), self._kind(edge.kind)
            self._edges.extend((user, node))
            for one, other in ((user, node), (node, user)):
                parts.setdefault(one, kind)
                joined.setdefault((one, other), kind)
        written: dict[int, None] = {}
        for version in line.memories:
            owner = self._owners[f"{version.agent}/{version.slot}"] = self._agent(version.agent)
            written[owner] = None
        for agent in (*written, *self._sources(line)):
            parts.setdefault(agent, self._by_nature[agent])
        position = self._events[line.event] = len(self._times)
        self._times.append(line.time)
        self._starts.append(len(self._parts))
        self._parts.extend(parts)
        for target in written:
            for source, kind in parts.items():
                if source != target:
                    self._contacts.extend((position, source, target, joined.get((source, target), kind)))

    def contacts(self) -> Contacts:
        """All that was taken in, as arrays."""
        position, source, target, kind = np.array(self._contacts, np.int32).reshape(-1, 4).T.copy()
        starts = np.array(self._starts, np.int64)
        sizes = np.append(starts[1:], len(self._parts)) - starts
        return Contacts(
            tuple(self._agents),
            tuple(self._events),
            tuple(self._kinds),
            np.array(self._times, np.float64),
            position,
            source,
            target,
            kind,
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            np.array(self._parts, np.int32),
            np.array(self._edges, np.int32).reshape(-1, 2),
        )

    def _sources(self, line: EventLine) -> Iterator[int]:
        """The agents that the causes of an event's records lead to, and those of the event that it goes on from."""
        mine = f"{line.event}#"
        told = (cause for message in line.messages for cause in message.because)
        kept = (str(cause) for version in line.memories for cause in version.because)  # in a log all are names
        if line.parent is not None:
            yield from self._took_part(line.parent, line.event)
        for cause in dict.fromkeys(chain(told, kept)):
            memory, _, number = cause.rpartition("@")
            if number.isdecimal():
                yield self._owner(memory)
            elif not cause.startswith(mine):
                yield from self._took_part(self._event_of(cause), line.event)

    def _owner(self, memory: str) -> int:
        """Whose memory this is. Only a slot that was written before may have a name that holds the mark itself."""
        if memory not in self._owners:
            self._owners[memory] = self._agent(memory.rpartition("/")[0])
        return self._owners[memory]

    def _event_of(self, message: str) -> str:
        """The event that a message is from; ids of both may hold the mark between event and path."""
        event = message.rpartition("#")[0]
        while "#" in event and event not in self._events:
            event = event.rpartition("#")[0]
        return event

    def _took_part(self, earlier: str, event: str) -> array[int]:
        position = self._events.get(earlier)
        if position is None:
            problem = f"the event goes on from {earlier}, which does not stand before it"
            raise LogError(problem, remedy="give all events of a log, in their order", event=event)
        following = self._starts[position + 1 : position + 2] or [len(self._parts)]
        return self._parts[self._starts[position] : following[0]]

    def _agent(self, name: str) -> int:
        number = self._agents.get(name)
        if number is None:
            number = self._agents[name] = len(self._agents)
            nature = name.partition(":")[0]
            self._by_nature.append(self._kind(_BY_NATURE.get(nature, nature)))
        return number

    def _kind(self, name: str) -> int:
        return self._kinds.setdefault(name, len(self._kinds))
