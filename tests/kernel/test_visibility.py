"""Reading rules: publishing periods and batches, each on an example small enough to work out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from playing import Handling, Kept, answer, count, event, play

from simengine.kernel import Context, Engine, Event, Period, Rules


def seen_by(values: dict[str, Any]) -> Any:
    """A handler that notes what a visitor sees of the item, then counts the item up from its own latest."""

    async def handle(context: Context) -> None:
        await context.effect(answer(len(context.event.id) % 3), "think")
        values[context.event.id] = (await context.read("item:1", "memory", by="user:1")).value
        await count(context)

    return handle


def at(number: int, time: float, phase: int = 0) -> Event:
    return Event(
        id=f"row{number}", kind="play", order=(phase, time, number), time=time, writes=("item:1",), source=True
    )


PERIODS = [
    # every third source row is a boundary: rows 0, 3, 6
    (Period(rows=3), [at(n, n) for n in range(8)], [0, 0, 0, 3, 3, 3, 6, 6]),
    # periods of 10: boundaries at 0, 10, 30; what happens at a boundary is not yet to be seen there
    (Period(span=10), [at(0, 3), at(1, 9), at(2, 10), at(3, 10), at(4, 19), at(5, 30)], [0, 0, 2, 2, 2, 5]),
    # the start of a phase is a boundary, in the middle of a period of either kind
    (Period(rows=10), [at(0, 0), at(1, 1), at(2, 0, 1), at(3, 1, 1)], [0, 0, 2, 2]),
    (Period(span=10), [at(0, 0), at(1, 1), at(2, 14, 1), at(3, 15, 1)], [0, 0, 2, 2]),
]


@pytest.mark.parametrize(("period", "rows", "expected"), PERIODS)
@pytest.mark.parametrize("window", [1, 4096])
async def test_others_see_the_last_publication(
    period: Period, rows: list[Event], expected: list[int], window: int
) -> None:
    values: dict[str, Any] = {}
    kept = await play(seen_by(values), rows, Rules(periods={"item": period}, window=window))
    assert [values[row.id] for row in rows] == expected
    assert [value for _, value in kept.versions] == list(range(1, len(rows) + 1))  # of itself it sees the latest


async def test_unpublished_writes_of_its_own_event_are_hidden_from_others() -> None:
    async def handle(context: Context) -> None:
        context.write("item:1", "memory", 7)
        context.append("item:1", "reviews", "fine")
        assert (await context.read("item:1", "memory", by="user:1")).value == 0
        assert (await context.read("item:1", "memory", by="item:1")).value == 7
        assert await context.entries("item:1", "reviews", by="user:1") == []
        assert [v.value for v in await context.entries("item:1", "reviews", by="item:1")] == ["fine"]

    assert len((await play(handle, [at(0, 0)], Rules(periods={"item": Period(rows=5)}))).records) == 1


async def test_what_a_batch_loses_is_counted() -> None:
    """Batches of four rows. In the first, row 1 reads what row 0 changed and overwrites it, row 2 touches another
    agent, row 3 only appends to what is stale; in the second nothing is stale."""

    async def handle(context: Context) -> None:
        if context.event.id == "row3":
            context.append("a", "diary", "unseen")
        else:
            await count(context)

    writes = [("a",), ("a",), ("b",), ("a",), ("a",), ("b",)]
    kept = Kept()
    rows = [event(n, writes=agents) for n, agents in enumerate(writes)]
    engine = Engine(Handling(handle), rows, kept, Rules(batch=4))
    await engine.run()
    assert kept.versions == [
        ("a/memory@1", 1),
        ("a/memory@2", 1),
        ("b/memory@1", 1),
        ("a/diary@1", "unseen"),
        ("a/memory@3", 2),
        ("b/memory@2", 2),
    ]
    assert (engine.progress["stale"], engine.progress["lost"]) == (2, 1)


async def test_the_last_events_of_a_turn_are_committed_when_nothing_else_goes_on() -> None:
    """The engine issues 256 events a turn; with periods each takes its place in the window even if it ends at once."""
    rows = [event(n, writes=("item:1",)) for n in range(256)]
    assert (await play(count, rows, Rules(periods={"item": Period(rows=10)}))).versions[-1] == (
        "item:1/memory@256",
        256,
    )
