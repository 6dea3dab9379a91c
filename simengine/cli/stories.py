"""What the command trace tells of a preference on its way, of an item, and of what an agent knew at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from simengine.cli import told
from simengine.errors import InputError
from simengine.measure.carriers import Carrier
from simengine.measure.chain import Followed
from simengine.measure.holding import Spell
from simengine.runlog.story import Reading, find_as_of, find_readings, find_writers
from simengine.runlog.trace import Record, Trace
from simengine.scenario.following import find_item, follow


def find_agent(traced: Trace, name: str) -> str:
    """The agent that is meant by ``user:12``, or by ``12`` where no other has this id: then an error names both."""
    if name in traced.agents:
        return name
    meant = [agent for agent in traced.agents if agent.partition(":")[2] == name]
    if len(meant) > 1:
        raise InputError("several agents have this id", remedy=f"name one in full: {', '.join(meant)}", value=name)
    return meant[0] if meant else name


def of_preference(folder: Path, traced: Trace, text: str, agent: str | None) -> Iterator[told.Part]:
    """The tree of carriers and the chain to each holder in the order in which they came to hold it; or one chain."""
    followed = follow(folder, traced, text)
    if agent is not None:
        chain = followed.chain(find_agent(traced, agent))
        yield told.Part(chain, map(Text, chain.lines()))
        return
    yield told.Part({"preference": text, "seeds": list(followed.seeds), "tree": followed.tree}, _carriers(followed))
    tree = {carrier.agent: carrier for carrier in followed.tree}
    for holder, spell in followed.first.items():
        chain = followed.chain(holder)
        head = Text.assemble((holder, "bold cyan"), f"  {_through(tree[holder])}{_lost(spell)}")
        lines = [head, *(Text(f"  {line}") for line in chain.lines())]
        yield told.Part({"carrier": tree[holder], "until": spell.until, "chain": chain}, lines)


def of_item(folder: Path, traced: Trace, name: str) -> Iterator[told.Part]:
    """Each version of an item's memory: what changed in it, who wrote it, and who read it until the next."""
    agent = find_item(folder, traced, name)
    readings = find_readings(traced, agent)
    memories = {memory.name: memory for memory in traced.memories(agent)}
    # A first memory that nobody can tell was read all the same.
    unknown = {version: traced.record(version) for version in readings if version not in memories}
    for memory in (*unknown.values(), *memories.values()):
        yield _version(traced, memory, readings.get(memory.name, []))


def of_why(traced: Trace, asked: str) -> Iterator[told.Part]:
    """An agent's memory as of a time with where each phrase came from, and the last choice that it had made by then."""
    name, _, when = asked.rpartition("@")
    try:
        time = float(when)
    except ValueError:
        time = float("nan")
    if not name or time != time:
        raise InputError("this names no agent and time", remedy="write user:12@5", value=asked)
    agent = find_agent(traced, name)
    found = find_as_of(traced, agent, time)
    for memory in found.memories:
        origins = told.origins(traced, memory)
        lines = [*told.head(memory), Text(f"  {told.cut(memory.text, told.LONG)}"), *told.came_from(origins)]
        yield told.Part({"memory": memory, "origins": origins}, lines)
    if not found.memories:
        yield told.Part({"memory": None}, [Text(f"{agent} had written nothing by then")])
    if found.choice is not None:
        causes = traced.causes(found.choice.name)
        head = Text.assemble("the last choice: ", (f"{found.choice.event}, time {found.choice.time}", "bold cyan"))
        yield told.Part({"choice": causes}, [head, *told.tree(causes, "  ", "  ")])


def _carriers(followed: Followed) -> Iterator[Text]:
    """The tree, seeds first; not by recursion, as trees may be deep."""
    planted = sum(agent in followed.first for agent in followed.seeds)
    yield Text(
        f'agents that came to hold "{followed.preference.text}": {len(followed.first)}, by a planting: {planted}'
    )
    below: dict[str | None, list[Carrier]] = {}
    for carrier in sorted(followed.tree, key=lambda carrier: carrier.agent not in followed.seeds):
        below.setdefault(carrier.carrier, []).append(carrier)
    waiting = [(root, "", "") for root in reversed(below.get(None, []))]
    while waiting:
        at, before, inner = waiting.pop()
        how = "" if at.carrier else "planted, " if at.agent in followed.seeds else "from nobody's memory, "
        yield Text.assemble(before, (at.agent, "cyan"), f"  {how}{_since(at)}")
        mine = below.get(at.agent, [])
        for child in reversed(mine):
            last = child is mine[-1]
            waiting.append((child, inner + ("└─ " if last else "├─ "), inner + ("   " if last else "│  ")))


def _since(carrier: Carrier) -> str:
    return f"time {_time(carrier.time)}" if carrier.position >= 0 else "before the run"


def _through(carrier: Carrier) -> str:
    return f"through {carrier.carrier}, {_since(carrier)}" if carrier.carrier else _since(carrier)


def _lost(spell: Spell) -> str:
    return "" if spell.until is None else f", lost again at time {_time(spell.until)}"


def _time(time: float) -> str:
    """A time as the data have it: milliseconds since 1970 have thirteen digits."""
    return f"{time:.15g}"


def _version(traced: Trace, memory: Record, readings: Sequence[Reading]) -> told.Part:
    part = told.version(traced, memory)
    writers = find_writers(traced, memory)
    lines = [*part.lines]
    if writers:
        lines.append(Text(f"  written from {', '.join(writers)}"))
    lines += [Text(f"  read by {by.by}, {by.how}: {by.event}, time {by.time}") for by in readings]
    return told.Part({**part.data, "writers": writers, "readings": readings}, lines)
