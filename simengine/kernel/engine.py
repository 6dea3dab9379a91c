"""The engine: one loop that issues, executes and commits events. Runs, resumes and replays all go through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from simengine.errors import KernelError, LogError, RunStopped, UnitFailed
from simengine.kernel.commit import Committer, Sink
from simengine.kernel.context import Context, Services
from simengine.kernel.event import Agent, Event, Order, Period
from simengine.kernel.execute import Executor
from simengine.kernel.issue import Issuer
from simengine.kernel.state import State, Version
from simengine.kernel.visibility import Calendar
from simengine.kernel.window import Entry, Window

_EVENTS_A_TURN = 256


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine is told beside its events.

    ``window`` bounds the events under way; ``stop_on_error`` ends the run at the earliest event with a failed unit;
    ``periods`` and ``batch`` are those of :class:`~simengine.kernel.visibility.Calendar`; ``grace`` is how many
    seconds calls in flight are given when the run stops.
    """

    seed: int = 0
    window: int = 4096
    stop_on_error: bool = False
    periods: Mapping[str, Period] = {}
    batch: int = 0
    grace: float = 10.0


class Program(Protocol):
    """What happens in events, as far as the kernel must know it."""

    def handle(self, context: Context) -> Coroutine[Any, Any, None]:
        """What the event of ``context`` does."""

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """The values that an agent's slots start with."""

    def announce(self, event: Event) -> None:
        """Called with each event as it is issued, before anything of it runs."""


class Restored(msgspec.Struct, frozen=True):
    """What the log holds of one event: enough to rebuild the state behind it."""

    id: str
    versions: Sequence[Version] = ()
    children: Sequence[Event] = ()
    failed: bool = False


