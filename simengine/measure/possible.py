"""Who could have come to hold what was planted, counted: by the kind of contact, and by distance whatever the times."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.measure.reachability import Reach
from simengine.measure.trials import by_strength


class Met(msgspec.Struct, frozen=True):
    """Contacts of one kind with a source that could have it before the event, and how many agents had such contacts.

    They are an upper bound of the trials: a source that could hold it need not.
    """

    kind: str
    contacts: int
    agents: int


class Apart(msgspec.Struct, frozen=True):
    """Agents so many edges from the nearest seed in the bipartite graph of the whole run, whatever the times of edges.

    ``reached`` of them contacts lead to in the order of time; ``holders`` ever hold it. ``distance`` is ``None`` for
    agents whom contacts reach though no path of edges does.
    """

    distance: int | None
    agents: int
    reached: int
    holders: int


def met(reaches: Sequence[Reach]) -> tuple[Met, ...]:
    """The contacts of all plantings by kind, the strongest first; kinds without any are left out."""
    found: dict[str, tuple[int, int]] = {}
    for reach in reaches:
        contacts, agents = reach.contacts.sum(axis=0), np.count_nonzero(reach.contacts, axis=0)
        for kind, *counts in zip(reach.kinds, contacts.tolist(), agents.tolist(), strict=True):
            before = found.get(kind, (0, 0))
            found[kind] = (before[0] + counts[0], before[1] + counts[1])
    return tuple(Met(kind, *found[kind]) for kind in sorted(found, key=by_strength) if found[kind][0])


def apart(reaches: Sequence[Reach], holders: Sequence[NDArray[np.bool_]]) -> tuple[Apart, ...]:
    """The agents of all plantings by distance; ``holders`` says of each planting's agents whether they ever hold it."""
    rows: dict[int, NDArray[np.int64]] = {}
    for reach, held in zip(reaches, holders, strict=True):
        reached = reach.hops >= 0
        for distance in np.unique(reach.distance).tolist():
            there = (reach.distance == distance) & (reached if distance < 0 else True)
            counts = [np.count_nonzero(who & there) for who in (there, reached, held)]
            rows[distance] = rows.get(distance, np.zeros(3, np.int64)) + counts
    order = sorted(rows, key=lambda distance: (distance < 0, distance))
    found = ((None if at < 0 else at, *rows[at].tolist()) for at in order)
    return tuple(Apart(*row) for row in found if row[1])
