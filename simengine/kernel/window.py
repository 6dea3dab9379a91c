"""The events that are under way: issued and not yet committed, in the total order, with what waits on whom."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

import msgspec

from simengine.kernel.draft import Draft
from simengine.kernel.event import Agent, Event, Order
from simengine.kernel.state import Cell


class Entry(msgspec.Struct, eq=False):
    """One event under way.

    ``as_of`` is the place in the order as of which it reads: its own, or the start of its batch. ``draft`` is what it
    has done so far, ``cells`` what it may write (made when others may meet it), ``behind`` the entries that its reads
    wait for, ``height`` the longest chain of entries that wait for it, itself included.
    """

    event: Event
    order: Order
    as_of: Order
    draft: Draft
    cells: dict[Agent, Cell] = {}
    behind: Sequence[Entry] = ()
    height: int = 1
    done: bool = False

    def __lt__(self, other: Entry) -> bool:
        return self.order < other.order

    def released(self) -> set[Agent]:
        """The agents whose update is final already."""
        return {agent for agent, cell in self.cells.items() if cell.versions is not None}


class Window:
    """Entries in the total order. Most come in order; children that stand before the issue front are inserted."""

    def __init__(self) -> None:
        self._line: deque[Entry] = deque()
        self._inserted: list[Entry] = []
        self._changes = 0
        self.size = 0

    def add(self, entry: Entry) -> None:
        """Take in a new entry."""
        if not self._line or self._line[-1].order < entry.order:
            self._line.append(entry)
        else:
            heapq.heappush(self._inserted, entry)
        self._changes += 1
        self.size += 1

    def head(self) -> Entry | None:
        """The entry that commits next."""
        line, inserted = self._line, self._inserted
        if inserted and (not line or inserted[0].order < line[0].order):
            return inserted[0]
        return line[0] if line else None

    def pop(self) -> None:
        """Let the head go."""
        line, inserted = self._line, self._inserted
        gone = (
            heapq.heappop(inserted) if inserted and (not line or inserted[0].order < line[0].order) else line.popleft()
        )
        gone.behind = ()  # or each entry would keep all those before it
        self._changes += 1
        self.size -= 1

    def entries(self) -> list[Entry]:
        """All entries, in the total order."""
        return list(heapq.merge(self._line, sorted(self._inserted)))

    def height(self, entry: Entry) -> int:
        """The longest chain of entries that wait for ``entry``, itself included.

        Heights are brought up to date when a sixteenth of the window has changed, so that a long window costs each
        event a bounded share; until then they are slightly old, which can only cost some speed.
        """
        if self._changes * 16 > self.size:
            self._changes = 0
            entries = self.entries()
            for each in entries:
                each.height = 1
            for each in reversed(entries):
                for earlier in each.behind:
                    if earlier.height <= each.height:
                        earlier.height = each.height + 1
        return entry.height
