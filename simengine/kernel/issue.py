"""Issue: source rows and children merged into the total order, cells registered, lookahead kept. Never waits."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterable, Iterator

from simengine.errors import KernelError
from simengine.kernel.draft import Draft
from simengine.kernel.event import Agent, Event, Lookahead, Order
from simengine.kernel.state import Blocker, State
from simengine.kernel.visibility import Calendar
from simengine.kernel.window import Entry


class Reservation(Blocker):
    """The agents that descendants of one event may write, at or behind ``start``, for as long as the event runs."""

    __slots__ = ("agents", "owner", "start")

    def __init__(self, owner: Entry, promise: Lookahead) -> None:
        self.waiters = []
        self.owner = owner
        self.agents = tuple(dict.fromkeys(promise.writes))
        # a delay that the clock's precision swallows must not make the event wait for itself
        self.start: Order = max(owner.order, (owner.order[0], owner.event.time + promise.delay))


class Issuer:
    """Hands out the events of a run in the total order, and lets children in at their places.

    ``source`` yields events in strictly rising order; ``announce`` is called with each event as it is issued, before
    anything of it runs (the graph takes in its edges there). ``wake`` resumes those who waited for a reservation.

    A reader may rely on what stands before its place because every writer there has its cells, or is overdue, or
    descends from an event that runs and holds a reservation; and because overdue events are issued before any handler
    is stepped. Children beyond the front need no reservation: nobody has yet been issued who could see them.
    """

    def __init__(
        self,
        source: Iterable[Event],
        state: State,
        calendar: Calendar,
        announce: Callable[[Event], None],
        wake: Callable[[Blocker], None],
    ) -> None:
        self._source: Iterator[Event] = iter(source)
        self._next: Event | None = next(self._source, None)
        self._state = state
        self._calendar = calendar
        self._announce = announce
        self._wake = wake
        self._front: Order = ()
        self._held: dict[Order, Reservation] = {}
        self.queue: list[tuple[Order, Event]] = []
        self.reserved: dict[Agent, list[Reservation]] = {}
        self.issued = 0

    def overdue(self) -> Event | None:
        """The first child that stands before the front, if any: it must be issued before any handler is stepped."""
        return heapq.heappop(self.queue)[1] if self.queue and self.queue[0][0] < self._front else None

    def peek(self) -> Order | None:
        """The place of the event that comes next; ``None`` while none is known (a child may still come)."""
        source = self._next
        if self.queue and (source is None or self.queue[0][0] < source.order):
            return self.queue[0][0]
        return source.order if source is not None else None

    def next(self) -> Event | None:
        """The next event in the total order, or ``None`` at the end; a child beyond the front waits its turn here."""
        event = self._next
        if self.queue and (event is None or self.queue[0][0] < event.order):
            event = heapq.heappop(self.queue)[1]
        elif event is not None:
            self._next = following = next(self._source, None)
            if following is not None and not event.order < following.order:
                raise KernelError(
                    f"source events must come in rising order, but {following.id} follows",
                    remedy="sort the interactions by time and break ties by a rule on their ids",
                    event=event.id,
                )
        else:
            return None
        self._front = event.order
        return event

    def issue(self, event: Event) -> Entry:
        """Announce the event, and keep what its descendants may write. Its own cells are made by ``register``."""
        batch = self._calendar.open_row(event) if event.source else None
        entry = Entry(event, event.order, batch or event.order, Draft(""))
        if event.lookahead is not None:
            self._reserve(entry, event.lookahead)
        self._announce(event)
        self.issued += 1
        return entry

    def register(self, entry: Entry) -> None:
        """Make the cells of what the event may write: before anything else is issued, or steps."""
        for agent in entry.event.writes:
            entry.cells[agent] = self._state.register(agent, entry.order, entry)

    def admit(self, parent: Event, children: Iterable[Event]) -> None:
        """The parent has ended: queue its children, and let its reservation go."""
        reservation = self._held.pop(parent.order)
        for child in children:
            heapq.heappush(self.queue, (child.order, child))
        for agent in reservation.agents:
            holders = self.reserved[agent]
            holders.remove(reservation)
            if not holders:
                del self.reserved[agent]
        self._wake(reservation)

    def blocking(self, agent: Agent, as_of: Order) -> Reservation | None:
        """A reservation under which ``agent`` may still be written before ``as_of``, if there is one."""
        holders = self.reserved.get(agent)
        return holders[0] if holders is not None and holders[0].start < as_of else None

    def _reserve(self, entry: Entry, promise: Lookahead) -> None:
        if not promise.delay >= 0:
            raise KernelError(
                f"a lookahead of {promise.delay} would let a child stand before its parent",
                remedy="promise a least delay of 0 or more",
                event=entry.event.id,
            )
        reservation = self._held[entry.order] = Reservation(entry, promise)
        for agent in reservation.agents:
            insort(self.reserved.setdefault(agent, []), reservation, key=_start)


def _start(reservation: Reservation) -> Order:
    return reservation.start
