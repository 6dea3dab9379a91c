"""Issue: source rows and children merged into the total order, cells registered, lookahead kept. Never waits."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from simengine.errors import KernelError
from simengine.kernel.draft import Draft
from simengine.kernel.event import Agent, Event, Order
from simengine.kernel.state import Blocker, State
from simengine.kernel.visibility import Calendar
from simengine.kernel.window import Entry


class Reservation(Blocker):
    """The agents that descendants of one event may still write, at or behind ``start``.

    While the event runs, ``start`` is what its lookahead promised. Once it has ended, ``start`` is the place of its
    first child that has not been issued, and with the last of these the reservation goes.
    """

    __slots__ = ("agents", "pending", "start")

    def __init__(self, event: Event, agents: Iterable[Agent], delay: float) -> None:
        self.waiters = []
        self.agents = tuple(agents)
        self.start: Order = (event.order[0], event.time + delay) if delay > 0 else event.order
        self.pending: list[Order] = []


class Issuer:
    """Hands out the events of a run in the total order, and lets children in at their places.

    ``source`` yields events in strictly rising order; ``announce`` is called with each event as it is issued, before
    anything of it runs (the graph takes in its edges there). ``wake`` resumes those who waited for a reservation.
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
        self._queue: list[tuple[Order, Event]] = []
        self._front: Order = ()
        self.reserved: dict[Agent, list[Reservation]] = {}
        self._by_event: dict[str, Reservation] = {}
        self.issued = 0

    def peek(self) -> Order | None:
        """The place of the event that comes next; ``None`` while none is known (a child may still come)."""
        source = self._next
        if self._queue and (source is None or self._queue[0][0] < source.order):
            return self._queue[0][0]
        return source.order if source is not None else None

    def next(self) -> Event | None:
        """The next event in the total order, or ``None`` at the end; a child beyond the front waits its turn here."""
        event = self._next
        if self._queue and (event is None or self._queue[0][0] < event.order):
            event = heapq.heappop(self._queue)[1]
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
            reservation = Reservation(event, event.lookahead.writes, event.lookahead.delay)
            self._by_event[event.id] = reservation
            for agent in reservation.agents:
                self.reserved.setdefault(agent, []).append(reservation)
        self._announce(event)
        self.issued += 1
        if event.parent is not None:
            self._child_issued(event)
        return entry

    def register(self, entry: Entry) -> None:
        """Make the cells of what the event may write: before anything else is issued, or steps."""
        for agent in entry.event.writes:
            entry.cells[agent] = self._state.register(agent, entry.order, entry)

    def admit(self, parent: Event, children: Iterable[Event]) -> list[Event]:
        """The parent has ended: queue its children; returns those that stand before the front, to be issued now."""
        if parent.lookahead is None:
            return []
        reservation = self._by_event[parent.id]
        now = []
        for child in children:
            reservation.pending.append(child.order)
            if child.order < self._front:
                now.append(child)
            else:
                heapq.heappush(self._queue, (child.order, child))
        reservation.pending.sort()
        self._advance(parent.id, reservation)
        return now

    def blocking(self, agent: Agent, as_of: Order) -> Reservation | None:
        """A reservation under which ``agent`` may still be written before ``as_of``, if there is one."""
        for reservation in self.reserved.get(agent, ()):
            if reservation.start < as_of:
                return reservation
        return None

    def _child_issued(self, child: Event) -> None:
        parent = str(child.parent)
        reservation = self._by_event[parent]
        reservation.pending.remove(child.order)
        self._advance(parent, reservation)

    def _advance(self, event_id: str, reservation: Reservation) -> None:
        if reservation.pending:
            reservation.start = reservation.pending[0]
        else:
            del self._by_event[event_id]
            for agent in reservation.agents:
                holders = self.reserved[agent]
                holders.remove(reservation)
                if not holders:
                    del self.reserved[agent]
        self._wake(reservation)