class Engine:
    """Runs a program over a source of events.

    ``source`` yields events in strictly rising order; ``sink`` receives them committed; ``idle`` is called when nothing
    can be done before an effect ends (what is kept for company may be sent then). An engine is used once, inside
    a running event loop.
    """

    def __init__(
        self,
        program: Program,
        source: Iterable[Event],
        sink: Sink,
        rules: Rules | None = None,
        idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._program = program
        self._idle = idle
        self._rules = rules = rules or Rules()
        self._signal = asyncio.Event()
        self._window = Window()
        self._executor = Executor(self._signal.set)
        self._state, self._calendar = State(program.initial), Calendar(rules.periods, rules.batch)
        self._issuer = Issuer(source, self._state, self._calendar, program.announce, self._executor.wake)
        self._services = Services(
            rules.seed, self._state, self._calendar, self._issuer, self._window, self._executor, self._broken
        )
        self._committer = Committer(self._state, self._calendar, sink)
        self._stopped: BaseException | None = None
        self._limit: Order | None = None
        self.abandoned = 0

    async def run(self, history: Iterable[Restored] = ()) -> None:
        """Take in ``history``, which is a prefix of this very run, then go on to the end.

        Raises :class:`RunStopped` where the run was stopped; what was committed by then is a valid prefix of it.
        """
        try:
            try:
                await self._loop(history)
            except Exception as error:
                self.stop(error)
            await self._executor.finish(self._rules.grace)
            self._step()
            self._commit()
        finally:
            self.abandoned = await self._executor.abandon()
        if self._stopped is not None:
            raise self._stopped

    def stop(self, reason: BaseException) -> None:
        """Stop in good order: nothing new starts, effects that run get their grace, the log stays a prefix."""
        if self._stopped is None:
            self._stopped = reason
        self._executor.closed = True
        self._signal.set()

    @property
    def progress(self) -> Mapping[str, int]:
        """Counts for a display: events issued, under way, committed, failed; effects running; losses of batches."""
        committer = self._committer
        return {
            "issued": self._issuer.issued,
            "under_way": self._window.size,
            "committed": committer.committed,
            "failed": committer.failed,
            "running": len(self._executor.tasks),
            "stale": committer.stale,
            "lost": committer.lost,
        }

    async def _loop(self, history: Iterable[Restored]) -> None:
        self._restore(history)
        while self._advance():
            await asyncio.sleep(0)  # effects that were begun in this turn start only now
            if not self._may_issue():
                if not self._signal.is_set():
                    self._idle()
                await self._signal.wait()
            self._signal.clear()

    def _advance(self) -> bool:
        """Issue, step and commit as far as that goes without waiting; returns whether the run goes on."""
        executor, issuer, window, size = self._executor, self._issuer, self._window, self._rules.window
        for _ in range(_EVENTS_A_TURN):
            if executor.ready or issuer.queue:
                self._step()
            if window.size:
                self._commit()
            if self._stopped is not None or window.size >= size:
                break
            if self._limit is not None and not self._may_issue():
                break
            event = issuer.next()
            if event is None:
                break
            self._begin(event)
        self._step()
        self._commit()
        return self._goes_on()

    def _goes_on(self) -> bool:
        head = self._window.head()
        if self._limit is not None and head is not None and head.order >= self._limit and self._stopped is None:
            self._stopped = RunStopped(
                "a unit failed, and the scenario says to stop at the first failure",
                remedy="see the failures in the run's log; `on_error: skip` goes on past them",
                event=head.event.id,
            )
        if self._stopped is not None or (head is None and self._issuer.peek() is None):
            return False
        if not (self._may_issue() or self._executor.running):
            raise KernelError(
                "the run stands still: a handler waits for something that no event will bring",
                remedy="a handler must not wait for its own child, nor swallow the kernel's errors",
                event=head.event.id if head else None,
            )
        return True

    def _may_issue(self) -> bool:
        order = self._issuer.peek()
        return (
            order is not None
            and self._window.size < self._rules.window
            and self._stopped is None
            and (self._limit is None or order < self._limit)
        )

    def _step(self) -> None:
        """Step the handlers that can go on until none is left, each time after the issue of what is overdue."""
        while True:
            if (child := self._issuer.overdue()) is not None:
                self._begin(child)
            elif self._executor.ready:
                self._executor.step()
            else:
                return

    def _begin(self, event: Event) -> None:
        """Run a new event's handler as far as it goes; if it ends at once and stands alone, it is committed at once."""
        try:
            entry = self._issuer.issue(event)
            context = Context(self._services, entry, entry.draft, event.writes, None)
            self._executor.start(self._program.handle(context), partial(self._ended, entry))
        except Exception as error:
            self._broken(event, error)
            return
        if entry.done and not self._window.size and self._calendar.latest_only:
            self._commit_one(entry)
            return
        if not entry.cells:
            self._issuer.register(entry)
        if entry.done:
            self._finalise(entry)
        elif self._window.size:
            self._link(entry)
        self._window.add(entry)

    def _link(self, entry: Entry) -> None:
        """Note whom this entry's reads wait for, so that long chains can go first."""
        event, behind = entry.event, []
        for agent in (*event.writes, *event.reads):
            published = None if agent in entry.cells else self._calendar.published(agent, entry.order)
            cell = self._state.last_writer(agent, published or entry.as_of)
            if cell is not None and cell.versions is None:
                behind.append(cell.owner)
            reservation = self._issuer.blocking(agent, published or entry.as_of)
            if reservation is not None:
                behind.append(reservation.owner)
        entry.behind = behind

    def _ended(self, entry: Entry, _value: None, error: BaseException | None) -> None:
        draft = entry.draft
        if error is not None:
            if not isinstance(error, UnitFailed):
                self._broken(entry.event, error)
                return
            draft.forget()
            draft.units.append(("", error.reason))
        self._finalise(entry)
        if self._rules.stop_on_error and any(outcome != "ok" for _, outcome in draft.units):
            self._end_before(entry.order)
        if entry.event.lookahead is not None:
            self._issuer.admit(entry.event, draft.children)
        entry.done = True

    def _finalise(self, entry: Entry) -> None:
        """Show what the event has written to those who wait for it, as far as it was not released before."""
        for agent, cell in entry.cells.items():
            if cell.versions is None:
                cell.versions = entry.draft.writes.get(agent, ())
                self._executor.wake(cell)

    def _end_before(self, order: Order) -> None:
        """Let the run end with the last event before this place."""
        if self._limit is None or order < self._limit:
            self._limit = self._executor.limit = order

    def _broken(self, event: Event, error: BaseException) -> None:
        """Something that is no outcome of the event befell it: the run stops, and its log ends before the event."""
        if self._stopped is None and not isinstance(error, RunStopped):
            error.add_note(f"in event {event.id}")
        self._end_before(event.order)
        self.stop(error)

    def _commit(self) -> None:
        window, limit = self._window, self._limit
        while (head := window.head()) is not None and head.done and (limit is None or head.order < limit):
            window.pop()
            self._commit_one(head)
            limit = self._limit

    def _commit_one(self, entry: Entry) -> None:
        """Commit an event; if the log cannot take it, the run ends before it."""
        if self._limit is not None and entry.order >= self._limit:
            self._window.add(entry)
            return
        try:
            self._committer.commit(entry)
        except Exception as error:
            self._end_before(entry.order)
            self.stop(error)

    def _restore(self, history: Iterable[Restored]) -> None:
        for record in history:
            event = self._issuer.next()
            if event is None or event.id != record.id:
                raise LogError(
                    f"the log goes on with another event than the scenario, which has {event.id if event else 'none'}",
                    remedy="resume with the scenario, data and version that the run was started with",
                    event=record.id,
                )
            entry = self._issuer.issue(event)
            self._issuer.register(entry)
            for version in record.versions:
                entry.draft.writes.setdefault(version.agent, []).append(version)
            self._finalise(entry)
            if event.lookahead is not None:
                self._issuer.admit(event, record.children)
            self._committer.restore(entry, record.failed)
