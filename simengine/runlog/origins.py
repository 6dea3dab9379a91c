"""Answers how a sentence got into a memory: phrase by phrase, back along the causes that hold it.

A phrase is followed as long as a cause holds its words. While it stays in one memory it is followed there, since what
is kept was not learned again; where it enters a memory, it is followed into every cause that holds it, the agent's own
only if no other does. A message without a body only shows what its causes hold, and is looked through. What no cause
holds was written there anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from simengine.runlog.texts import Phrase, find_phrases, holds, keeps
from simengine.runlog.trace import Record, Trace


class Origin(msgspec.Struct, frozen=True):
    """Where one phrase of a memory version came from.

    ``path`` names the records that it went through, from the earliest that holds it to this memory version; ``since``
    is the one in which it entered this memory. ``also`` names other records that hold it, as early and as near, so that
    nobody can say which of them it came from. ``unknown`` names first memories (version 0) that led to the earliest one
    and whose text nobody could tell: the phrase may have stood there.
    """

    label: str
    phrase: str
    path: tuple[str, ...]
    since: str
    also: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The earliest record that holds the phrase."""
        return self.path[0]


def find_origins(trace: Trace, name: str) -> list[Origin]:
    """The origin of each phrase of a memory version (or of a message), in the order of its text."""
    record = trace.record(name)
    return [_origin(trace, record, phrase) for phrase in find_phrases(record.text)]


def _origin(trace: Trace, record: Record, phrase: Phrase) -> Origin:
    kept = [record]
    while earlier := _kept(trace, kept[-1], phrase):
        kept.append(earlier)
    way, also = _way(trace, kept[-1], phrase.text)
    path = [*way, *(version.name for version in reversed(kept[:-1]))]
    unknown = tuple(cause.name for cause in _shown(trace, trace.record(way[0])) if not cause.known)
    return Origin(phrase.label, phrase.text, tuple(path), kept[-1].name, also, unknown)


def _kept(trace: Trace, at: Record, phrase: Phrase) -> Record | None:
    """The version of the same memory that led to this one, if the phrase stood there too."""
    return next((cause for cause in _own(_causes(trace, at), at) if keeps(cause.text, phrase)), None)


def _way(trace: Trace, entry: Record, phrase: str) -> tuple[list[str], tuple[str, ...]]:
    """The records from the earliest that holds the phrase to the one where it entered the memory, and its equals.

    Of several that are as early, the one counts from which it came over the fewest memories and messages.
    """
    came_to: dict[str, str | None] = {entry.name: None}
    steps = {entry.name: 0}
    sources: list[Record] = []
    waiting = deque([entry])
    while waiting:
        at = waiting.popleft()
        held = [cause for cause in _causes(trace, at) if _holds(trace, cause, phrase)]
        stayed = [] if at is entry else _own(held, at)
        # Where a phrase enters, what others held tells more than what the agent itself had said or kept elsewhere.
        others = [cause for cause in held if cause.agent != at.agent] if at is entry else []
        for cause in stayed or others or held:
            if cause.name not in came_to:
                came_to[cause.name] = at.name
                steps[cause.name] = steps[at.name] + (not stayed)
                (waiting.appendleft if stayed else waiting.append)(cause)
        if not held:
            sources.append(at)

    def rank(found: Record) -> tuple[int, int]:
        return (-1 if found.event is None else trace.position(found.event)), steps[found.name]

    best = min(map(rank, sources))
    first, *equals = [found.name for found in sources if rank(found) == best]
    return list(_path(came_to, first)), tuple(equals)


def _own(causes: list[Record], record: Record) -> list[Record]:
    """Of some causes, the versions of the memory that the record is one of."""
    return [cause for cause in causes if cause.slot and (cause.agent, cause.slot) == (record.agent, record.slot)]


def _causes(trace: Trace, record: Record) -> list[Record]:
    return [trace.record(name) for name in record.because]


def _shown(trace: Trace, record: Record) -> Iterator[Record]:
    """The causes of a record, with those of messages that only show what theirs hold."""
    for cause in _causes(trace, record):
        if not cause.slot and cause.value is None:
            yield from _shown(trace, cause)
        else:
            yield cause


def _holds(trace: Trace, record: Record, phrase: str) -> bool:
    if not record.slot and record.value is None:
        return any(holds(cause.text, phrase) for cause in _shown(trace, record))
    return holds(record.text, phrase)


def _path(came_to: dict[str, str | None], source: str) -> Iterator[str]:
    name: str | None = source
    while name is not None:
        yield name
        name = came_to[name]
