"""The serial interpreter: one event after the other, plain dictionaries. The kernel must agree with it."""

from __future__ import annotations

import heapq
from typing import Any

from scripts import Script, World

from simengine.kernel import stream


class Failure(Exception):
    """A unit has failed."""


class Own:
    """What one branch has done."""

    def __init__(self, path: str) -> None:
        self.path, self.writes, self.children = path, [], []
        self.notes: list[Any] = []
        self.calls: list[Any] = []
        self.units: list[Any] = []


class Serial:
    """Runs a world; ``records`` holds for each event what the log would."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.history: dict[str, list[tuple[Any, ...]]] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        self.rows = [(row.phase, row.time, at) for at, row in enumerate(world.rows)]
        self.records: list[dict[str, Any]] = []
        queue = [(order, f"row{at}", world.rows[at].script, at) for at, order in enumerate(self.rows)]
        heapq.heapify(queue)
        while queue:
            order, name, script, row = heapq.heappop(queue)
            for child in Run(self, order, name, script, row).execute():
                heapq.heappush(queue, child)

    def boundary(self, order: tuple[Any, ...]) -> tuple[Any, ...]:
        """The last publication at or before ``order``."""
        how, every = self.world.period or ("", 0)
        start: tuple[Any, ...] = (order[0],)
        if how == "span":
            return (order[0], order[1] // every * every)
        return max([start, *(row for at, row in enumerate(self.rows) if at % every == 0 and row <= order)])


class Run:
    """One event."""

    def __init__(self, serial: Serial, order: tuple[Any, ...], name: str, script: Script, row: int | None) -> None:
        self.serial, self.order, self.name, self.script = serial, order, name, script
        self.released: set[str] = set()
        self.as_of = order
        if serial.world.batch and row is not None:
            first = min(at for at, r in enumerate(serial.rows) if r[0] == order[0])
            self.as_of = serial.rows[first + (row - first) // serial.world.batch * serial.world.batch]

    def execute(self) -> list[Any]:
        root = Own("")
        try:
            self.run(self.script.ops, [root], "")
        except Failure as failure:
            root.writes = [w for w in root.writes if w[0] in self.released]
            root.children = []
            root.units.append(("", str(failure)))
        versions = []
        for agent in self.script.writes:
            for who, slot, value, append in root.writes:
                if who == agent:
                    number = self.serial.numbers[agent, slot] = self.serial.numbers.get((agent, slot), 0) + 1
                    versions.append((agent, slot, value, append, number))
                    self.serial.history.setdefault(agent, []).append((self.order, slot, value, append))
        self.serial.records.append(
            {
                "id": self.name,
                "notes": root.notes,
                "calls": root.calls,
                "units": root.units,
                "versions": versions,
                "children": [child[1] for child in root.children],
            }
        )
        return root.children

    def look(self, stack: list[Own], agent: str, slot: str, own: bool) -> list[Any]:
        as_of, blind = self.as_of, False
        if self.serial.world.period and agent.startswith("shop") and not own:
            blind = True
            as_of = min(as_of, self.serial.boundary(self.order))
        found = [("", slot, 0, False)] if slot == "memory" else []
        found += [v for v in self.serial.history.get(agent, ()) if v[0] < as_of and v[1] == slot]
        if not blind:
            found += [(None, *w[1:]) for branch in stack for w in branch.writes if w[0] == agent and w[1] == slot]
        fresh = [at for at, version in enumerate(found) if not version[3]]
        return [version[2] for version in (found[fresh[-1] :] if fresh else found)]

    def run(self, ops: tuple[Any, ...], stack: list[Own], seen: str) -> str:
        here = stack[-1]
        for op in ops:
            kind = op[0]
            if kind == "read":
                seen = f"{seen}|{self.look(stack, op[1], 'memory', op[2])[-1]}"[-40:]
            elif kind == "entries":
                seen = f"{seen}|{self.look(stack, op[1], op[3], op[2])}"[-40:]
            elif kind == "write":
                here.writes.append((op[1], op[3], f"{seen}w{op[2]}", False))
            elif kind == "append":
                here.writes.append((op[1], op[3], f"{seen}a{op[2]}", True))
            elif kind == "release":
                self.released.add(op[1])
            elif kind == "note":
                here.notes.append((f"{self.name}#{here.path}.{len(here.notes)}", seen))
            elif kind == "draw":
                seen += str(stream(7, self.name, here.path, "x").randrange(100))
            elif kind == "fail":
                raise Failure("planned")
            elif kind == "call":
                path = "/".join(part for part in (here.path, op[1]) if part)
                here.calls.append((path, "failed: refused" if op[2] else "answered"))
                if op[2]:
                    raise Failure("refused")
                seen += f"{self.name}#{path}"[-6:]
            elif kind == "unit":
                seen = self.settle(here, [(op[1], op[2])], stack, seen)
            elif kind == "together":
                seen = self.settle(here, [(name, ops) for name, _, ops in op[1]], stack, seen)
            elif kind == "spawn":
                self.spawn(here, op)
            elif kind == "go_on":
                self.go_on(here, op)
        return seen

    def settle(self, here: Own, branches: list[tuple[str, Any]], stack: list[Own], seen: str) -> str:
        opened, values = [], []
        for name, ops in branches:
            branch = Own("/".join(part for part in (here.path, name) if part))
            try:
                values.append(self.run(ops, [*stack, branch], seen))
                opened.append((branch, None))
            except Failure as failure:
                values.append("")
                opened.append((branch, str(failure)))
        for branch, failure in opened:
            here.writes += [w for w in branch.writes if failure is None or w[0] in self.released]
            here.children += branch.children if failure is None else []
            here.notes += branch.notes
            here.calls += branch.calls
            here.units += [*branch.units, (branch.path, failure or "ok")]
        return "".join(values)[-40:]

    def spawn(self, here: Own, op: Any) -> None:
        _, delay, script = op
        number = len(here.children)
        order = (self.order[0], self.order[1] + delay, *self.order[2:], here.path, number)
        here.children.append((order, f"{self.name}>{here.path}.{number}", script, None))

    def go_on(self, here: Own, op: Any) -> None:
        _, delay, ops = op
        first, tie, number = self.name, self.order[2:], 2
        if self.order[-2] == "+":
            first, tie, number = self.name.rpartition("+")[0], self.order[2:-2], self.order[-1] + 1
        order = (self.order[0], self.order[1] + delay, *tie, "+", number)
        script = Script(self.script.writes, ops, self.script.lookahead)
        here.children.append((order, f"{first}+{number}", script, None))
