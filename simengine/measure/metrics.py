"""Ranking metrics: NDCG, Hit and MRR of one target among candidates, with ties by expectation; NDCG of graded lists.

A tie is never settled by id or position: each metric is its mean over all orders of the tied candidates. NaN scores
rank last, tied among themselves.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Candidate = TypeVar("Candidate", bound=Hashable)


class Place(NamedTuple):
    """Where a target stands: how many score better, how many score the same (itself included), how many are NaN."""

    better: int
    tied: int
    unscored: int


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected metrics of some targets, arrays of one shape; ``ndcg`` and ``hit`` by cut-off k."""

    ndcg: Mapping[int, NDArray[np.float64]]
    hit: Mapping[int, NDArray[np.float64]]
    mrr: NDArray[np.float64]


def place(scores: ArrayLike, target: int) -> Place:
    """The place of the candidate at position ``target`` among all ``scores`` (greater is better)."""
    values = np.asarray(scores, np.float64)
    unscored = int(np.isnan(values).sum())
    own = values[target]
    if np.isnan(own):
        return Place(len(values) - unscored, unscored, unscored)
    return Place(int((values > own).sum()), int((values == own).sum()), unscored)


def expected_at(better: ArrayLike, tied: ArrayLike, ks: Sequence[int]) -> Expected:
    """Metrics of targets given ``better`` and ``tied`` of their places, all at once.

    The target's rank is any of ``better + 1 ... better + tied``, each equally likely. One target is relevant, so NDCG@k
    is 1 / log2(rank + 1) within the first k and 0 beyond; MRR is over the whole list.
    """
    if any(k < 1 for k in ks):
        raise ValueError(f"cut-offs are positive, not {list(ks)}")
    first, count = np.asarray(better, np.int64), np.asarray(tied, np.int64)
    last = first + count
    ranks = np.arange(1, int(last.max(initial=0)) + 1)
    gains = np.concatenate(([0.0], np.cumsum(1 / np.log2(ranks + 1))))
    reciprocals = np.concatenate(([0.0], np.cumsum(1 / ranks)))
    ndcg, hit = {}, {}
    for k in ks:
        start, end = np.minimum(first, k), np.minimum(last, k)
        ndcg[k] = (gains[end] - gains[start]) / count
        hit[k] = (end - start) / count
    return Expected(ndcg, hit, (reciprocals[last] - reciprocals[first]) / count)


def expected(scores: ArrayLike, target: int, ks: Sequence[int]) -> Expected:
    """Metrics of one target among scored candidates, as arrays without dimensions."""
    better, tied, _ = place(scores, target)
    return expected_at(better, tied, ks)


def ndcg(gains: ArrayLike, k: int) -> float:
    """NDCG@k of gains (not negative) in the order of a ranking that holds everything relevant.

    The ideal order is that of *all* gains, cut at k after sorting, so the value is at most 1. NaN where no gain is
    above zero: then there is nothing to find.
    """
    values = np.asarray(gains, np.float64)
    return _ratio(values, values, k)


def ndcg_of_ranking(ranking: Sequence[Candidate], gains: Mapping[Candidate, float], k: int) -> float:
    """NDCG@k of a ranked list, which may repeat candidates or leave some out.

    A repeat counts once, where it stands first, and what follows moves up. A relevant candidate that is left out still
    counts in the ideal order.
    """
    ranked = [gains.get(candidate, 0.0) for candidate in dict.fromkeys(ranking)]
    return _ratio(np.array(ranked, np.float64), np.array(list(gains.values()), np.float64), k)


def _ratio(ranked: NDArray[np.float64], available: NDArray[np.float64], k: int) -> float:
    if k < 1:
        raise ValueError(f"a cut-off is positive, not {k}")
    if not np.all(available >= 0):
        raise ValueError("gains are numbers that are not negative")
    ideal = _dcg(np.sort(available)[::-1][:k])
    # Never above 1 but for rounding, where equal sums are added up in another order.
    return min(1.0, _dcg(ranked[:k]) / ideal) if ideal > 0 else float("nan")


def _dcg(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())
