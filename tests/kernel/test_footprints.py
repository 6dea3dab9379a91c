"""What a handler must not do: each breach stops the run with an error that says where, and what to do instead."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from playing import Handler, Handling, Kept, answer, count, event, play

from simengine.errors import KernelError, UnitFailed
from simengine.kernel import Branch, Context, Engine, Lookahead


async def nothing(context: Context) -> None: ...


async def writes_a(context: Context) -> None:
    context.write("a", "memory", 1)


async def reads_stranger(context: Context) -> None:
    await context.read("z", "memory", by="a")


async def entries_of_stranger(context: Context) -> None:
    await context.entries("z", "memory", by="a")


async def writes_stranger(context: Context) -> None:
    context.write("b", "memory", 1)


async def appends_to_stranger(context: Context) -> None:
    context.append("b", "memory", 1)


async def releases_stranger(context: Context) -> None:
    context.release("b")


async def releases_twice(context: Context) -> None:
    context.release("a")
    context.release("a")


async def writes_released(context: Context) -> None:
    context.release("a")
    context.write("a", "memory", 1)


async def reads_nothing(context: Context) -> None:
    await context.read("a", "diary", by="a")


async def branches_share(context: Context) -> None:
    await context.together(Branch("left", ("a",), writes_a), Branch("right", ("a",), writes_a))


async def branch_takes(context: Context) -> None:
    await context.together(Branch("left", ("b",), nothing))


async def branch_exceeds(context: Context) -> None:
    await context.together(Branch("left", (), writes_a))


async def branch_uses_outer(context: Context) -> None:
    async def run(branch: Context) -> None:
        context.note("by arrival")

    await context.together(Branch("left", (), run))


async def names_call_twice(context: Context) -> None:
    await context.effect(answer(), "choose")
    await context.effect(answer(), "choose")


async def names_unit_twice(context: Context) -> None:
    await context.unit("step", nothing)
    await context.unit("step", nothing)


async def names_call_as_unit(context: Context) -> None:
    await context.unit("step", nothing)
    await context.effect(answer(), "step")


async def names_call_as_another_branch(context: Context) -> None:
    async def run(branch: Context) -> None:
        await branch.effect(answer(), "r1")

    await context.unit("choose", run)
    await context.effect(answer(), "choose/r1")


async def names_unit_nothing(context: Context) -> None:
    await context.unit("", nothing)


async def sleeps(context: Context) -> None:
    await asyncio.sleep(0)


async def awaits_future(context: Context) -> None:
    await asyncio.get_running_loop().create_future()


async def spawns_too_soon(context: Context) -> None:
    context.spawn("child", delay=1)


async def spawns_at_no_time(context: Context) -> None:
    context.spawn("child", delay=math.nan)


async def spawns_writer(context: Context) -> None:
    context.spawn("child", delay=2, writes=("c",))


async def spawns_parent_of_writer(context: Context) -> None:
    context.spawn("child", delay=2, lookahead=Lookahead(0, ("c",)))


async def goes_on_twice(context: Context) -> None:
    context.go_on(delay=2)
    context.go_on(delay=2)


async def goes_on_in_a_unit(context: Context) -> None:
    async def unit(inner: Context) -> None:
        inner.go_on(delay=2)

    await context.unit("unit", unit)


async def goes_on_too_soon(context: Context) -> None:
    context.go_on(delay=1)


async def names_unit_like_a_chain(context: Context) -> None:
    await context.unit("+", count)


BREACHES: list[tuple[Handler, str]] = [
    (reads_stranger, "agent z: .* read an agent outside its footprint\n.*declare the agent"),
    (entries_of_stranger, "agent z: .* read an agent outside its footprint"),
    (writes_stranger, "agent b: .* outside its footprint"),
    (appends_to_stranger, "agent b: .* outside its footprint"),
    (releases_stranger, "agent b: .* released an agent that it may not write"),
    (releases_twice, "agent a: .* or twice"),
    (writes_released, "agent a: .* already released"),
    (reads_nothing, r"agent a: .* 'diary', which has no value yet\n.*entries\(\)"),
    (branches_share, "agent a: .* branch 'right' .*another's"),
    (branch_takes, "agent b: .* branch 'left'"),
    (branch_exceeds, "agent a: .* outside its footprint"),
    (branch_uses_outer, "used the context around a branch inside it\n.*that the branch is given"),
    (names_call_twice, "the name 'choose' twice\n.*a name of its own"),
    (names_unit_twice, "the name 'step' twice"),
    (names_call_as_unit, "the name 'step' twice"),
    (names_call_as_another_branch, "the name 'choose/r1' twice"),
    (names_unit_nothing, "a unit without a name"),
    (sleeps, r"a bare yield \(asyncio.sleep\(0\), for instance\).*\n.*context.effect\(\.\.\.\)"),
    (awaits_future, r"awaited a Future.*\n.*context.effect\(\.\.\.\)"),
    (spawns_too_soon, "a child after 1, sooner .*\n.*lookahead promise"),
    (spawns_at_no_time, "a child after nan"),
    (spawns_writer, "agent c: .* leaves out"),
    (spawns_parent_of_writer, "agent c: .* leaves out"),
    (goes_on_twice, "went on inside a unit, or twice"),
    (goes_on_in_a_unit, "went on inside a unit, or twice"),
    (goes_on_too_soon, "a child after 1, sooner"),
    (names_unit_like_a_chain, r"a unit without a name, or called '[+]'"),
]


@pytest.mark.parametrize(("handle", "text"), BREACHES, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_breach_stops_the_run_and_says_where_and_what_to_do(handle: Handler, text: str) -> None:
    row = event(0, writes=("a",), reads=("b",), lookahead=Lookahead(2, ("a", "b")))
    with pytest.raises(KernelError, match=text) as caught:
        await play(handle, [row])
    assert caught.value.where.get("event", "row0") == "row0"
    assert caught.value.__notes__ == ["in event row0"]


async def test_a_breach_that_the_handler_swallows_stops_the_run_all_the_same() -> None:
    async def handle(context: Context) -> None:
        if context.event.id == "row1":
            try:
                await context.read("z", "memory", by="a")
            except KernelError:
                context.write("a", "memory", "a guess")
        else:
            await count(context)

    kept = Kept()
    with pytest.raises(KernelError, match="row1, agent z"):
        await Engine(Handling(handle), [event(n, writes=("a",)) for n in range(3)], kept).run()
    assert kept.ids == ["row0"]


async def test_a_call_without_a_name_takes_that_of_its_unit() -> None:
    async def ask(branch: Context) -> Any:
        return await branch.effect(answer())

    async def handle(context: Context) -> None:
        outcome = await context.unit("choose", ask)
        assert outcome.value == "row0#choose"
        assert await context.effect(answer()) == "row0#"

    assert (await play(handle, [event(0)])).records[0].calls == [("choose", "answered"), ("", "answered")]


async def test_a_lookahead_into_the_past_is_refused() -> None:
    with pytest.raises(KernelError, match="row0: a lookahead of -1"):
        await play(nothing, [event(0, lookahead=Lookahead(-1, ()))])


async def test_source_events_out_of_order_are_refused() -> None:
    with pytest.raises(KernelError, match="row5: source events must come in rising order, but row2 follows"):
        await play(nothing, [event(1), event(5), event(2), event(6)])


async def test_an_outcome_gives_its_value_or_raises_its_failure() -> None:
    async def handle(context: Context) -> None:
        async def fails(branch: Context) -> None:
            raise UnitFailed("nothing to choose from", reason="empty")

        outcome = await context.unit("choose", fails)
        assert not outcome.ok
        with pytest.raises(UnitFailed, match="nothing to choose from"):
            _ = outcome.value

    assert (await play(handle, [event(0)])).records[0].units == [("choose", "empty")]
