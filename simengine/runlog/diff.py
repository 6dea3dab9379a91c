"""Compares histories record by record, and says where two first part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from simengine.errors import Divergence, RunStopped
from simengine.kernel import Committed
from simengine.runlog.reader import Reader
from simengine.runlog.records import Chain, End, EventLine, Line, event_line

ABSENT = msgspec.UNSET
"""Stands where one of two histories has nothing."""

_OWNER = {"edges": "user", "messages": "sender", "memories": "agent"}
_SHOWN, _BEFORE = 80, 20


class Difference(msgspec.Struct, frozen=True):
    """The first place where two events differ, and both values (``ABSENT`` where one has none).

    ``record`` is a path into the event's line, as in ``memories[1].value`` or ``calls["choose/r1"]``. ``agent`` is
    whose record it is (the owner of a memory, the sender of a message, the user of an edge), ``unit`` the unit that
    wrote it, where the record names them.
    """

    record: str
    expected: Any
    found: Any
    agent: str | None = None
    unit: str | None = None


class EndOfLog(RunStopped):
    """An unfinished history has been compared as far as it goes."""


class Comparer:
    """A sink that compares what is committed with a history that was written before. The first difference raises.

    What ``reader`` has given already is taken as compared. Behind the last event of an unfinished history there is
    nothing to compare with: :class:`EndOfLog` is raised.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lines = reader.raw()
        self._chain = Chain(reader.sum)
        self.events = reader.events
        self.failed = reader.failed

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
        if expected is None and self._reader.end is None:
            self._chain.sum = before
            raise EndOfLog("the log ends here", event=line.event)
        if text != expected:
            self._chain.sum = before
            old = None if expected is None else msgspec.json.decode(expected, type=EventLine)
            raise _divergence(line.event, first_difference(old, line) or Difference("text", expected, text))
        self.events += 1
        self.failed += line.failed

    def finish(self) -> None:
        """Everything was re-executed: the history must end here too, with the same counts where it was finished."""
        left = next(self._lines, None)
        if left is not None:
            event = msgspec.json.decode(left, type=EventLine).event
            raise _divergence(event, Difference("event", event, ABSENT))
        end, expected = End(self.events, self.failed), self._reader.end
        if expected is None:
            return
        if expected != end:
            raise _divergence(None, Difference("end", expected, end))
        self._chain.close(Line(end=end))


def first_difference(expected: EventLine | None, found: EventLine | None) -> Difference | None:
    """Where two events first differ, in the order in which a line shows its parts; ``None`` where they are equal.

    An event that only one history has (``None`` for the other) differs as a whole, as the record ``event``. The
    checksum is not compared: it tells of all events before.
    """
    if expected is None or found is None:
        old, new = (ABSENT if line is None else line.event for line in (expected, found))
        return None if expected is found else Difference("event", old, new)
    return next(_differences(_plain(expected), _plain(found)), None)


def _plain(line: EventLine) -> dict[str, Any]:
    """The parts of an event as its line shows them, and empty ones too."""
    parts = msgspec.structs.asdict(line)
    del parts["sum"]
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parts))
    return plain


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Difference]:
    for part, one in old.items():
        owner = _OWNER.get(part)
        if owner is None:
            yield from _walk(part, one, new[part], None, None)
            continue
        for at, (left, right) in enumerate(zip_longest(one, new[part], fillvalue=ABSENT)):
            record: Any = right if left is ABSENT else left
            yield from _walk(f"{part}[{at}]", left, right, record[owner], record.get("unit"))


def _walk(path: str, one: Any, other: Any, agent: str | None, unit: str | None) -> Iterator[Difference]:
    """All differences below a path, depth first; mappings whose keys differ in order only differ by their keys."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*one, *other)):
            step = f".{key}" if key.isidentifier() else f"[{_text(key)}]"
            yield from _walk(path + step, one.get(key, ABSENT), other.get(key, ABSENT), agent, unit)
        one, other = list(one), list(other)
    if isinstance(one, list) and isinstance(other, list):
        for at, (left, right) in enumerate(zip_longest(one, other, fillvalue=ABSENT)):
            yield from _walk(f"{path}[{at}]", left, right, agent, unit)
    elif _text(one) != _text(other):
        yield Difference(path, one, other, agent, unit)


def _divergence(event: str | None, difference: Difference) -> Divergence:
    expected, found = _beside(_text(difference.expected), _text(difference.found))
    return Divergence(
        "the re-execution differs from the log",
        remedy="the log, the journal, the data or the program is not what the run was made with",
        event=event,
        record=difference.record,
        agent=difference.agent,
        unit=difference.unit,
        expected=expected,
        found=found,
    )


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return "nothing" if value is ABSENT else msgspec.json.encode(value).decode()


def _beside(one: str, other: str) -> tuple[str, str]:
    """Both texts, cut to a few words around the place where they part."""
    shorter = min(len(one), len(other))
    parting = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    start = max(0, parting - _BEFORE) if max(len(one), len(other)) > _SHOWN else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
