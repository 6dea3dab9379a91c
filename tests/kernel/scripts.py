"""Random event scripts: plain data that both the kernel and the serial interpreter can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

SLOTS = ("memory", "long")
AGENTS = ("shop:0", "shop:1", "user:0", "user:1", "user:2")
Op = tuple[Any, ...]


@dataclass(frozen=True)
class Script:
    """One event: what it may write, what its descendants may, and what it does."""

    writes: tuple[str, ...]
    ops: tuple[Op, ...]
    lookahead: tuple[int, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class Row:
    """One source row: its phase, time and script."""

    phase: int
    time: int
    script: Script


@dataclass(frozen=True)
class World:
    """A whole run: rows in order, and the reading rules."""

    rows: tuple[Row, ...]
    period: tuple[str, int] | None = None
    batch: int = 0


def world(*rows: tuple[int, Script], period: tuple[str, int] | None = None, batch: int = 0) -> World:
    """A world of one phase, from times and scripts."""
    return World(tuple(Row(0, time, script) for time, script in rows), period, batch)


SLOW: tuple[Op, ...] = (("call", "slow", False), ("call", "slower", False))
COUNT: tuple[Op, ...] = (("read", "user:0", True), ("write", "user:0", 0, "memory"))
LOOK: tuple[Op, ...] = (("read", "user:0", True), ("note",))


def child(delay: int, *ops: Op, writes: tuple[str, ...] = ("user:0",), promise: Any = None) -> Op:
    return ("spawn", delay, Script(writes, ops, promise))


SHOPPING = [
    (time, Script(("shop:0",), (("read", "shop:0", False), ("note",), ("write", "shop:0", time, "memory"))))
    for time in range(10)
]


BY_HAND = {
    "a reader waits for the children of an earlier event, and looks again after each wait": world(
        (0, Script((), (*SLOW, child(1, *SLOW, *COUNT)), (0, ("user:0",)))),
        (1, Script(("user:0",), (*SLOW, *COUNT))),
        (2, Script((), LOOK)),
    ),
    "a reader that waited for a slow writer looks again for children that came meanwhile": world(
        (0, Script(("user:0",), (*SLOW, *COUNT))),
        (0, Script((), (("call", "slow", False), child(1, *COUNT)), (1, ("user:0",)))),
        (3, Script((), LOOK)),
    ),
    "a reader waits for the children of every earlier event, one after the other": world(
        (0, Script((), (("call", "slow", False), child(1, writes=("user:1",))), (0, ("user:0", "user:1")))),
        (
            0,
            Script((), (*SLOW, *(("call", f"slower{n}", False) for n in range(4)), child(1, *COUNT)), (1, ("user:0",))),
        ),
        (2, Script((), LOOK)),
    ),
    "a child beyond the front queues": world(
        (0, Script((), (child(2, *COUNT),), (2, ("user:0",)))),
        (1, Script(("user:0",), COUNT)),
        (3, Script((), LOOK)),
    ),
    "a chain goes on behind what stands between its links, and a reader waits for all of them": world(
        (
            0,
            Script(
                ("user:0",),
                (*SLOW, *COUNT, ("go_on", 1, (*SLOW, *COUNT, ("go_on", 0, (*SLOW, *COUNT, ("note",)))))),
                (0, ("user:0",)),
            ),
        ),
        (0, Script((), LOOK)),
        (1, Script((), LOOK)),
        (2, Script((), LOOK)),
    ),
    "grandchildren are promised by children": world(
        (0, Script((), (*SLOW, child(1, *SLOW, child(2, *COUNT), promise=(1, ("user:0",)))), (1, ("user:0",)))),
        (2, Script((), LOOK)),
        (4, Script((), LOOK)),
    ),
    "a publication waits for children that stand before it": world(
        (0, Script((), (*SLOW, child(0, ("write", "shop:0", 0, "memory"), writes=("shop:0",))), (0, ("shop:0",)))),
        (2, Script((), (("read", "shop:0", False), ("note",)))),
        period=("span", 2),
    ),
    "what is open of a period outlives commit and restoring": world(
        (0, Script(("shop:0",), (("write", "shop:0", 0, "memory"),))),
        (1, Script(("shop:0",), (("read", "shop:0", False), ("write", "shop:0", 1, "memory")))),
        (1, Script(("shop:0",), (("read", "shop:0", False), ("write", "shop:0", 2, "memory"), ("note",)))),
        (3, Script((), (("read", "shop:0", False), ("note",)))),
        period=("span", 3),
    ),
    "children of a batch read latest, its rows do not": world(
        (0, Script(("user:0",), (*COUNT, child(0, *COUNT)), (0, ("user:0",)))),
        (0, Script(("user:0",), (*LOOK, *COUNT))),
        (0, Script(("user:0",), (*LOOK, *COUNT))),
        (0, Script(("user:0",), (*LOOK, *COUNT))),
        batch=3,
    ),
    "a publication inside a batch is not seen by the batch": world(*SHOPPING, period=("rows", 2), batch=3),
    "a batch that opens between publications sees the older": world(*SHOPPING, period=("rows", 4), batch=3),
    "branches see the event as of their opening": world(
        (
            0,
            Script(
                ("user:0", "user:1"),
                (
                    *COUNT,
                    (
                        "together",
                        (
                            ("left", ("user:0",), (*LOOK, *COUNT, ("call", "c", False), ("draw",), ("note",))),
                            ("right", ("user:1",), (("call", "c", False), *LOOK, ("draw",), ("note",))),
                        ),
                    ),
                    *LOOK,
                ),
            ),
        )
    ),
    "of a failed unit only what it released remains": world(
        (
            0,
            Script(
                ("user:0", "user:1"),
                (
                    (
                        "unit",
                        "step",
                        (
                            ("write", "user:0", 0, "memory"),
                            ("write", "user:1", 1, "memory"),
                            child(1, *COUNT),
                            ("release", "user:1"),
                            ("fail",),
                        ),
                    ),
                    *LOOK,
                    ("read", "user:1", True),
                    ("note",),
                ),
                (1, ("user:0",)),
            ),
        ),
        (2, Script((), (*LOOK, ("read", "user:1", True), ("note",)))),
    ),
    "of a failed event only what it released remains": world(
        (
            0,
            Script(
                ("user:0", "user:1"),
                (
                    ("write", "user:0", 0, "memory"),
                    ("write", "user:1", 1, "memory"),
                    child(1, *COUNT),
                    ("release", "user:1"),
                    *SLOW,
                    ("fail",),
                ),
                (1, ("user:0",)),
            ),
        ),
        (2, Script((), (*LOOK, ("read", "user:1", True), ("note",)))),
    ),
}
"""For each rule that is easily broken the smallest run that shows it."""


def subsets(agents: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    if not agents:
        return st.just(())
    return st.lists(st.sampled_from(agents), unique=True, max_size=3).map(
        lambda chosen: tuple(a for a in agents if a in chosen)
    )


@st.composite
def operations(draw: Any, writes: tuple[str, ...], promise: Any, depth: int, done: set[str]) -> tuple[Op, ...]:
    """Operations that are legal for a branch that may write ``writes``; ``done`` are the agents released so far."""
    ops: list[Op] = []
    for number in range(draw(st.integers(0, 4))):
        free = tuple(a for a in writes if a not in done)
        kinds = ["read", "entries", "note", "call", "draw"]
        kinds += ["write", "append"] * 2 if free else []
        kinds += ["release"] if free else []
        kinds += ["fail"] if draw(st.integers(0, 5)) == 0 else []
        kinds += ["unit", "together"] if depth else []
        kinds += ["spawn"] * 2 if promise is not None else []
        kind = draw(st.sampled_from(kinds))
        if kind == "read":
            ops.append((kind, draw(st.sampled_from(AGENTS)), draw(st.booleans())))
        elif kind == "entries":
            ops.append((kind, draw(st.sampled_from(AGENTS)), draw(st.booleans()), draw(st.sampled_from(SLOTS))))
        elif kind in ("write", "append"):
            ops.append((kind, draw(st.sampled_from(free)), number, draw(st.sampled_from(SLOTS))))
        elif kind == "release":
            agent = draw(st.sampled_from(free))
            done.add(agent)
            ops.append((kind, agent))
            if draw(st.integers(0, 2)) == 0:
                ops.append(("fail",))
                break
        elif kind == "call":
            ops.append((kind, f"call{number}", draw(st.integers(0, 4)) == 0))
        elif kind == "unit":
            ops.append((kind, f"unit{number}", draw(operations(free, promise, depth - 1, done))))
        elif kind == "together":
            at = draw(st.integers(0, len(free)))
            branches = []
            for name, part in (("left", free[:at]), ("right", free[at:])):
                branches.append((f"{name}{number}", part, draw(operations(part, promise, depth - 1, done))))
            ops.append((kind, tuple(branches)))
        elif kind == "spawn":
            delay, agents = promise
            ops.append((kind, delay + draw(st.integers(0, 2)), draw(scripts(agents, promise, depth - 1))))
        else:
            ops.append((kind,))
    return tuple(ops)


@st.composite
def scripts(draw: Any, agents: tuple[str, ...] = AGENTS, promise: Any = None, depth: int = 2) -> Script:
    """A script whose own writes, and those of its descendants, lie among ``agents``."""
    writes = draw(subsets(agents))
    lookahead = None
    if depth > 0 and draw(st.booleans()):
        least, allowed = promise or (0, AGENTS)
        lookahead = (least + draw(st.integers(0, 2)), draw(subsets(allowed)))
    return Script(writes, draw(links(writes, lookahead, depth)), lookahead)


@st.composite
def links(draw: Any, writes: tuple[str, ...], lookahead: Any, depth: int) -> tuple[Op, ...]:
    """Operations of an event, which may go on with others where it has promised its own writes."""
    ops: tuple[Op, ...] = draw(operations(writes, lookahead, depth, set()))
    if depth and lookahead and set(writes) <= set(lookahead[1]) and draw(st.booleans()):
        ops += (("go_on", lookahead[0] + draw(st.integers(0, 2)), draw(links(writes, lookahead, depth - 1))),)
    return ops


@st.composite
def spawners(draw: Any) -> Script:
    """A script that takes its time and then schedules children which write what it does not write itself."""
    promise = (draw(st.integers(0, 2)), draw(subsets(AGENTS)))
    children = [
        ("spawn", promise[0] + draw(st.integers(0, 2)), draw(scripts(promise[1], promise, 1)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return Script((), (("call", "slow", False), ("call", "slower", False), *children), promise)


@st.composite
def worlds(draw: Any) -> World:
    """A run of up to twelve source rows in two phases."""
    script = st.one_of(scripts(), scripts(), spawners())
    rows = draw(st.lists(st.builds(Row, st.integers(0, 1), st.integers(0, 3), script), min_size=1, max_size=12))
    rows.sort(key=lambda row: (row.phase, row.time))
    period = draw(st.sampled_from([None, None, ("rows", 2), ("rows", 3), ("span", 2)]))
    return World(tuple(rows), period, draw(st.sampled_from([0, 0, 3])))
