"""What an event, or one branch of it, has done so far: nothing of it is visible outside before it is final."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from simengine.kernel.event import Agent, Event
from simengine.kernel.state import Version


class Note(msgspec.Struct):
    """Something that happened and that the log keeps, a message for instance. ``body`` is opaque here."""

    id: str
    body: Any
    because: Sequence[str | Version]


class Draft(msgspec.Struct):
    """The writes, notes, calls, unit outcomes and children of one branch, each in an order that no latency can change.

    ``path`` is the branch's place inside its event: unit names joined by ``/``, empty for the event itself. ``names``
    holds the paths of the event's units and calls, and is one for all of its branches.
    """

    path: str
    writes: dict[Agent, list[Version]] = {}
    notes: list[Note] = []
    calls: list[tuple[str, str]] = []
    units: list[tuple[str, str]] = []
    children: list[Event] = []
    names: set[str] = set()

    def absorb(self, branch: Draft, failure: str | None, released: Collection[Agent]) -> None:
        """Take over what a settled branch did. Of a failed one only what it released and what it said remains."""
        for agent, versions in branch.writes.items():
            if failure is None or agent in released:
                self.writes.setdefault(agent, []).extend(versions)
        if failure is None:
            self.children += branch.children
        self.notes += branch.notes
        self.calls += branch.calls
        self.units += branch.units
        self.units.append((branch.path, failure or "ok"))

    def forget(self) -> None:
        """Undo everything: the event itself has failed. What it released stands, in the cells."""
        self.writes = {}
        self.children = []


class Committed(msgspec.Struct):
    """One event as it enters the log: final, its versions numbered, in commit order."""

    event: Event
    versions: list[Version]
    notes: list[Note]
    calls: list[tuple[str, str]]
    units: list[tuple[str, str]]
    children: list[Event]

    def failures(self) -> Iterator[tuple[str, str]]:
        """The units that failed, with their reasons."""
        return ((path, outcome) for path, outcome in self.units if outcome != "ok")
