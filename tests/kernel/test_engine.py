"""Promises of a whole run: order, identity, causes, children."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playing import Handling, Kept, answer, count, event, play

from simengine.errors import LogError, UnitFailed
from simengine.kernel import Context, Engine, Event, Lookahead, Restored, Rules, Version


async def test_simultaneous_events_keep_their_order_and_one_that_does_nothing_changes_no_other() -> None:
    """Six events at time 5.0, then again with one that does nothing between the second and the third."""

    async def handle(context: Context) -> None:
        await context.effect(answer(len(context.event.data) and ord(context.event.data) % 4), "call")
        for agent in context.event.writes:
            before = (await context.read(agent, "memory", by=agent)).value
            context.write(agent, "memory", f"{before}{context.event.data}{context.random().randrange(10**6)}")

    def at(name: str, *tie: Any, writes: tuple[str, ...] = ("a",)) -> Event:
        return Event(id=name, kind="play", order=(0, 5.0, *tie), time=5.0, writes=writes, data=name, source=True)

    six = [at(name, place, 0) for place, name in enumerate("ABCDEF")]
    plain = await play(handle, six)
    extra = await play(handle, [*six[:2], at("G", 1, 1, writes=()), *six[2:]])
    assert plain.ids == list("ABCDEF")
    assert extra.ids == list("ABGCDEF")
    assert [record for record in extra.records if record.event.id != "G"] == plain.records


async def test_draws_depend_on_seed_event_branch_and_name_alone() -> None:
    async def handle(context: Context) -> None:
        async def inside(branch: Context) -> int:
            return branch.random("x").randrange(10**9)

        event_id = context.event.id
        draws[event_id] = context.random("x").randrange(10**9)
        draws[f"{event_id}/y"] = context.random("y").randrange(10**9)
        draws[f"{event_id}/branch"] = (await context.unit("branch", inside)).value

    draws: dict[str, int] = {}
    await play(handle, [event(1), event(2)], Rules(seed=3))
    first, draws = draws, {}
    await play(handle, [event(0), event(1), event(2)], Rules(seed=3))
    assert first == {name: draw for name, draw in draws.items() if not name.startswith("row0")}
    assert len(set(draws.values())) == len(draws)
    first, draws = draws, {}
    await play(handle, [event(0), event(1), event(2)], Rules(seed=4))
    assert not set(first.values()) & set(draws.values())


async def test_causes_stand_under_the_names_that_they_have_in_the_log() -> None:
    """The footprint names the item first, so that its version is numbered before that of the user, its cause."""

    async def handle(context: Context) -> None:
        before = await context.read("user:1", "memory", by="user:1")
        said = context.note("said", because=[before])
        mine = context.write("user:1", "memory", 1, because=[said, before])
        context.write("item:1", "memory", 2, because=[mine])

    kept = await play(handle, [event(n, writes=("item:1", "user:1")) for n in range(2)])
    last = kept.records[1]
    assert [(version.ref, list(version.because)) for version in last.versions] == [
        ("item:1/memory@2", ["user:1/memory@2"]),
        ("user:1/memory@2", ["row1#.0", "user:1/memory@1"]),
    ]
    assert list(last.notes[0].because) == ["user:1/memory@1"]


async def test_a_write_that_was_undone_is_the_cause_of_nothing() -> None:
    async def handle(context: Context) -> None:
        async def fails(branch: Context) -> None:
            undone = branch.write("a", "memory", 1)
            branch.note("said before it failed", because=["row0#.7", undone])
            raise UnitFailed("nothing", reason="empty")

        await context.unit("choose", fails)

    record = (await play(handle, [event(0, writes=("a",))])).records[0]
    assert (record.versions, list(record.notes[0].because)) == ([], ["row0#.7"])


async def test_a_slot_may_be_written_and_appended_to() -> None:
    steps = {"row0": ["append"], "row1": ["write", "append"], "row2": [], "row3": ["append", "write"], "row4": []}

    async def handle(context: Context) -> None:
        for number, kind in enumerate(steps[context.event.id]):
            getattr(context, kind)("a", "memory", f"{context.event.id}.{number}")
        seen[context.event.id] = [version.value for version in await context.entries("a", "memory", by="a")]

    seen: dict[str, list[Any]] = {}
    kept = await play(handle, [event(n, writes=("a",)) for n in range(5)])
    assert seen == {
        "row0": [0, "row0.0"],
        "row1": ["row1.0", "row1.1"],
        "row2": ["row1.0", "row1.1"],
        "row3": ["row3.1"],
        "row4": ["row3.1"],
    }
    assert [ref for ref, _ in kept.versions] == [f"a/memory@{n}" for n in range(1, 6)]


async def test_children_stand_behind_their_parents_at_one_time_and_grandchildren_behind_these() -> None:
    async def handle(context: Context) -> None:
        if context.event.id == "row0":
            await context.effect(answer(3), "slow")
            context.spawn("child", delay=0, writes=("a",), lookahead=Lookahead(0, ("a",)))
            context.spawn("child", delay=0, writes=("a",))
        if context.event.lookahead is not None and context.event.kind == "child":
            context.spawn("grandchild", delay=0, writes=("a",))
        await count(context)

    row = event(0, time=0, lookahead=Lookahead(0, ("a",)))
    kept = await play(handle, [row, event(1, time=0, writes=("a",)), event(2, time=1, writes=("a",))])
    assert kept.ids == ["row0", "row0>.0", "row0>.0>.0", "row0>.1", "row1", "row2"]
    assert kept.versions[-1] == ("a/memory@5", 5)


async def test_a_delay_below_the_precision_of_the_clock_does_not_make_an_event_wait_for_itself() -> None:
    async def handle(context: Context) -> None:
        if context.event.lookahead is not None:
            context.spawn("child", delay=1e-9, writes=("a",))
        await count(context)

    row = event(0, time=1.5e9, writes=("a",), lookahead=Lookahead(1e-9, ("a",)))
    assert (await play(handle, [row])).versions == [("a/memory@1", 1), ("a/memory@2", 2)]


async def test_settled_waits_until_every_earlier_event_that_may_write_the_agent_is_issued() -> None:
    announced: list[str] = []

    class Listing(Handling):
        def announce(self, event: Event) -> None:
            announced.append(event.id)

    async def handle(context: Context) -> None:
        if context.event.id == "row0":
            await context.effect(answer(5), "slow")
            context.spawn("child", delay=1, writes=("a",))
        if context.event.id == "row2":
            await context.settled("a")
            assert announced == ["row0", "row2", "row0>.0"]

    await Engine(Listing(handle), [event(0, lookahead=Lookahead(1, ("a",))), event(2)], Kept()).run()
    assert len(announced) == 3


async def test_history_of_another_run_is_refused() -> None:
    for history, found in ([Restored("other")], "row0"), ([Restored("row0"), Restored("row1")], "none"):
        with pytest.raises(LogError, match=f"than the scenario, which has {found}"):
            await Engine(Handling(count), [event(0, writes=("a",))], Kept()).run(history)


async def test_restored_versions_are_numbered_as_they_were() -> None:
    history = [Restored("row0", [Version("a", "memory", 1, 5), Version("a", "memory", 2, 6)])]
    kept = Kept()
    rows = [event(n, writes=("a",)) for n in range(2)]
    await asyncio.wait_for(Engine(Handling(count), rows, kept).run(history), 5)
    assert kept.versions == [("a/memory@3", 7)]
