"""Random runs: whatever the latencies, the window and the cut, the kernel commits what the serial interpreter does."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import AGENTS, BY_HAND, Script, World, worlds
from serial import Serial

from simengine.errors import RunStopped, UnitFailed
from simengine.kernel import (
    Branch,
    Call,
    Committed,
    Context,
    Engine,
    Event,
    Lookahead,
    Period,
    Restored,
    Rules,
    Version,
)


class Player:
    """The program that plays scripts on the kernel, with latencies made from the call id and a salt."""

    def __init__(self, salt: str) -> None:
        self.salt = salt

    def initial(self, agent: str) -> dict[str, Any]:
        return {"memory": 0}

    def announce(self, event: Event) -> None: ...

    async def handle(self, context: Context) -> None:
        await self.run(context, context.event.data.ops, "")

    async def run(self, context: Context, ops: tuple[Any, ...], seen: str) -> str:
        for op in ops:
            kind = op[0]
            if kind == "read":
                version = await context.read(op[1], "memory", by=op[1] if op[2] else "nobody")
                seen = f"{seen}|{version.value}"[-40:]
            elif kind == "entries":
                found = await context.entries(op[1], op[3], by=op[1] if op[2] else "nobody")
                seen = f"{seen}|{[v.value for v in found]}"[-40:]
            elif kind == "write":
                context.write(op[1], op[3], f"{seen}w{op[2]}")
            elif kind == "append":
                context.append(op[1], op[3], f"{seen}a{op[2]}")
            elif kind == "release":
                context.release(op[1])
            elif kind == "note":
                context.note(seen)
            elif kind == "draw":
                seen += str(context.random("x").randrange(100))
            elif kind == "fail":
                raise UnitFailed("as the script says", reason="planned")
            elif kind == "call":
                seen += await context.effect(self.caller(op[2]), op[1])
            elif kind == "unit":
                outcome = await context.unit(op[1], self.branch(op[2], seen))
                seen = outcome.value[-40:] if outcome.ok else ""
            elif kind == "together":
                branches = [Branch(name, writes, self.branch(inner, seen)) for name, writes, inner in op[1]]
                outcomes = await context.together(*branches)
                seen = "".join(outcome.value if outcome.ok else "" for outcome in outcomes)[-40:]
            elif kind == "spawn":
                spawn(context, op[1], op[2])
            elif kind == "go_on":
                script: Script = context.event.data
                context.go_on(delay=op[1], data=Script(script.writes, op[2], script.lookahead))
        return seen

    def branch(self, ops: Any, seen: str) -> Any:
        async def run(context: Context) -> str:
            return await self.run(context, ops, seen)

        return run

    def caller(self, fails: bool) -> Any:
        async def run(call: Call) -> tuple[str, str]:
            for _ in range(hashlib.blake2b(f"{self.salt}{call.id}".encode()).digest()[0] % 12):
                await asyncio.sleep(0)
            if fails:
                raise UnitFailed("as the script says", reason="refused")
            return call.id[-6:], "answered"

        return run


def spawn(context: Context, delay: int, script: Script) -> None:
    context.spawn("play", delay=delay, writes=script.writes, reads=AGENTS, data=script, lookahead=lookahead(script))


def lookahead(script: Script) -> Lookahead | None:
    return Lookahead(*script.lookahead) if script.lookahead else None


def source(world: World) -> Iterator[Event]:
    for at, row in enumerate(world.rows):
        yield Event(
            id=f"row{at}",
            kind="play",
            order=(row.phase, row.time, at),
            time=row.time,
            writes=row.script.writes,
            reads=AGENTS,
            data=row.script,
            source=True,
            lookahead=lookahead(row.script),
        )


class Kept:
    """A sink that keeps what it is given, as plain data."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.raw: list[Committed] = []

    def commit(self, record: Committed) -> None:
        self.raw.append(record)
        self.records.append(
            {
                "id": record.event.id,
                "notes": [(note.id, note.body) for note in record.notes],
                "calls": record.calls,
                "units": record.units,
                "versions": [(v.agent, v.slot, v.value, v.append, v.version) for v in record.versions],
                "children": [child.id for child in record.children],
            }
        )


