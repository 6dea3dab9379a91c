"""How much of a scenario can run side by side: the dependencies between its interactions, before anything is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from simengine.kernel import Event


class Dependencies(msgspec.Struct, frozen=True):
    """The levels of a dependency graph in which every event takes one unit of time.

    An event waits for the latest earlier event that writes an agent which it reads or writes, where there is a
    ``batch`` size for the latest of an earlier batch. ``critical_path`` is the number of levels, ``widest`` the most
    events on one level, ``parallelism`` events over levels.
    """

    events: int
    critical_path: int
    widest: int
    parallelism: float
    batch: int = 0


def find_dependencies(events: Iterable[Event], batch: int = 0) -> Dependencies:
    """The dependencies of events in their total order, each read at latest or, with ``batch``, at its batch's start."""
    written: dict[str, int] = {}
    seen = written  # what the events of a batch see: all that was written, or what was before the batch
    levels: Counter[int] = Counter()
    for number, event in enumerate(events):
        if batch and number % batch == 0:
            seen = dict(written)
        level = 1 + max((seen.get(agent, 0) for agent in (*event.writes, *event.reads)), default=0)
        levels[level] += 1
        for agent in event.writes:
            written[agent] = level
    count, path = levels.total(), max(levels, default=0)
    return Dependencies(count, path, max(levels.values(), default=0), count / path if path else 0.0, batch)
