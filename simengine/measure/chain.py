"""How a preference got to those who hold it: the memories and messages that brought it, walked back along causes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from simengine.errors import InputError
from simengine.measure.carriers import Carrier, tree_of_carriers
from simengine.measure.holding import Holdings, Spell
from simengine.measure.preference import Preference
from simengine.runlog.trace import Record, Trace

if TYPE_CHECKING:
    import networkx

_NAMED = 5  # holders that an error names


class Link(msgspec.Struct, frozen=True):
    """A memory version or a message on the way.

    ``phrases`` are the sentences or list entries by which it holds the preference. A message that shows a memory has
    those of that memory; one that only leads on, such as a choice that does not speak of it, has none.
    """

    record: Record
    phrases: tuple[str, ...]


class Chain(msgspec.Struct, frozen=True):
    """The way of a preference to the memory version with which ``agent`` first began to hold it.

    Each of ``links`` is a cause of the next. The first is where causes that hold it end: the memory that a planting
    wrote if ``planted``, else one that began with it or in which it was written anew.
    """

    preference: str
    agent: str
    planted: bool
    links: tuple[Link, ...]

    @property
    def hops(self) -> int:
        """How often it went over to another agent's memory."""
        owners = [link.record.agent for link in self.links if link.record.slot]
        return sum(one != other for one, other in pairwise(owners))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The chain as text: two lines or more for each record; of versions that only kept it the last is told."""
        first = self.links[0].record
        begun = "planted" if self.planted else "not planted"
        times = "" if first.time is None else f" at time {first.time}"
        yield f'{self.agent} came to hold "{self.preference}" from {first.agent} ({begun}{times}), hops: {self.hops}'
        kept = 0
        for at, link in enumerate(self.links):
            if self._only_kept(at):
                kept += 1
                continue
            before = f", kept by {kept} version{'s' if kept > 1 else ''} before" if kept else ""
            yield f"{_where(link.record)}{before}"
            yield from (f"    {phrase}" for phrase in link.phrases or ["(does not say it)"])
            kept = 0

    def to_networkx(self) -> networkx.DiGraph[str]:
        """The records as nodes by their names, and an edge from each to those of them that it is a cause of.

        Nodes have ``kind`` (``memory``, or that of the message), ``agent``, ``recipient``, ``event``, ``time``,
        ``text`` and ``phrases``.
        """
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        for link in self.links:
            record = link.record
            graph.add_node(
                record.name,
                kind=record.kind or "memory",
                agent=record.agent,
                recipient=record.recipient,
                event=record.event,
                time=record.time,
                text=record.text,
                phrases=list(link.phrases),
            )
            graph.add_edges_from((cause, record.name) for cause in record.because if cause in graph)
        return graph

    def _only_kept(self, at: int) -> bool:
        """Whether a link stands between two others that are versions of the same memory."""
        if not 0 < at < len(self.links) - 1:
            return False
        around = [self.links[place].record for place in (at - 1, at, at + 1)]
        return bool(around[0].slot) and len({(record.agent, record.slot) for record in around}) == 1


@dataclass(frozen=True)
class Followed:
    """A preference followed through a log: who held it when, and how it came to each of them.

    ``seeds`` are the agents that it was planted in, each with the memory versions that the planting wrote.
    """

    trace: Trace
    preference: Preference
    holdings: Holdings
    seeds: Mapping[str, Collection[str]]

    @cached_property
    def first(self) -> dict[str, Spell]:
        """Of each agent that ever held it the first time that it did, in the order in which they came to hold it."""
        found: dict[str, Spell] = {}
        for spell in self.holdings.spells:
            found.setdefault(spell.agent, spell)
        return found

    @cached_property
    def tree(self) -> tuple[Carrier, ...]:
        """All who ever held it, below the seeds and below those who have it from nobody's memory."""
        first = self.first
        own = {agent for agent, spell in first.items() if not any(other in first for other in spell.carriers)}
        return tree_of_carriers(self.holdings, own.union(self.seeds))

    def chain(self, agent: str) -> Chain:
        """How it came to an agent the first time. Raises :class:`InputError` for one that never held it.

        What a memory keeps was not learned again: it is followed in this memory down to where it entered, and from
        there to the agent who held it first of those whose memories led to it; by way of messages where some lie
        between. A message counts as its source only where no memory behind it holds it.
        """
        spell = self.first.get(agent)
        if spell is None:
            raise self._nobody(agent)
        records = [self.trace.record(spell.version)]
        while more := self._back(records[-1]):
            records += more
        records.reverse()
        links: list[Link] = []
        for record in records:
            shows = not record.slot and record.value is None
            phrases = links[-1].phrases if shows and links else self.preference.phrases_in(record.text)
            links.append(Link(record, phrases))
        planted = any(records[0].name in written for written in self.seeds.values())
        return Chain(self.preference.text, agent, planted, tuple(links))

    def _back(self, record: Record) -> list[Record]:
        """The records from one, without it, to the nearest memory behind it that brought it; none where it began."""
        messages: dict[str, Record] = {}
        told_by: dict[str, Record] = {}  # of each record found the one that it was found as a cause of
        named_by: dict[str, Record] = {}  # of memories that hold it the message nearest to the record, or that itself
        held: dict[str, Record] = {}
        waiting = deque([record])
        while waiting:
            at = waiting.popleft()
            for cause in map(self.trace.record, at.because):
                if not cause.slot and cause.name not in messages:
                    messages[cause.name], told_by[cause.name] = cause, at
                    waiting.append(cause)
                elif cause.slot and self.preference.held_in(cause.text):
                    held[cause.name] = cause
                    if named_by.get(cause.name, record) is record:
                        named_by[cause.name] = at
        source = self._source(record, held)
        if source is None:
            return self._said(record, messages, told_by)
        kept = _memory(source) == _memory(record) and source.name in record.because
        return [*_path(record, record if kept else named_by[source.name], told_by), source]

    def _source(self, record: Record, held: dict[str, Record]) -> Record | None:
        """Of the memories behind a record that hold it, the one that it came from."""
        own = [found for found in held.values() if record.slot and _memory(found) == _memory(record)]
        others = [found for found in held.values() if found.agent != record.agent]
        spell = self.first.get(record.agent)
        # Brought to an agent that did not hold it, it came from whom the tree of carriers says, too.
        carriers = spell.carriers if spell is not None and spell.version == record.name else ()
        rank = {agent: place for place, agent in enumerate(agent for agent in carriers if agent in self.first)}
        return min(
            own or others or list(held.values()),
            key=lambda found: (rank.get(found.agent, len(rank)), -self._place(found)),
            default=None,
        )

    def _said(self, record: Record, messages: dict[str, Record], told_by: dict[str, Record]) -> list[Record]:
        """The way to the first message behind a record that says it, which nobody's memory holds."""
        said = [found for found in messages.values() if self.preference.held_in(found.text)]
        return _path(record, min(said, key=self._place), told_by) if said else []

    def _place(self, record: Record) -> int:
        return -1 if record.event is None else self.trace.position(record.event)

    def _nobody(self, agent: str) -> InputError:
        self.trace.begun(agent)  # which tells an agent that is not in the log, with the nearest that are
        holders = list(self.first)
        named = ", ".join(holders[:_NAMED]) + ", ..." * (len(holders) > _NAMED)
        return InputError(
            "this agent never held the preference, as far as the words of its memories tell",
            remedy=f"{len(holders)} agents did: {named}" if holders else "nobody in this run did",
            agent=agent,
            value=self.preference.text,
        )


def _memory(record: Record) -> tuple[str, str]:
    return record.agent, record.slot


def _path(record: Record, to: Record, told_by: dict[str, Record]) -> list[Record]:
    """The messages from a record, without it, back to another, which stands last."""
    found: list[Record] = []
    while to is not record:
        found.append(to)
        to = told_by[to.name]
    return found[::-1]


def _where(record: Record) -> str:
    said = f"  {record.agent} -> {record.recipient}, {record.kind}" if not record.slot else ""
    at = "before the run" if record.event is None else f"{record.event}, time {record.time}"
    return f"{record.name}{said}  {at}" if record.slot else f"-> {record.name}{said}, time {record.time}"
