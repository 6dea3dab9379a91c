"""The events that are under way: issued and not yet committed, in the total order, with what waits on whom."""

from __future__ import annotations

import heapq
from collections import deque

from simengine.kernel.draft import Draft
from simengine.kernel.event import Agent, Event, Order
from simengine.kernel.state import Cell


class Entry:
    """One event under way.

    ``batch`` is the place as of which its batch reads (``None`` without batches), ``cells`` what it may write,
    ``draft`` what it has done so far, ``behind`` the entries that its reads wait for, ``height`` the longest chain of
    entries that wait for it, itself included.
    """

    __slots__ = ("batch", "behind", "cells", "done", "draft", "event", "height", "order")

    def __init__(self, event: Event, batch: Order | None) -> None:
        self.event = event
        self.order = event.order
        self.batch = batch
        self.cells: dict[Agent, Cell] = {}
        self.draft = Draft("")
        self.behind: list[Entry] | None = None
        self.height = 1
        self.done = False

    def __lt__(self, other: Entry) -> bool:
        return self.order < other.order


class Window:
    """Entries in the total order. Most come in order; children that stand before the issue front are inserted."""

    def __init__(self) -> None:
        self._line: deque[Entry] = deque()
        self._inserted: list[Entry] = []
        self._changes = 0

    def __len__(self) -> int:
        return len(self._line) + len(self._inserted)

    def add(self, entry: Entry) -> None:
        """Take in a new entry."""
        if not self._line or self._line[-1].order < entry.order:
            self._line.append(entry)
        else:
            heapq.heappush(self._inserted, entry)
        self._changes += 1

    def head(self) -> Entry | None:
        """The entry that commits next."""
        line, inserted = self._line, self._inserted
        if inserted and (not line or inserted[0].order < line[0].order):
            return inserted[0]
        return line[0] if line else None

    def pop(self) -> None:
        """Let the head go."""
        line, inserted = self._line, self._inserted
        if inserted and (not line or inserted[0].order < line[0].order):
            heapq.heappop(inserted)
        else:
            line.popleft()
        self._changes += 1

    def entries(self) -> list[Entry]:
        """All entries, in the total order."""
        return list(heapq.merge(self._line, sorted(self._inserted)))

    def height(self, entry: Entry) -> int:
        """The longest chain of entries that wait for ``entry``, itself included.

        Heights are brought up to date when a sixteenth of the window has changed, so that a long window costs each
        event a bounded share; until then they are slightly old, which can only cost some speed.
        """
        if self._changes * 16 > len(self):
            self._changes = 0
            entries = self.entries()
            for each in entries:
                each.height = 1
            for each in reversed(entries):
                for earlier in each.behind or ():
                    if earlier.height <= each.height:
                        earlier.height = each.height + 1
        return entry.height
