"""Stopping: whatever ends a run, its log is a prefix, nothing new starts, and the reason is what the caller gets."""

from __future__ import annotations

import asyncio

import pytest
from playing import Handling, Kept, answer, count, event, play

from simengine.errors import KernelError, RunStopped, UnitFailed
from simengine.kernel import Branch, Call, Committed, Context, Engine, Event, Lookahead, Rules
from simengine.kernel.state import Blocker


class Gates:
    """Effects that end when the test says so; remembers which have started."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.started: list[str] = []

    def open(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()

    async def __call__(self, call: Call) -> tuple[str, str]:
        self.started.append(call.id)
        await self.gates.setdefault(call.id, asyncio.Event()).wait()
        return call.id, "answered"


async def turns(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_stop_takes_in_what_is_in_flight_and_starts_nothing_new() -> None:
    gates = Gates()

    async def handle(context: Context) -> None:
        await context.effect(gates, "one")
        if context.event.id == "row1":
            await context.effect(gates, "two")

    kept = Kept()
    engine = Engine(Handling(handle), [event(n) for n in range(4)], kept, Rules(window=3))
    run = asyncio.create_task(engine.run())
    await turns()
    engine.stop(RunStopped("enough"))
    engine.stop(RunStopped("the second reason does not count"))
    await turns()
    gates.open("row0#one", "row1#one", "row2#one")
    with pytest.raises(RunStopped, match="enough"):
        await run
    assert gates.started == ["row0#one", "row1#one", "row2#one"]  # neither a second call nor the fourth event
    assert kept.ids == ["row0"]  # the second waits for its second call, the third stands behind it
    assert engine.abandoned == 0


async def test_what_outlasts_the_grace_is_cancelled_and_counted() -> None:
    gates = Gates()

    async def handle(context: Context) -> None:
        await context.effect(gates, "one")

    kept = Kept()
    engine = Engine(Handling(handle), [event(n) for n in range(4)], kept, Rules(grace=0.01))
    run = asyncio.create_task(engine.run())
    await turns()
    gates.open("row0#one", "row2#one")
    engine.stop(RunStopped("enough"))
    with pytest.raises(RunStopped):
        await run
    assert (kept.ids, engine.abandoned) == (["row0"], 2)


async def test_cancelling_the_run_abandons_at_once() -> None:
    gates = Gates()
    closed: list[str] = []

    async def handle(context: Context) -> None:
        try:
            await context.effect(gates, "one")
        finally:
            closed.append(context.event.id)
            if context.event.id == "row0":
                await context.effect(gates, "a call on the way out, which is too late")

    engine = Engine(Handling(handle), [event(n) for n in range(3)], Kept())
    run = asyncio.create_task(engine.run())
    await turns()
    engine.stop(RunStopped("first Ctrl-C: its grace would be ten seconds"))
    await turns()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 1)
    assert (engine.abandoned, sorted(closed)) == (3, ["row0", "row1", "row2"])
    assert engine.progress["running"] == 0


async def test_a_child_that_is_overdue_at_the_stop_keeps_its_place_in_the_log() -> None:
    gates = Gates()

    async def handle(context: Context) -> None:
        if context.event.id == "row0":
            await context.effect(gates, "slow")
            context.spawn("child", delay=1)
        if context.event.kind == "child":
            await context.effect(gates, "never starts")

    kept = Kept()
    rows = [event(0, lookahead=Lookahead(1, ())), *(event(n) for n in (2, 3, 4))]
    engine = Engine(Handling(handle), rows, kept)
    run = asyncio.create_task(engine.run())
    await turns()
    engine.stop(RunStopped("enough"))
    gates.open("row0#slow")
    with pytest.raises(RunStopped):
        await run
    assert kept.ids == ["row0"]


async def test_a_refused_announcement_of_an_overdue_child_ends_the_log_before_it() -> None:
    class Refusing(Handling):
        def announce(self, event: Event) -> None:
            if event.parent:
                raise ValueError("no such venue")

    async def handle(context: Context) -> None:
        if context.event.id == "row0":
            await context.effect(answer(5), "slow")
            context.spawn("child", delay=1)

    kept = Kept()
    rows = [event(0, lookahead=Lookahead(1, ())), *(event(n) for n in (2, 3, 4))]
    with pytest.raises(ValueError, match="no such venue") as caught:
        await Engine(Refusing(handle), rows, kept).run()
    assert caught.value.__notes__ == ["in event row0>.0"]
    assert kept.ids == ["row0"]


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_spent_budget_stops_the_run_before_its_event(swallows: bool) -> None:
    async def spent(call: Call) -> tuple[str, str]:
        raise RunStopped("the budget is spent")

    async def handle(context: Context) -> None:
        if context.event.id != "row2":
            await context.effect(answer(9), "slow")
            return
        try:
            await context.effect(spent, "dear")
        except RunStopped:
            if not swallows:
                raise

    kept = Kept()
    engine = Engine(Handling(handle), [event(n) for n in range(5)], kept)
    with pytest.raises(RunStopped, match="the budget is spent"):
        await engine.run()
    assert (kept.ids, engine.abandoned) == (["row0", "row1"], 0)


async def test_a_call_that_is_cancelled_from_outside_stops_the_run() -> None:
    async def cancelled(call: Call) -> tuple[str, str]:
        raise asyncio.CancelledError

    async def handle(context: Context) -> None:
        await context.effect(cancelled, "shared")

    with pytest.raises(RunStopped, match="call row0#shared: a call was cancelled"):
        await play(handle, [event(0)])


async def test_a_bug_stops_the_run_with_its_event_in_the_notes() -> None:
    async def buggy(context: Context) -> None:
        async def branch(inner: Context) -> None:
            await inner.effect(answer(2), "call")
            raise ZeroDivisionError

        if context.event.id == "row3":
            await context.together(Branch("left", (), branch))
        await count(context)

    kept = Kept()
    with pytest.raises(ZeroDivisionError) as caught:
        await Engine(Handling(buggy), [event(n, writes=("a",)) for n in range(6)], kept).run()
    assert caught.value.__notes__ == ["in event row3"]
    assert kept.ids == ["row0", "row1", "row2"]


@pytest.mark.parametrize("alone", [True, False])
async def test_a_sink_that_fails_ends_the_run_and_gets_nothing_more(alone: bool) -> None:
    class Full(Kept):
        def commit(self, record: Committed) -> None:
            if len(self.records) == 4:
                raise OSError(28, "No space left on device")
            super().commit(record)

    async def handle(context: Context) -> None:
        if not alone:
            await context.effect(answer(), "call")
        await count(context)

    kept = Full()
    with pytest.raises(OSError, match="No space left"):
        await Engine(Handling(handle), [event(n, writes=("a",)) for n in range(9)], kept).run()
    assert kept.ids == ["row0", "row1", "row2", "row3"]


@pytest.mark.parametrize("earlier", [True, False])
async def test_stop_on_error_ends_before_the_earliest_failure(earlier: bool) -> None:
    """Row 5 fails at once; row 2 is slower, and fails where ``earlier``; row 7 is slow, row 1 slower than all."""
    latency = {"row1": 60, "row2": 30, "row5": 0, "row7": 40}
    asked_again: list[str] = []

    async def ask_again(call: Call) -> tuple[None, str]:
        asked_again.append(call.id)
        return None, "answered"

    async def handle(context: Context) -> None:
        name = context.event.id
        fails = name == "row5" or (earlier and name == "row2")

        async def run(branch: Context) -> None:
            await branch.effect(answer(latency.get(name, 3), fails), "ask")
            await branch.effect(ask_again, "again")

        await context.unit("choose", run)

    kept = Kept()
    engine = Engine(Handling(handle), (event(n) for n in range(5000)), kept, Rules(stop_on_error=True))
    with pytest.raises(RunStopped, match="first failure") as caught:
        await engine.run()
    assert kept.ids == [f"row{n}" for n in range(2 if earlier else 5)]
    assert caught.value.where == {"event": "row2" if earlier else "row5"}
    ahead = (0, 1, 3, 4) if earlier else (0, 1, 2, 3, 4)
    assert sorted(asked_again) == [f"row{n}#choose/again" for n in ahead]  # nothing starts behind a failure
    assert (engine.abandoned, engine.progress["failed"]) == (0, 0)


async def test_skip_on_error_goes_on_and_counts() -> None:
    async def handle(context: Context) -> None:
        await count(context)
        if context.event.id == "row1":
            raise UnitFailed("nothing", reason="empty")

    kept = Kept()
    engine = Engine(Handling(handle), [event(n, writes=("a",)) for n in range(3)], kept)
    await engine.run()
    assert kept.versions == [("a/memory@1", 1), ("a/memory@2", 2)]
    assert kept.records[1].units == [("", "empty")]
    assert (engine.progress["committed"], engine.progress["failed"]) == (3, 1)


async def test_a_handler_that_waits_for_nothing_is_told_so() -> None:
    async def handle(context: Context) -> None:
        await context.effect(answer(), "call")
        await Blocker()

    with pytest.raises(KernelError, match="row0: the run stands still"):
        await play(handle, [event(0)])
