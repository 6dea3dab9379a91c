"""Who could have come to hold what was planted: everybody whom contacts lead to from the seeds, in the order of time.

A contact passes on what its source may hold before the event (Holme and Saramäki, Temporal networks, 2012, call such
paths time-respecting). All agents that an event writes are reached together, as whoever is reached in an event is
reached by one who may hold it before. The reach is an upper bound: a source counts once it was reached, even where an
older version of its memory was shown (periods, batches).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.errors import InputError
from simengine.measure.contacts import Contacts, pair_events
from simengine.runlog import EventLine

NEVER = int(np.iinfo(np.int32).max)
"""The position from which an agent may hold something that it is never reached by."""

_PASSES = 64  # over all contacts, one a hop, before these are gone through one by one
_BLOCK = 1 << 18  # contacts that are lists of Python's numbers at once

_Ints: TypeAlias = "NDArray[np.int32]"


@dataclass(frozen=True, eq=False)
class Reach:
    """What could be reached from the seeds, over A agents, E events and K kinds of contact.

    ``agents`` are those of the contacts, and behind them seeds that take part in nothing; ``events`` and ``kinds`` are
    those of the contacts. Of each agent, shape (A,):

    since: position of the first event before which it may hold what was planted, which for an agent that was reached
        is one behind the event that reached it first; :data:`NEVER` where nothing leads to it.
    time: the time of that event that reached it; for a seed the time of the event before which it was planted. NaN
        where nothing leads to it, and for a seed planted behind the last event.
    hops: the fewest contacts on a time-respecting path from a seed, which may arrive later than others; -1 where there
        is none.
    distance: the fewest edges from a seed in the bipartite graph of the whole run, whatever their times; -1 where there
        is no path. One event joins all of its agents, so that hops may be fewer.

    ``contacts``, shape (A, K): how many contacts each agent had with a source that may hold it before the event.
    ``touched``, shape (E,): whether someone who may hold it before takes part in the event.
    """

    agents: tuple[str, ...]
    events: tuple[str, ...]
    kinds: tuple[str, ...]
    since: _Ints
    time: NDArray[np.float64]
    hops: _Ints
    distance: _Ints
    contacts: NDArray[np.int64]
    touched: NDArray[np.bool_]


class Outside(msgspec.Struct, frozen=True):
    """An agent that two runs tell differently though nothing leads to it, and the first event in which they do."""

    agent: str
    event: str


def reach(contacts: Contacts, seeds: Mapping[str, int]) -> Reach:
    """What can be reached from seeds, each with the position of the first event before which it was planted.

    Takes time in proportion to contacts, whatever the paths. :class:`InputError` for a position outside of the log.
    """
    for seed, position in seeds.items():
        if not 0 <= position <= len(contacts.events):
            problem = f"a planting before event {position} does not lie in a log of {len(contacts.events)} events"
            raise InputError(problem, remedy="give the position of an event, from 0", agent=seed, value=position)
    known = set(contacts.agents)
    agents = (*contacts.agents, *(seed for seed in seeds if seed not in known))
    numbers = dict(zip(agents, range(len(agents)), strict=True))
    planted = {numbers[seed]: position for seed, position in seeds.items()}
    since, hops = _by_passes(contacts, planted, len(agents)) or _in_order(contacts, planted, len(agents))
    shape = (len(agents), len(contacts.kinds))
    before = since[contacts.source] <= contacts.position
    cells = contacts.target[before].astype(np.int64) * shape[1] + contacts.kind[before]
    touched = np.zeros(len(contacts.events), np.bool_)
    touched[contacts.part_position[since[contacts.part_agent] <= contacts.part_position]] = True
    return Reach(
        agents,
        contacts.events,
        contacts.kinds,
        since,
        _times(contacts, since, planted),
        hops,
        _distances(contacts, planted, len(agents)),
        np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape),
        touched,
    )


def outside(reach: Reach, control: Iterable[EventLine], treatment: Iterable[EventLine]) -> list[Outside]:
    """The agents whose memories differ between two logs at an event at which they are not reached yet, in its order.

    None is to be found where the runs differ by the planting alone, and the reach is that over the contacts of both
    (:func:`~simengine.measure.contacts.merge_events`). For events outside of the reach's log it counts whether the
    agent is ever reached. What counts as a memory is its text: numbers of versions and causes may well differ.
    """
    positions = {event: position for position, event in enumerate(reach.events)}
    since = dict(zip(reach.agents, reach.since.tolist(), strict=True))
    found: dict[str, Outside] = {}
    for one, other in pair_events(control, treatment):
        event = next(line.event for line in (one, other) if line is not None)
        latest = positions.get(event, NEVER - 2) + 1
        for agent in _differing(one, other):
            if since.get(agent, NEVER) > latest:
                found.setdefault(agent, Outside(agent, event))
    return list(found.values())


def _by_passes(contacts: Contacts, planted: Mapping[int, int], agents: int) -> tuple[_Ints, _Ints] | None:
    """``since`` and ``hops``, by one pass for each number of hops; ``None`` where there are too many of these."""
    since, hops = np.full(agents, NEVER, np.int32), np.full(agents, -1, np.int32)
    since[list(planted)], hops[list(planted)] = list(planted.values()), 0
    position, source, target = contacts.position, contacts.source, contacts.target
    for hop in range(1, _PASSES + 1):
        passes = since[source] <= position
        earlier = since.copy()
        np.minimum.at(earlier, target[passes], position[passes] + 1)
        new = earlier < since
        if not new.any():
            return since, hops
        since = earlier
        hops[new & (hops < 0)] = hop
        # A contact passes on once; and those whose target may hold it before have nothing to bring.
        left = ~passes & (position + 1 < since[target])
        position, source, target = position[left], source[left], target[left]
    return None


def _in_order(contacts: Contacts, planted: Mapping[int, int], agents: int) -> tuple[_Ints, _Ints]:
    """The same in one pass through all contacts, one after the other, which long chains make no slower."""
    since, hops = [NEVER] * agents, [NEVER] * agents
    plantings = sorted((position, seed) for seed, position in planted.items())
    starts = np.searchsorted(contacts.position, [position for position, _ in plantings]).tolist()
    for (planting, seed), start, end in zip(plantings, starts, [*starts[1:], len(contacts.position)], strict=True):
        since[seed], hops[seed] = min(since[seed], planting), 0
        for source, target, position in _blocks(contacts, start, end):
            hop = hops[source] + 1
            if hop < hops[target]:
                since[target] = min(since[target], position + 1)
                hops[target] = hop
    fewest = np.array(hops, np.int64)
    fewest[fewest == NEVER] = -1
    return np.array(since, np.int32), fewest.astype(np.int32)


def _blocks(contacts: Contacts, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Source, target and position of contacts, a block at a time, as numbers of Python's are large."""
    for first in range(start, end, _BLOCK):
        block = slice(first, min(first + _BLOCK, end))
        columns = (contacts.source[block], contacts.target[block], contacts.position[block])
        yield from zip(*(column.tolist() for column in columns), strict=True)


