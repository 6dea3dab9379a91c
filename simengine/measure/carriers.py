"""The tree of carriers: through whom a preference came from the seeds to each agent that ever held it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.measure.holding import Holdings, Spell


class Carrier(msgspec.Struct, frozen=True):
    """An agent that held the preference, and who brought it: ``None`` for a seed.

    ``generation`` counts carriers back to the seed, which is 0; ``position`` and ``time`` are those of the event with
    which it first began to hold it (-1 and the log's start where it began with it).
    """

    agent: str
    carrier: str | None
    generation: int
    position: int
    time: float


def tree_of_carriers(holdings: Holdings, seeds: Collection[str]) -> tuple[Carrier, ...]:
    """The seeds that held it and all whom it came to from them, each once, generation by generation.

    Who brought it to an agent are the agents whose memories held it among the causes of the version with which that
    agent first began to hold it; of several, it is the one that held it first. Agents whom causes do not lead back from
    to a seed have it from elsewhere and are left out.
    """
    first: dict[str, Spell] = {}
    for spell in holdings.spells:
        first.setdefault(spell.agent, spell)
    brought: dict[str, list[str]] = {}
    for agent, spell in first.items():
        carrier = next((other for other in spell.carriers if other in first), None)
        if carrier is not None and agent not in seeds:
            brought.setdefault(carrier, []).append(agent)
    found: list[Carrier] = []
    level: list[tuple[str, str | None]] = [(agent, None) for agent in first if agent in seeds]
    generation = 0
    while level:
        found += [Carrier(to, by, generation, first[to].begin, first[to].since) for to, by in level]
        level = [(to, by) for by, _ in level for to in brought.get(by, ())]
        generation += 1
    return tuple(found)


def carried(tree: Sequence[Carrier]) -> NDArray[np.int64]:
    """How many agents there are in each generation; the next one's are those whom it brought the preference to."""
    return np.bincount(np.array([carrier.generation for carrier in tree], np.int64))
