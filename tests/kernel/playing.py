"""What the kernel's pointed tests share: programs made of one function, events in a line, a sink that keeps records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from simengine.errors import UnitFailed
from simengine.kernel import Call, Committed, Context, Engine, Event, Rules

Handler = Callable[[Context], Awaitable[None]]
Effect = Callable[[Call], Awaitable[tuple[Any, str]]]


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[Committed] = []

    def commit(self, record: Committed) -> None:
        self.records.append(record)

    @property
    def ids(self) -> list[str]:
        return [record.event.id for record in self.records]

    @property
    def versions(self) -> list[tuple[str, Any]]:
        return [(version.ref, version.value) for record in self.records for version in record.versions]


class Handling:
    """A program whose events all do what one function says; every agent has a ``memory``, which starts at 0."""

    def __init__(self, handle: Handler) -> None:
        self.handle = handle

    def initial(self, agent: str) -> dict[str, Any]:
        return {"memory": 0}

    def announce(self, event: Event) -> None: ...


def event(number: int, time: float | None = None, **more: Any) -> Event:
    """A source row at its number in the order; what it writes is its own business."""
    time = number if time is None else time
    more = {"kind": "play", "source": True, **more}
    return Event(id=f"row{number}", order=(0, time, number), time=time, **more)


async def play(handle: Handler, events: Iterable[Event], rules: Rules | None = None) -> Kept:
    kept = Kept()
    await asyncio.wait_for(Engine(Handling(handle), events, kept, rules).run(), 20)
    return kept


def answer(turns: int = 0, fails: bool = False) -> Effect:
    """An effect that answers, or fails, after so many turns of the event loop."""

    async def run(call: Call) -> tuple[str, str]:
        for _ in range(turns):
            await asyncio.sleep(0)
        if fails:
            raise UnitFailed("as the test says", reason="refused")
        return call.id, "answered"

    return run


async def count(context: Context) -> None:
    """Read each agent that the event may write, and write one more."""
    for agent in context.event.writes:
        before = await context.read(agent, "memory", by=agent)
        context.write(agent, "memory", before.value + 1)
