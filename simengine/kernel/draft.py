"""What an event, or one branch of it, has done so far: nothing of it is visible outside before it is final."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from simengine.kernel.event import Agent, Event
from simengine.kernel.state import Version


class Note:
    """Something that happened and that the log keeps, a message for instance. ``body`` is opaque here."""

    __slots__ = ("because", "body", "id")

    def __init__(self, id: str, body: Any, because: Sequence[str | Version]) -> None:
        self.id = id
        self.body = body
        self.because = because


class Draft:
    """The writes, notes, calls, unit outcomes and children of one branch, each in an order that no latency can change.

    ``path`` is the branch's place inside its event: unit names joined by ``/``, empty for the event itself.
    """

    __slots__ = ("calls", "children", "names", "notes", "path", "units", "writes")

    def __init__(self, path: str) -> None:
        self.path = path
        self.writes: dict[Agent, list[Version]] = {}
        self.notes: list[Note] = []
        self.calls: list[tuple[str, str]] = []
        self.units: list[tuple[str, str]] = []
        self.children: list[Event] = []
        self.names: set[str] = set()

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

    def forget(self, released: Collection[Agent]) -> None:
        """Undo everything that was not released: the event itself has failed."""
        self.writes = {agent: versions for agent, versions in self.writes.items() if agent in released}
        self.children = []


class Committed:
    """One event as it enters the log: final, numbered, in commit order."""

    __slots__ = ("calls", "children", "event", "notes", "seq", "units", "versions")

    def __init__(self, seq: int, event: Event, draft: Draft, versions: list[Version]) -> None:
        self.seq = seq
        self.event = event
        self.versions = versions
        self.notes = draft.notes
        self.calls = draft.calls
        self.units = draft.units
        self.children = draft.children

    def failures(self) -> Iterator[tuple[str, str]]:
        """The units that failed, with their reasons."""
        return ((path, outcome) for path, outcome in self.units if outcome != "ok")


def resolved(because: Sequence[str | Version]) -> list[str]:
    """Causes as text: ids as they are, versions by their names, which they have once they are committed."""
    return [cause if isinstance(cause, str) else cause.ref for cause in because]
