"""The one engine loop: running, resuming and replaying differ in the model, the sink and the history they give it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import structlog

from simengine.errors import KernelError, RunStopped
from simengine.kernel import Agent, Context, Engine, Event, Restored, Sink
from simengine.llm import Rates, Stack, Stats
from simengine.scenario.cast import Cast
from simengine.scenario.setup import Setup
from simengine.world import Edge, Graph, item, kind, user

log = structlog.get_logger("simengine")

_TICK = 0.25  # seconds between two looks at a run that goes on


class Program:
    """What the kernel runs: the handlers of all who act, and a graph that grows as events are issued.

    With ``only``, the ids of events, all others do nothing. ``children`` counts the events issued that no source gave.
    """

    def __init__(self, cast: Cast, graph: Graph, only: Collection[str] | None = None) -> None:
        self._cast = cast
        self._graph = graph
        self._only = only
        self.children = 0

    def handle(self, context: Context) -> Coroutine[Any, Any, None]:
        """The handler for the event's kind."""
        if self._only is not None and context.event.id not in self._only:
            return _nothing()
        handler = self._cast.handlers.get(context.event.kind)
        if handler is None:
            raise KernelError(f"there is no handler for {context.event.kind}", event=context.event.id)
        return handler(context)

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """The method's first memories; a venue remembers nothing."""
        return {} if kind(agent) == "venue" else self._cast.method.initial(agent)

    def announce(self, event: Event) -> None:
        """Take the event's edges into the graph."""
        self.children += event.parent is not None
        for edge in event.facts:
            self._graph.add(edge, event.order)


async def _nothing() -> None:
    """What an event does that is not to be executed."""


class Snapshot(msgspec.Struct, frozen=True):
    """How far a run is: events done of ``total``, calls asked of the model, events with failures, calls in flight.

    An event that others bring about counts in ``total`` once it is issued, as nobody knows of it before.
    ``waiting`` calls queue for a slot or a limit; ``rates`` is how fast calls are sent, beside the known limits.
    ``pausing`` calls failed and will be sent again.
    ``usd`` is what the whole run has cost so far, as far as prices are known.
    """

    done: int
    total: int
    calls: int
    failures: int
    in_flight: int
    waiting: int
    rates: Rates
    usd: float
    pausing: int = 0


Observer: TypeAlias = Callable[[Snapshot], None]


@dataclass(frozen=True)
class Driven:
    """What a drive leaves behind: who acted, the engine's counts, the model's, and the graph."""

    cast: Cast
    progress: Mapping[str, int]
    calls: Stats
    graph: Graph


async def drive(
    setup: Setup,
    stack: Stack,
    sink: Sink,
    *,
    history: Iterable[Restored] = (),
    only: Collection[str] | None = None,
    tick: Callable[[], None] | None = None,
    observe: Observer | None = None,
    interruptible: bool = False,
    stopping: Callable[[], None] = lambda: None,
) -> Driven:
    """Run a setup to its end, or execute ``only`` some of its events; closes the stack, not the sink.

    ``tick`` is called every now and then (a log is flushed there), ``observe`` with a snapshot as often. With
    ``interruptible``, the first SIGINT or SIGTERM stops the run in good order, a second one at once; ``stopping`` is
    called with the first, to wake whoever waits for a person. Raises :class:`RunStopped` where the run was stopped.
    """
    async with stack:
        cast = Cast(setup, stack)
        graph = _history_graph(setup)
        source = cast.source()
        program = Program(cast, graph, only)
        engine = Engine(program, source, sink, setup.rules, idle=stack.flush)

        def stop(reason: RunStopped) -> None:
            stack.stop_sending()
            stopping()
            engine.stop(reason)

        known = cast.total() if observe is not None else 0
        look = _looker(engine, stack, lambda: known + program.children, tick, observe)
        ticker = asyncio.create_task(_tick(look))
        try:
            with _signals(stop) if interruptible else contextlib.nullcontext():
                await engine.run(history)
        except RunStopped as stopped:
            if engine.abandoned:
                stopped.where["abandoned calls"] = engine.abandoned
            raise
        finally:
            ticker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticker
            look()
    return Driven(cast, engine.progress, stack.stats(), graph)


def _looker(
    engine: Engine,
    stack: Stack,
    total: Callable[[], int],
    tick: Callable[[], None] | None,
    observe: Observer | None,
) -> Callable[[], None]:
    def snapshot() -> Snapshot:
        counts, calls = engine.progress, stack.stats()
        return Snapshot(
            done=counts["committed"],
            total=total(),
            calls=calls.asked,
            failures=counts["failed"],
            in_flight=calls.in_flight,
            waiting=calls.waiting,
            rates=calls.rates,
            usd=calls.spending.usd,
            pausing=calls.pausing,
        )

    def look() -> None:
        try:
            if tick is not None:
                tick()
        except RunStopped as stopped:  # the log cannot be written: a full disk
            engine.stop(stopped)
        if observe is not None:
            observe(snapshot())

    return look


async def _tick(look: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(_TICK)
        look()


@contextlib.contextmanager
def _signals(stop: Callable[[RunStopped], None]) -> Iterator[None]:
    """Turn the first signal into a stop in good order, and the second into a cancellation."""
    loop, task, seen = asyncio.get_running_loop(), asyncio.current_task(), 0

    def received(number: signal.Signals) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            stop(RunStopped("the run was stopped", signal=number.name))
            log.warning("stopping: answers under way are waited for; once more to stop at once", signal=number.name)
        elif task is not None:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _history_graph(setup: Setup) -> Graph:
    """A graph that holds the interactions which are given but not re-enacted: edges without an event."""
    graph = Graph()
    history = setup.dataset.history
    for row, interaction in enumerate(history):
        edge = Edge(user(interaction.user), item(interaction.item), "interaction", interaction.time)
        graph.add(edge, (0, *history.order(row)))
    return graph
