"""The lines of ``events.jsonl``: one JSON object each, chained by a checksum.

The first line is the *provenance* of the file: where and how it was made, never hashed, never compared. All others are
semantic, a function of scenario, data, seed and the outcomes of the model's calls: one *header*, one line for each
event in commit order, one *end*. The last member of a semantic line, ``sum``, is a digest of the line before it is
added and of the ``sum`` before; so the last ``sum`` is the hash of the whole history.

Only whole lines count, so a key that was put in a second time makes a line invalid like any other change; where the
writer was given data with equal keys (``1`` and ``"1"``), the last one is read. Members that this version does not know
are passed over: whatever a reader must know in order to be right gets a new ``SCHEMA``.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from simengine.errors import KernelError
from simengine.kernel import Committed, Event, Lookahead, Note, Restored, Version
from simengine.world import Edge, Message

SCHEMA = 1
"""The version of the line format; a reader refuses what it does not know."""


class Provenance(msgspec.Struct, kw_only=True):
    """How a file came about. ``packages`` are versions, ``parent`` the run that this one was forked from.

    ``retry_failed``: calls that failed there are asked again here.
    """

    date: str
    packages: dict[str, str]
    concurrency: int
    parent: str | None = None
    retry_failed: bool = False


class Fork(msgspec.Struct, frozen=True):
    """Where a run parted from another: its first ``events`` events are those of a run of another ``scenario`` hash.

    They are taken over as they are; only what follows is a function of the header.
    """

    events: int
    scenario: str
    prompts: dict[str, str]


class Header(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the history is a function of, beside the outcomes of calls: hashes of scenario, data and prompts.

    ``fork`` is there where the first events are those of a run that was made otherwise.
    """

    schema: int
    seed: int
    scenario: str
    data: str
    prompts: dict[str, str]
    fork: Fork | None = None

    def changes(self, other: Header) -> list[str]:
        """What another header says otherwise: ``seed``, ``scenario``, ``data``, ``prompt choose`` ..."""
        changed = [name for name in ("seed", "scenario", "data") if getattr(self, name) != getattr(other, name)]
        names = dict.fromkeys((*self.prompts, *other.prompts))
        return changed + [f"prompt {name}" for name in names if self.prompts.get(name) != other.prompts.get(name)]


class MessageLine(msgspec.Struct, omit_defaults=True):
    """One message, with the ids of the messages and memory versions that led to it."""

    id: str
    sender: str
    recipient: str
    kind: str
    body: Any = None
    because: list[str] = []


class SpawnLine(msgspec.Struct, omit_defaults=True):
    """A child that the event has scheduled: all that is needed to issue it after a resume."""

    id: str
    kind: str
    time: int | float
    order: tuple[Any, ...]
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    data: Any = None
    edges: tuple[Edge, ...] = ()
    lookahead: Lookahead | None = None


class EventLine(msgspec.Struct, omit_defaults=True):
    """One committed event and everything that it did."""

    event: str
    kind: str
    time: int | float
    parent: str | None = None
    data: Any = None
    edges: tuple[Edge, ...] = ()
    messages: list[MessageLine] = []
    memories: list[Version] = []
    calls: dict[str, str] = {}
    units: dict[str, str] = {}
    spawns: list[SpawnLine] = []
    sum: str = ""

    def restored(self) -> Restored:
        """What the kernel needs of this event to go on behind it."""
        children = [_child(line, self.event) for line in self.spawns]
        return Restored(self.event, self.memories, children, self.failed)

    @property
    def failed(self) -> bool:
        """Whether a unit of the event failed."""
        return bool(self.units) and any(outcome != "ok" for outcome in self.units.values())


class End(msgspec.Struct):
    """The end of a finished history: how many events it holds, and how many of them had a failed unit."""

    events: int
    failed: int


class Line(msgspec.Struct, omit_defaults=True):
    """A line that is no event."""

    provenance: Provenance | None = None
    header: Header | None = None
    end: End | None = None
    sum: str = ""


def event_line(record: Committed) -> EventLine:
    """The line of a committed event."""
    event = record.event
    line = EventLine(event.id, event.kind, event.time, event.parent, event.data, event.facts)
    line.memories = record.versions
    if record.notes:
        line.messages = [_message(note) for note in record.notes]
    if record.calls:
        line.calls = dict(record.calls)
    if record.units:
        line.units = dict(record.units)
    if record.children:
        line.spawns = [_spawn(child) for child in record.children]
    return line


class Chain:
    """Closes lines with their checksum. ``sum`` is that of the last line closed."""

    def __init__(self, sum: str = "") -> None:
        self.sum = sum
        self._encode = msgspec.json.Encoder().encode

    def close(self, line: EventLine | Line) -> bytes:
        """The line as bytes, newline included."""
        body = self._encode(line)
        self.sum = digest(self.sum, body)
        return body[:-1] + b',"sum":"' + self.sum.encode() + b'"}\n'

    def check(self, text: bytes) -> bool:
        """Whether a line, without its newline, follows on the last one; goes on to it where it does."""
        body, found = text[:-_TAIL] + b"}", text[-_TAIL:]
        expected = digest(self.sum, body)
        if found != b',"sum":"' + expected.encode() + b'"}':
            return False
        self.sum = expected
        return True


def digest(before: str, body: bytes) -> str:
    """The checksum of a line, chained to the one before: 32 hexadecimal digits."""
    return hashlib.blake2b(before.encode() + body, digest_size=16).hexdigest()


_TAIL = len(',"sum":""}') + 32


def _message(note: Note) -> MessageLine:
    body = note.body
    if not isinstance(body, Message):
        raise KernelError(f"the log keeps messages, not {type(body).__name__}", remedy="note a Message", record=note.id)
    return MessageLine(note.id, body.sender, body.recipient, body.kind, body.body, list(map(str, note.because)))


def _spawn(child: Event) -> SpawnLine:
    return SpawnLine(
        child.id,
        child.kind,
        child.time,
        child.order,
        child.writes,
        child.reads,
        child.data,
        child.facts,
        child.lookahead,
    )


def _child(line: SpawnLine, parent: str) -> Event:
    return Event(
        id=line.id,
        kind=line.kind,
        order=line.order,
        time=line.time,
        writes=line.writes,
        reads=line.reads,
        data=line.data,
        facts=line.edges,
        parent=parent,
        lookahead=line.lookahead,
    )
