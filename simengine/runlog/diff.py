"""Compares histories record by record, and says where two first part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from simengine.errors import Divergence
from simengine.kernel import Committed
from simengine.runlog.reader import Reader
from simengine.runlog.records import Chain, End, EventLine, Line, event_line


class Difference(msgspec.Struct, frozen=True):
    """The first place where an event differs: which record, of which agent, and both values."""

    record: str
    agent: str | None
    expected: Any
    found: Any


class Comparer:
    """A sink that compares what is committed with a history that was written before. The first difference raises."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lines = reader.raw()
        self._chain = Chain(reader.sum)
        self.events = 0
        self.failed = 0

    @property
    def sum(self) -> str:
        """The hash of what was compared."""
        return self._chain.sum

    def commit(self, record: Committed) -> None:
        """Compare one event with the next line."""
        line = event_line(record)
        before = self._chain.sum
        text = self._chain.close(line)[:-1]
        expected = next(self._lines, None)
        if text != expected:
            self._chain.sum = before
            raise self._divergence(expected, line)
        self.events += 1
        self.failed += line.failed

    def finish(self) -> None:
        """Everything was re-executed: the history must end here too."""
        left = next(self._lines, None)
        if left is not None:
            raise self._divergence(left, None)
        if self._reader.end is not None:
            self._chain.close(Line(end=End(self.events, self.failed)))

    def _divergence(self, expected: bytes | None, found: EventLine | None) -> Divergence:
        old = None if expected is None else msgspec.json.decode(expected, type=EventLine)
        difference = first_difference(old, found)
        event = old or found
        return Divergence(
            "the re-execution differs from the log",
            remedy="the log, the journal, the data or the program is not what the run was made with",
            event=event.event if event else None,
            record=difference.record,
            agent=difference.agent,
            expected=difference.expected,
            found=difference.found,
        )


def first_difference(expected: EventLine | None, found: EventLine | None) -> Difference:
    """Where two events first differ, in the order in which a line shows its parts."""
    if expected is None or found is None:
        have = expected or found
        name = have.event if have else None
        return Difference("event", None, name if expected else None, name if found else None)
    old, new = msgspec.to_builtins(expected), msgspec.to_builtins(found)
    for part in (field for field in EventLine.__struct_fields__ if field != "sum"):
        for path, agent, one, other in _walk(part, old.get(part), new.get(part), None):
            return Difference(path, agent, one, other)
    return Difference("sum", None, expected.sum, found.sum)


def _walk(path: str, one: Any, other: Any, agent: str | None) -> Iterator[tuple[str, str | None, Any, Any]]:
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        owner = one.get("agent") or one.get("sender") or agent
        for key in dict.fromkeys((*one, *other)):
            yield from _walk(f"{path}.{key}", one.get(key), other.get(key), owner)
    elif isinstance(one, list) and isinstance(other, list):
        for at in range(max(len(one), len(other))):
            left = one[at] if at < len(one) else None
            right = other[at] if at < len(other) else None
            yield from _walk(f"{path}[{at}]", left, right, agent)
    else:
        yield path, agent, one, other
