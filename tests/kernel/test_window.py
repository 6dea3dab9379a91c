"""What is under way: priorities of chains, release, and the cost and memory of long runs."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest
from playing import Handling, Kept, answer, count, event, play

from simengine.kernel import Call, Committed, Context, Engine, Event, Lookahead, Period, Rules
from simengine.kernel.state import Chain
from simengine.kernel.window import Entry, Window


async def test_the_event_with_the_longest_chain_of_dependants_has_the_greatest_priority() -> None:
    """Row 0 waits for nobody and nobody for it; rows 1, 3, 5 form a chain on agent a, rows 2 and 4 one on b."""
    priorities: dict[str, float] = {}
    writes = [("c",), ("a",), ("b",), ("a",), ("b",), ("a",)]

    async def note(call: Call) -> tuple[None, str]:
        priorities[call.id] = call.priority
        return None, "ok"

    async def handle(context: Context) -> None:
        await context.effect(answer(4), "first")
        await context.effect(note, "second")
        await count(context)

    await play(handle, [event(n, writes=agents) for n, agents in enumerate(writes)])
    assert [priorities[f"row{n}#second"] for n in range(6)] == [1, 3, 2, 2, 1, 1]


async def test_whoever_waits_for_the_children_of_an_event_counts_as_its_dependant() -> None:
    priorities: dict[str, float] = {}

    async def note(call: Call) -> tuple[None, str]:
        priorities[call.id] = call.priority
        return None, "ok"

    async def handle(context: Context) -> None:
        if context.event.lookahead is None:
            await context.read("a", "memory", by="b")
        else:
            await context.effect(answer(4), "first")
            await context.effect(note, "second")

    await play(handle, [event(0, lookahead=Lookahead(0, ("a",))), event(1, reads=("a",))])
    assert priorities == {"row0#second": 2}


async def test_a_released_agent_lets_its_dependant_go_on_while_the_event_runs() -> None:
    told = asyncio.Event()
    seen = []

    async def handle(context: Context) -> None:
        if context.event.id == "row0":
            context.write("user:1", "memory", "updated")
            context.release("user:1")

            async def reflect(call: Call) -> tuple[None, str]:
                await asyncio.wait_for(told.wait(), 5)
                return None, "ok"

            await context.effect(reflect, "reflect.item")
        else:
            seen.append((await context.read("user:1", "memory", by="user:1")).value)
            told.set()

    rows = [event(0, writes=("user:1", "item:1")), event(1, writes=("user:1",))]
    assert (await play(handle, rows)).ids == ["row0", "row1"]
    assert seen == ["updated"]


async def test_a_strict_chain_of_ten_thousand_events_takes_a_time_in_proportion() -> None:
    async def handle(context: Context) -> None:
        before = await context.read("a", "memory", by="a")
        await context.effect(answer(), "call")
        context.write("a", "memory", before.value + 1)

    begin = time.process_time()
    kept = await play(handle, (event(n, writes=("a",)) for n in range(10_000)))
    assert kept.versions[-1] == ("a/memory@10000", 10_000)
    assert time.process_time() - begin < 10  # about one second; a cost of n squared would take minutes


@pytest.mark.parametrize(
    "rules",
    [
        Rules(window=16),
        Rules(window=16, periods={"item": Period(rows=20)}),
        Rules(window=16, periods={"item": Period(span=20)}),
        Rules(window=16, batch=20),
    ],
    ids=["latest", "rows", "span", "batch"],
)
async def test_memory_does_not_grow_with_what_is_committed(rules: Rules) -> None:
    """A chain on one user that is never idle, and for each row an item that nobody touches again."""

    class Watching(Kept):
        def commit(self, record: Committed) -> None:
            if record.event.id in ("row999", "row1999"):
                gc.collect()
                kinds = [type(thing) for thing in gc.get_objects()]
                found.append((kinds.count(Entry), kinds.count(Chain)))

    async def handle(context: Context) -> None:
        await context.effect(answer(int(context.event.time) % 3), "call")  # so that the window is never empty
        await count(context)

    found: list[tuple[int, int]] = []
    rows = (event(n, writes=("user:1", f"item:{n}")) for n in range(2000))
    await Engine(Handling(handle), rows, Watching(), rules).run()
    for entries, chains in found:
        assert entries <= 17  # the window, and the one that commits
        assert chains <= 100  # what the window and the open period hold, not one for each idle item
    assert len(found) == 2


@pytest.mark.parametrize("size", [100])
def test_the_window_gives_entries_in_the_total_order(size: int) -> None:
    """Every third entry is a child that comes when the front has passed its place."""
    window = Window()
    orders = [n for n in range(size) if n % 3] + [n for n in range(size) if not n % 3]
    for order in orders:
        entry = Event(id=str(order), kind="play", order=(order,), time=order)
        window.add(Entry(entry, entry.order, entry.order, None))  # type: ignore[arg-type]
    assert [entry.order for entry in window.entries()] == [(n,) for n in range(size)]
    heads = []
    while (head := window.head()) is not None:
        heads.append(head.order)
        window.pop()
    assert heads == [(n,) for n in range(size)] and window.size == 0
