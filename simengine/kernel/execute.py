"""Execution: handlers are stepped here, by hand, until they need something; only effects are asyncio tasks.

A handler that finds what it reads runs through without a task of its own; one that has to wait is parked at a
:class:`~simengine.kernel.state.Blocker` and resumed when that is woken. So what a handler may await is the context,
and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from simengine.errors import KernelError, RunStopped
from simengine.kernel.event import Order
from simengine.kernel.state import Blocker

Handler: TypeAlias = Coroutine[Any, None, Any]


class Call(msgspec.Struct, frozen=True, gc=False):
    """What an effect is told of itself: its stable id, and how urgent it is (greater is sooner)."""

    id: str
    priority: float


class Pending(Blocker):
    """An effect under way: later its value and what the log keeps of it, or its error."""

    __slots__ = ("error", "stamp", "value")

    def __init__(self) -> None:
        self.waiters = []
        self.value: Any = None
        self.stamp = ""
        self.error: BaseException | None = None


class Join(Blocker):
    """Branches that run side by side: woken when the last of them has settled."""

    __slots__ = ("left", "results")

    def __init__(self, size: int) -> None:
        self.waiters = []
        self.left = size
        self.results: list[Any] = [None] * size


class Routine:
    """A handler, or a branch of one, with what to do at its end."""

    __slots__ = ("coroutine", "done")

    def __init__(self, coroutine: Handler, done: Callable[[Any, BaseException | None], None]) -> None:
        self.coroutine = coroutine
        self.done = done


class Executor:
    """Steps routines and owns the tasks of their effects. ``signal`` is called when an effect has ended."""

    def __init__(self, signal: Callable[[], None]) -> None:
        self._signal = signal
        self._parked: dict[int, Routine] = {}
        self.ready: deque[Routine] = deque()
        self.tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        self.limit: Order | None = None

    @property
    def running(self) -> bool:
        """Whether an effect is under way that will wake somebody."""
        return any(not task.done() for task in self.tasks)

    def start(self, coroutine: Handler, done: Callable[[Any, BaseException | None], None]) -> None:
        """Run a handler, from where it stands, up to its next wait or to its end."""
        try:
            blocker = coroutine.send(None)
        except StopIteration as end:
            done(end.value, None)
        except Exception as error:
            done(None, error)
        else:
            self._park(Routine(coroutine, done), blocker)

    def wake(self, blocker: Blocker) -> None:
        """Let all who wait here look again."""
        if blocker.waiters:
            self.ready.extend(blocker.waiters)
            blocker.waiters.clear()

    def step(self) -> None:
        """Step the first of those that are ready."""
        routine = self.ready.popleft()
        del self._parked[id(routine)]
        self.start(routine.coroutine, routine.done)

    def fork(self, coroutines: Sequence[Handler], failed: Callable[[BaseException], None]) -> Join:
        """Run branches side by side. What a branch raises beyond its recorded outcome goes to ``failed``."""
        join = Join(len(coroutines))
        for at, coroutine in enumerate(coroutines):
            self.start(coroutine, self._joiner(join, at, failed))
        return join

    def effect(self, order: Order, call: Call, run: Callable[[Call], Awaitable[tuple[Any, str]]]) -> Pending:
        """Start an effect of the event at ``order`` as a task.

        Once closed, and at or behind ``limit``, nothing starts any more: the caller stays parked.
        """
        pending = Pending()
        if not self.closed and (self.limit is None or order < self.limit):
            task = asyncio.get_running_loop().create_task(self._attend(pending, call, run), name=call.id)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return pending

    async def finish(self, grace: float) -> None:
        """Start nothing more, and give running effects ``grace`` seconds to end."""
        self.closed = True
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=grace)

    async def abandon(self) -> int:
        """Cancel what still runs and close what is parked; returns the number of effects cancelled."""
        self.closed = True
        running = [task for task in self.tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        for routine in list(self._parked.values()):
            with suppress(Exception):  # its event will not be committed: the run has its reason to end already
                routine.coroutine.close()
        self._parked.clear()
        self.ready.clear()
        return len(running)

    def _park(self, routine: Routine, blocker: object) -> None:
        if isinstance(blocker, Blocker):
            blocker.waiters.append(routine)
            self._parked[id(routine)] = routine
        else:
            routine.coroutine.close()
            routine.done(None, _foreign(blocker))

    def _joiner(
        self, join: Join, at: int, failed: Callable[[BaseException], None]
    ) -> Callable[[Any, BaseException | None], None]:
        def done(value: Any, error: BaseException | None) -> None:
            if error is not None:
                failed(error)
                return
            join.results[at] = value
            join.left -= 1
            if not join.left:
                self.wake(join)

        return done

    async def _attend(self, pending: Pending, call: Call, run: Callable[[Call], Awaitable[tuple[Any, str]]]) -> None:
        try:
            pending.value, pending.stamp = await run(call)
        except asyncio.CancelledError:
            pending.error = RunStopped(
                "a call was cancelled", remedy="resume the run: the call is made again", call=call.id
            )
        except Exception as error:
            pending.error = error
        self.wake(pending)
        self._signal()


def _foreign(awaited: object) -> KernelError:
    what = "a bare yield (asyncio.sleep(0), for instance)" if awaited is None else f"a {type(awaited).__name__}"
    return KernelError(
        f"a handler awaited {what}, which is not of the kernel",
        remedy="await only the context's own methods: put what takes time into context.effect(...)",
    )
