"""Compares histories record by record, and says where two first part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from simengine.kernel import Committed
from simengine.runlog.reader import Reader
from simengine.runlog.records import Chain, End, EventLine, Line, event_line

_SHOWN = 80


class Difference(msgspec.Struct, frozen=True):
    """The first place where two histories differ, and both values (``ABSENT`` where one has none).

    ``record`` is a path into the event's line, as in ``memories[1].value`` or ``calls["choose/r1"]``. ``agent`` is
    whose record it is (the writer of a memory, the sender of a message, the user of an edge), ``unit`` the unit that
    did it, where the record names them.
    """

    record: str
    expected: Any
    found: Any
    agent: str | None = None
    unit: str | None = None


ABSENT: Literal[msgspec.UnsetType.UNSET] = msgspec.UNSET
"""Stands where one of two histories has nothing."""


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
            line.sum, self._chain.sum = self._chain.sum, before
            raise _divergence(expected, line)
        self.events += 1
        self.failed += line.failed

    def finish(self) -> None:
        """Everything was re-executed: the history must end here too, with the same counts where it was finished."""
        left = next(self._lines, None)
        if left is not None:
            raise _divergence(left, None)
        end, expected = End(self.events, self.failed), self._reader.end
        if expected is None:
            return
        if expected != end:
            raise _told(Difference("end", msgspec.to_builtins(expected), msgspec.to_builtins(end)), None)
        self._chain.close(Line(end=end))


def first_difference(expected: EventLine | None, found: EventLine | None) -> Difference | None:
    """Where two events first differ, in the order in which a line shows its parts; ``None`` where they are equal.

    An event that only one history has differs as a whole, as the record ``event``.
    """
    if expected is None or found is None:
        names = [ABSENT if line is None else line.event for line in (expected, found)]
        return None if expected is found else Difference("event", *names)
    return next(_differences(expected, found), None)


def _differences(expected: EventLine, found: EventLine) -> Iterator[Difference]:
    old, new = _plain(expected), _plain(found)
    for part in EventLine.__struct_fields__:
        for ours, theirs, owner, unit in _records(part, old.get(part, ABSENT), new.get(part, ABSENT)):
            pass


def _plain(line: EventLine) -> dict[str, Any]:
    """The line as its text reads."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(line))
    return plain
