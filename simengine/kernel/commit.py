"""Commit: finished events leave the window strictly in the total order, numbered, and go to the sink."""

from __future__ import annotations

from typing import Protocol

from simengine.kernel.draft import Committed
from simengine.kernel.event import Agent, Event, Order
from simengine.kernel.state import State, Version, resolved
from simengine.kernel.visibility import Calendar
from simengine.kernel.window import Entry


class Sink(Protocol):
    """Where committed events go. ``commit`` must keep them in the order in which they come."""

    def commit(self, record: Committed) -> None: ...


class Committer:
    """Numbers versions, lets the state forget what nobody can ask for, and counts what a batch schedule loses.

    ``stale`` counts events that read an agent which an earlier event of their batch has changed; ``lost`` counts
    updates that overwrote an earlier one of the same batch unseen. What children changed counts for both.
    """

    def __init__(self, state: State, calendar: Calendar, sink: Sink) -> None:
        self._state = state
        self._calendar = calendar
        self._sink = sink
        self._changed: dict[Agent, Order] = {}
        self.committed = 0
        self.failed = 0
        self.stale = 0
        self.lost = 0

    def commit(self, entry: Entry) -> None:
        """Commit the head of the window, or an event that ran while the window was empty (it has no cells)."""
        versions = self._fold(entry)
        draft = entry.draft
        record = Committed(entry.event, versions, draft.notes, draft.calls, draft.units, draft.children)
        for note in record.notes:
            note.because = resolved(note.because)
        self.committed += 1
        if draft.units and any(True for _ in record.failures()):
            self.failed += 1
        self._sink.commit(record)

    def restore(self, entry: Entry, failed: bool) -> None:
        """Take in an event that the log already holds."""
        self._fold(entry)
        self.committed += 1
        self.failed += failed

    def _fold(self, entry: Entry) -> list[Version]:
        state, calendar, order = self._state, self._calendar, entry.order
        versions: list[Version] = []
        if not entry.cells:
            for agent in entry.event.writes:
                if (written := entry.draft.writes.get(agent)) is not None:
                    state.commit_alone(agent, written)
                    versions += written
        for agent, cell in entry.cells.items():
            versions += cell.versions or ()
            horizon = None if calendar.latest_only else calendar.horizon(agent, order)
            state.commit(agent, cell, order, horizon)
        for version in versions:
            if version.because:
                version.because = resolved(version.because)
        if calendar.batched:
            self._count(entry.event, entry.as_of, versions)
        if not calendar.latest_only:
            calendar.forget(order)
            state.tidy(2, lambda agent: calendar.horizon(agent, order))
        return versions

    def _count(self, event: Event, batch: Order, versions: list[Version]) -> None:
        changed = self._changed
        if any(changed.get(agent, ()) >= batch for agent in (*event.writes, *event.reads)):
            self.stale += 1
        for agent in dict.fromkeys(version.agent for version in versions if not version.append):
            if changed.get(agent, ()) >= batch:
                self.lost += 1
        for version in versions:
            changed[version.agent] = event.order
