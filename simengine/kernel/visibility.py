"""Where in the order a read looks: at the latest version, at the last publication, or at the start of a batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from simengine.kernel.event import Agent, Event, Order, Period


def kind_of(agent: Agent) -> str:
    """The kind of an agent: what stands before the colon in its name (``item`` for ``item:42``)."""
    return agent.partition(":")[0]


class Calendar:
    """The boundaries of publishing periods and of batches, as places in the total order.

    A boundary by time is the start of the period that holds the event's time. A boundary by rows is the place of every
    n-th source row. The start of a phase is always a boundary. Batches count the source rows of their phase.

    ``periods`` gives a period for each kind of agent whose versions are published; ``batch`` is the number of source
    rows that read one snapshot (0: every event reads what came before it).
    """

    def __init__(self, periods: Mapping[str, Period] | None = None, batch: int = 0) -> None:
        self._periods = dict(periods or {})
        self._batch = batch
        self._rows = 0
        self._rows_of_phase = 0
        self._phase: object = None
        self._marks: dict[int, list[Order]] = {p.rows: [] for p in self._periods.values() if p.rows}
        self._starts: list[Order] = []
        self.batched = bool(batch)
        self.latest_only = not self._periods and not batch

    def open_row(self, event: Event) -> Order | None:
        """Count a source row, in order; returns the place as of which its batch reads, if there are batches."""
        if self.latest_only:
            return None
        phase = event.order[0]
        if phase != self._phase:
            self._phase, self._rows_of_phase = phase, 0
        for every, marks in self._marks.items():
            if self._rows % every == 0:
                marks.append(event.order)
        if self._batch and self._rows_of_phase % self._batch == 0:
            self._starts.append(event.order)
        self._rows += 1
        self._rows_of_phase += 1
        return self._starts[-1] if self._batch else None

    def publishes(self, agent: Agent) -> bool:
        """Whether others see only what the agent has published."""
        return bool(self._periods) and kind_of(agent) in self._periods

    def published(self, agent: Agent, order: Order) -> Order | None:
        """The place as of which others see ``agent`` at ``order``, or ``None`` where they see its latest version."""
        period = self._periods.get(kind_of(agent)) if self._periods else None
        if period is None:
            return None
        if period.rows:
            return self._last(self._marks[period.rows], order)
        return (order[0], order[1] // period.span * period.span)

    def forget(self, order: Order) -> None:
        """The event at ``order`` commits: let the boundaries go that nobody behind it can ask for."""
        for marks in (*self._marks.values(), self._starts):
            del marks[: max(0, bisect_right(marks, order) - 1)]

    def horizon(self, agent: Agent, order: Order) -> Order | None:
        """The earliest place as of which an event at or behind ``order`` may still look at ``agent``."""
        if self.latest_only:
            return None
        published = self.published(agent, order)
        if not self._batch:
            return published
        start = self._last(self._starts, order)
        return start if published is None else min(start, published)

    @staticmethod
    def _last(marks: list[Order], order: Order) -> Order:
        at = bisect_right(marks, order)
        start_of_phase: Order = (order[0],)
        return max(marks[at - 1], start_of_phase) if at else start_of_phase
