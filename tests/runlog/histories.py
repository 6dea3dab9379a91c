"""A small program whose log holds every kind of record, and what tests do with its history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from simengine.errors import UnitFailed
from simengine.kernel import Call, Context, Engine, Event, Lookahead, Restored, Rules, Sink
from simengine.runlog import SCHEMA, Header, Provenance, Reader, Writer
from simengine.world import Edge, Message

HEADER = Header(schema=SCHEMA, seed=7, scenario="s1", data="d1", prompts={"choose": "p1"})
PROVENANCE = Provenance(date="2024-05-01", packages={"simengine": "0.1.0"}, concurrency=4)


class Small:
    """Each row: a call, a message, an entry for the user, a new text for the item, a child. Every third item fails."""

    def __init__(self, padding: str = "") -> None:
        self.padding = padding

    def initial(self, agent: str) -> dict[str, Any]:
        return {"text": f"I am {agent}"}

    def announce(self, event: Event) -> None: ...

    async def handle(self, context: Context) -> None:
        event = context.event
        user, item = event.writes
        if event.parent is not None:
            context.append(user, "long", f"Später: {event.data['said']}")
            return
        seen = await context.read(item, "text", by=user)
        said = await context.effect(self.answer, "choose/r1")
        note = context.note(Message(user, item, "choice", f"{said} 🎷"), because=[seen])
        context.append(user, "long", f"“{event.id}” — naïve {said}{self.padding}", because=[note, seen])

        async def reflect(unit: Context) -> None:
            if event.data["row"] % 3 == 2:
                raise UnitFailed("it cannot be read", reason="unreadable")
            unit.write(item, "text", f"{seen.value}, known to {user}", because=[note])

        await context.unit("reflect.item", reflect)
        edge = Edge(user, "venue:1", "attendance", event.time + 1)
        writes = (user, item)
        context.spawn("later", delay=1.5, writes=writes, data={"said": said, "n": [1, 1.0]}, facts=(edge,))

    async def answer(self, call: Call) -> tuple[str, str]:
        return f"because of {call.id}", "ok"


def source(rows: int) -> Iterator[Event]:
    for row in range(rows):
        pair = (f"user:{row % 3}", f"item:{row % 2}")
        yield Event(
            id=f"row{row}",
            kind="interaction",
            order=(0, row * 2, row),
            time=row * 2,
            writes=pair,
            data={"row": row},
            facts=(Edge(*pair, "interaction", row * 2),),
            source=True,
            lookahead=Lookahead(1.5, pair),
        )


def run(sink: Sink, rows: int, history: Iterable[Restored] = (), program: Small | None = None) -> None:
    """Run the program behind ``history``."""

    async def go() -> None:
        await Engine(program or Small(), source(rows), sink, Rules(seed=7)).run(history)

    asyncio.run(go())


def write(path: Path, rows: int) -> bytes:
    """A finished history of ``rows`` rows, each with one child: the bytes of its file."""
    writer = Writer(path, HEADER, PROVENANCE)
    run(writer, rows)
    writer.end()
    writer.close()
    return path.read_bytes()


def resume(path: Path, rows: int, *, repair: bool = False) -> bytes:
    """Finish the history that a file begins: the bytes of the file then."""
    reader = Reader(path, repair=repair)
    history = [line.restored() for line in reader]
    writer = Writer.again(path, sum=reader.sum, size=reader.size, events=reader.events, failed=reader.failed)
    run(writer, rows, history)
    if reader.end is None:
        writer.end()
    writer.close()
    return path.read_bytes()