def rules(world: World, window: int, stop_on_error: bool = False) -> Rules:
    periods = {}
    if world.period:
        how, every = world.period
        periods = {"shop": Period(rows=every) if how == "rows" else Period(span=every)}
    return Rules(seed=7, window=window, periods=periods, batch=world.batch, stop_on_error=stop_on_error)


async def play(world: World, salt: str, window: int, history: list[Restored] | None = None) -> Kept:
    kept = Kept()
    await asyncio.wait_for(Engine(Player(salt), source(world), kept, rules(world, window)).run(history or []), 10)
    return kept


@given(worlds(), st.sampled_from([1, 2, 5, 4096]), st.text(max_size=3))
@settings(max_examples=300, deadline=None)
def test_kernel_commits_what_the_serial_interpreter_does(world: World, window: int, salt: str) -> None:
    expected = Serial(world).records
    assert asyncio.run(play(world, salt, window)).records == expected


@pytest.mark.parametrize("world", BY_HAND.values(), ids=BY_HAND)
@pytest.mark.parametrize("window", [1, 2, 4096])
def test_rules_that_are_easily_broken(world: World, window: int) -> None:
    expected = Serial(world).records
    for salt in range(12):
        assert asyncio.run(play(world, str(salt), window)).records == expected
    for cut in range(len(expected) + 1):
        assert restored(world, cut).records == expected[cut:]


@given(worlds(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_run_restored_at_any_cut_goes_on_as_if_nothing_had_happened(world: World, data: st.DataObject) -> None:
    expected = Serial(world).records
    cut = data.draw(st.integers(0, len(expected)))
    assert restored(world, cut).records == expected[cut:]


@given(worlds(), st.sampled_from([2, 4096]), st.text(max_size=3))
@settings(max_examples=100, deadline=None)
def test_stop_on_error_ends_exactly_before_the_earliest_failed_event(world: World, window: int, salt: str) -> None:
    expected = Serial(world).records
    failed = [at for at, record in enumerate(expected) if any(outcome != "ok" for _, outcome in record["units"])]
    kept = Kept()
    engine = Engine(Player(salt), source(world), kept, rules(world, window, stop_on_error=True))
    try:
        asyncio.run(asyncio.wait_for(engine.run(), 10))
    except RunStopped:
        assert failed
    assert kept.records == expected[: failed[0] if failed else None]


@given(worlds(), st.sampled_from([2, 4096]), st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_a_stop_at_any_moment_leaves_a_prefix(world: World, window: int, moment: int) -> None:
    async def stopped() -> Kept:
        kept = Kept()
        engine = Engine(Player(""), source(world), kept, rules(world, window))
        run = asyncio.create_task(engine.run())
        for _ in range(moment):
            await asyncio.sleep(0)
        engine.stop(RunStopped("at any moment"))
        await asyncio.wait([run], timeout=10)
        assert run.done() and (run.exception() is None or isinstance(run.exception(), RunStopped))
        return kept

    records = asyncio.run(stopped()).records
    assert records == Serial(world).records[: len(records)]


def restored(world: World, cut: int) -> Kept:
    """What a run commits that is restored from the first ``cut`` events of one with other latencies."""
    whole = asyncio.run(play(world, "", 4096))
    history = [
        Restored(
            record.event.id,
            [Version(v.agent, v.slot, 0, v.value, append=v.append) for v in record.versions],
            record.children,
        )
        for record in whole.raw[:cut]
    ]
    return asyncio.run(play(world, "other latencies", 3, history))


@pytest.mark.slow
@given(worlds(), st.sampled_from([1, 2, 5, 4096]), st.text(max_size=3))
@settings(max_examples=5000, deadline=None)
def test_kernel_commits_what_the_serial_interpreter_does_many_times(world: World, window: int, salt: str) -> None:
    assert asyncio.run(play(world, salt, window)).records == Serial(world).records