def _times(contacts: Contacts, since: _Ints, planted: Mapping[int, int]) -> NDArray[np.float64]:
    """The times that go with ``since``: of the event before for agents that were reached, of the same one for seeds."""
    event = since - 1
    seeds = np.array([seed for seed, position in planted.items() if since[seed] == position], np.int64)
    event[seeds] += 1
    times = np.append(contacts.times, np.nan)
    return times[np.minimum(event, len(contacts.times))]


def _distances(contacts: Contacts, planted: Mapping[int, int], agents: int) -> _Ints:
    """The fewest edges from any seed."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    seeds = np.array(list(planted), np.int32)
    root = agents  # a node that is joined with all seeds
    ends = np.concatenate([contacts.edges.T, [np.full(len(seeds), root), seeds]], axis=1)
    graph = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(agents + 1, agents + 1))
    order, before = breadth_first_order(graph, root, directed=False)
    distance = [-1] * (agents + 1)
    for node, nearer in zip(order[1:].tolist(), before[order[1:]].tolist(), strict=True):
        distance[node] = distance[nearer] + 1
    return np.array(distance[:-1], np.int32)


def _differing(one: EventLine | None, other: EventLine | None) -> Iterator[str]:
    """The agents that two runs of an event write differently."""
    first, second = _written(one), _written(other)
    yield from (agent for agent in {**first, **second} if first.get(agent) != second.get(agent))


def _written(line: EventLine | None) -> dict[str, list[tuple[Any, ...]]]:
    """What an event writes to each agent, in order."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for version in line.memories if line is not None else ():
        found.setdefault(version.agent, []).append((version.slot, version.value, version.append))
    return found
