"""The one engine loop: running, resuming and replaying differ in the model, the sink and the history they give it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import msgspec
import structlog

from simengine.errors import KernelError, RunStopped
from simengine.kernel import Agent, Context, Engine, Event, Restored, Sink
from simengine.llm import Stack, Stats
from simengine.methods import Method
from simengine.scenario.setup import Setup
from simengine.world import Edge, Graph, item, user

log = structlog.get_logger("simengine")

_TICK = 0.25  # seconds between two looks at a run that goes on


class Program:
    """What the kernel runs: the method's handlers, and a graph that grows as events are issued."""

    def __init__(self, method: Method, graph: Graph) -> None:
        self._method = method
        self._graph = graph

    def handle(self, context: Context) -> Coroutine[Any, Any, None]:
        """The method's handler for the event's kind."""
        handler = self._method.handlers.get(context.event.kind)
        if handler is None:
            raise KernelError(f"the method has no handler for {context.event.kind}", event=context.event.id)
        return handler(context)

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """The method's first memories."""
        return self._method.initial(agent)

    def announce(self, event: Event) -> None:
        """Take the event's edges into the graph."""
        for edge in event.facts:
            self._graph.add(edge, event.order)


class Snapshot(msgspec.Struct, frozen=True):
    """How far a run is: events done of ``total``, calls asked of the model, events with failures, calls in flight."""

    done: int
    total: int
    calls: int
    failures: int
    in_flight: int


Observer: TypeAlias = Callable[[Snapshot], None]


@dataclass(frozen=True)
class Driven:
    """What a drive leaves behind: the method, the engine's counts, the model's, and the graph."""

    method: Method
    progress: Mapping[str, int]
    calls: Stats
    graph: Graph


async def drive(
    setup: Setup,
    stack: Stack,
    sink: Sink,
    *,
    history: Iterable[Restored] = (),
    rows: int | None = None,
    tick: Callable[[], None] | None = None,
    observe: Observer | None = None,
    interruptible: bool = False,
) -> Driven:
    """Run a setup to its end, or over its first ``rows`` source events; closes the stack, not the sink.

    ``tick`` is called every now and then (a log is flushed there), ``observe`` with a snapshot as often. With
    ``interruptible``, the first SIGINT or SIGTERM stops the run in good order, a second one at once. Raises
    :class:`RunStopped` where the run was stopped.
    """
    async with stack:
        method = setup.method(stack)
        graph = _history_graph(setup)
        source = islice(setup.source(method), rows)
        engine = Engine(Program(method, graph), source, sink, setup.rules, idle=stack.flush)

        def stop(reason: RunStopped) -> None:
            stack.stop_sending()
            engine.stop(reason)

        look = _looker(engine, stack, setup.total(), tick, observe)
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
    return Driven(method, engine.progress, stack.stats(), graph)


def _looker(
    engine: Engine, stack: Stack, total: int, tick: Callable[[], None] | None, observe: Observer | None
) -> Callable[[], None]:
    def look() -> None:
        try:
            if tick is not None:
                tick()
        except RunStopped as stopped:  # the log cannot be written: a full disk
            engine.stop(stopped)
        if observe is not None:
            counts, calls = engine.progress, stack.stats()
            observe(Snapshot(counts["committed"], total, calls.asked, counts["failed"], calls.in_flight))

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
