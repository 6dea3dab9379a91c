"""What comes of drawing items one by one, by their weights and without replacement, counted in many samples.

A sample is made by clocks that run at the rates of the weights: the order of their first strokes is one in which such
items are drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simengine.measure.metrics import expected_at

DRAWS = 2000
"""Samples that chances are counted in."""

_CELLS = 1 << 20  # random numbers held at once
_LAST = 1e-300  # the rate of what weighs nothing: its clock strikes behind all others


def drawn_by_weight(weights: NDArray[np.float64], k: int, seed: int) -> NDArray[np.float64]:
    """How often each item is among the first ``k``. What weighs nothing is never drawn."""
    rates = np.where(weights > 0, weights, np.nan)
    generator = np.random.default_rng(seed)
    counts = np.zeros(len(weights))
    k = min(k, int(np.count_nonzero(weights > 0)))
    batch = max(1, _CELLS // len(weights))
    for done in range(0, DRAWS, batch):
        arrivals = generator.exponential(size=(min(batch, DRAWS - done), len(weights))) / rates
        first = np.argsort(arrivals, axis=1)[:, :k]  # NaN comes last
        counts += np.bincount(first.ravel(), minlength=len(weights))
    return counts / DRAWS


def ndcg_by_weight(weights: NDArray[np.float64], target: int, seed: int | tuple[int, int]) -> float:
    """The expected NDCG of the item at position ``target`` where all are drawn; what weighs nothing comes last."""
    rates = np.where(weights > 0, weights, _LAST)
    arrivals = np.random.default_rng(seed).exponential(size=(DRAWS, len(weights))) / rates
    before = (arrivals < arrivals[:, [target]]).sum(axis=1)
    return float(expected_at(before, np.ones(DRAWS, np.int64), [len(weights)]).ndcg[len(weights)].mean())
