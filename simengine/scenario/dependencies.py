"""How much of a scenario can run side by side: the dependencies between its interactions, before anything is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from simengine.kernel import Event


class Dependencies(msgspec.Struct, frozen=True):
    """The levels of a dependency graph in which every event takes one unit of time.

    An event waits for the latest earlier event that writes an agent which it reads or writes. ``critical_path`` is the
    number of levels, ``widest`` the most events on one level, ``parallelism`` events over levels.
    """

    events: int
    critical_path: int
    widest: int
    parallelism: float


def find_dependencies(events: Iterable[Event]) -> Dependencies:
    """The dependencies of events in their total order, every read at latest."""
    written: dict[str, int] = {}
    levels: Counter[int] = Counter()
    for event in events:
        level = 1 + max((written.get(agent, 0) for agent in (*event.writes, *event.reads)), default=0)
        levels[level] += 1
        for agent in event.writes:
            written[agent] = level
    count, path = levels.total(), max(levels, default=0)
    return Dependencies(count, path, max(levels.values(), default=0), count / path if path else 0.0)
