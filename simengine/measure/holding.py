"""From which event to which each agent of a log holds a preference, and whose memory brought it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from simengine.measure.preference import Preference
from simengine.runlog import EventLine

SLOTS = ("short", "memory")
"""The slots that hold what a user and an item think, unless told otherwise."""


class Spell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent holds the preference from one event on until it loses it.

    It holds it after the event at place ``begin`` of the log (-1: from the start), whose time is ``since`` (of the
    start: that of the first event), and no more after the event at place ``end``, at time ``until``; both are ``None``
    where it holds it to the log's end. ``version`` is the memory version with which it began, and ``carriers`` are the
    agents whose memories that held it were among that version's causes, those who held it first standing first. Where
    it has it from another memory of its own, they are those who brought it to that one.
    """

    agent: str
    begin: int
    since: float
    end: int | None = None
    until: float | None = None
    version: str = ""
    carriers: tuple[str, ...] = ()


class Holdings(msgspec.Struct, frozen=True):
    """Who holds a preference when: all spells in order of their beginning, in a log of so many events.

    ``start`` and ``finish`` are the times of the log's first and last event.
    """

    spells: tuple[Spell, ...]
    events: int
    start: float
    finish: float


class HoldingsReader:
    """Gathers who holds a preference, as the log's events are handed to it one after the other.

    ``initial`` has the slots of each agent as they were before the first event (agents that it lacks begin without the
    preference). An agent holds it while any of its ``slots`` does; of a slot that keeps its entries, while any entry
    does.
    """

    def __init__(
        self, preference: Preference, initial: Mapping[str, Mapping[str, Any]], slots: Sequence[str] = SLOTS
    ) -> None:
        self._preference = preference
        self._slots = slots
        self._events = 0
        self._start = self._finish = 0.0
        self._holding: dict[str, dict[str, str]] = {}  # agent -> slot that holds it -> version since which it does
        self._open: dict[str, Spell] = {}
        self._closed: list[Spell] = []
        self._first: dict[str, int] = {}  # agent -> its place among all that ever held it
        self._held: dict[str, str] = {}  # versions that hold it -> their agents
        self._brought: dict[str, tuple[str, ...]] = {}  # versions that hold it -> others whose memories brought it
        self._carrying: dict[str, tuple[str, ...]] = {}  # messages -> agents whose memories they carry it from
        for agent, values in initial.items():
            for slot, value in values.items():
                self._note(agent, slot, f"{agent}/{slot}@0", value)
            self._settle(agent, -1)

    def take(self, line: EventLine) -> None:
        """Take in the next event."""
        self._finish = float(line.time)
        if self._events == 0:
            self._start = self._finish
            self._open = {
                agent: msgspec.structs.replace(spell, since=self._start) for agent, spell in self._open.items()
            }
        for version in line.memories:
            self._note(version.agent, version.slot, version.ref, version.value, version.append)
        if self._held:
            within = {message.id: message.because for message in line.messages}
            carrying = {name: self._carriers(because, within) for name, because in within.items()}
            self._carrying.update((name, agents) for name, agents in carrying.items() if agents)
        for version in line.memories:
            if version.ref in self._held:
                self._bring(version.agent, version.ref, list(map(str, version.because)))
        for agent in dict.fromkeys(version.agent for version in line.memories):
            self._settle(agent, self._events)
        self._events += 1

    def holdings(self) -> Holdings:
        """What the events taken in so far tell."""
        spells = sorted((*self._closed, *self._open.values()), key=lambda spell: (spell.begin, spell.agent))
        return Holdings(tuple(spells), self._events, self._start, self._finish)

    def _note(self, agent: str, slot: str, ref: str, value: Any, append: bool = False) -> None:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        holds = self._preference.held_in(text)
        if holds:
            self._held[ref] = agent
        if slot not in self._slots:
            return
        if holds:
            self._holding.setdefault(agent, {}).setdefault(slot, ref)
        elif not append and agent in self._holding:
            self._holding[agent].pop(slot, None)

    def _bring(self, agent: str, ref: str, causes: Sequence[str]) -> None:
        """Note who brought it to a version that holds it."""
        others = tuple(other for other in self._carriers(causes, {}) if other != agent)
        if not others:  # the agent has it from another of its memories, if from any
            others = tuple(dict.fromkeys(other for cause in causes for other in self._brought.get(cause, ())))
        if others:
            self._brought[ref] = others

    def _settle(self, agent: str, position: int) -> None:
        """Begin or end the agent's spell, now that all memories of the event at this position are known."""
        holding = self._holding.get(agent)
        if holding and agent not in self._open:
            version = next(iter(holding.values()))
            carriers = self._brought.get(version, ())
            found = tuple(sorted(carriers, key=lambda other: self._first.get(other, len(self._first))))
            self._open[agent] = Spell(agent, position, self._finish, version=version, carriers=found)
            self._first.setdefault(agent, len(self._first))
        elif not holding and agent in self._open:
            spell = self._open.pop(agent)
            self._closed.append(msgspec.structs.replace(spell, end=position, until=self._finish))

    def _carriers(self, because: Iterable[Any], within: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
        """The agents whose versions that hold it are among these causes, messages' own causes included."""
        agents: dict[str, None] = {}
        waiting, seen = list(map(str, because))[::-1], set[str]()
        while waiting:
            cause = waiting.pop()
            if cause in seen:
                continue
            seen.add(cause)
            if cause in self._held:
                agents[self._held[cause]] = None
            elif cause in within:
                waiting.extend(map(str, within[cause]))
            else:
                agents.update(dict.fromkeys(self._carrying.get(cause, ())))
        return tuple(agents)


def read_holdings(
    lines: Iterable[EventLine],
    preference: Preference,
    initial: Mapping[str, Mapping[str, Any]],
    slots: Sequence[str] = SLOTS,
) -> Holdings:
    """Who holds the preference when, over all events of a log; arguments as of :class:`HoldingsReader`."""
    reader = HoldingsReader(preference, initial, slots)
    for line in lines:
        reader.take(line)
    return reader.holdings()
