"""Who holds a preference before an event, after it, at a time or ever: spells as arrays, for many questions at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simengine.measure.holding import Holdings


class Held:
    """The spells of one log over numbered agents; those of agents that ``numbers`` lacks are left out.

    ``since`` and ``until`` are the times of each spell (``until`` infinite where it goes on).
    """

    def __init__(self, holdings: Holdings, numbers: Mapping[str, int]) -> None:
        spells = [spell for spell in holdings.spells if spell.agent in numbers]
        spells.sort(key=lambda spell: (numbers[spell.agent], spell.begin))
        self._agents = len(numbers)
        self._width = holdings.events + 2
        self._agent = np.array([numbers[spell.agent] for spell in spells], np.int64)
        self._keys = self._agent * self._width + np.array([spell.begin + 1 for spell in spells], np.int64)
        ends = [holdings.events if spell.end is None else spell.end for spell in spells]
        self._end = np.array(ends, np.int64)
        self.since = np.array([spell.since for spell in spells], np.float64)
        self.until = np.array([np.inf if spell.until is None else spell.until for spell in spells], np.float64)

    def before(self, agents: NDArray[np.integer], positions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each agent holds it before the event at each position."""
        return self._after(agents, np.asarray(positions, np.int64) - 1)

    def after(self, agents: NDArray[np.integer], positions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each agent holds it after the event at each position."""
        return self._after(agents, np.asarray(positions, np.int64))

    def at(self, time: float) -> NDArray[np.bool_]:
        """Of each agent, whether it holds it after all events up to this time, those of this very time included."""
        return self._have((self.since <= time) & (time < self.until))

    def ever(self) -> NDArray[np.bool_]:
        """Of each agent, whether it ever holds it."""
        return self._have(np.ones(len(self._agent), np.bool_))

    def _after(self, agents: NDArray[np.integer], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the agent's last spell that has begun by the event goes on behind it."""
        keys = np.asarray(agents, np.int64) * self._width
        last = np.searchsorted(self._keys, keys + positions + 1, side="right") - 1
        own = np.append(self._keys, -1)[last] >= keys  # -1 too where there is no spell: the appended key
        holds: NDArray[np.bool_] = own & (np.append(self._end, -1)[last] > positions)
        return holds

    def _have(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        counts = np.bincount(self._agent[which], minlength=self._agents)
        return counts > 0
