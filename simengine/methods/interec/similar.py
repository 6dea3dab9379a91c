"""Scores that tools go by: how similar items are by who took them both (ItemCF), and what a user may prefer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset
from simengine.rankers import Ranker

Scores: TypeAlias = NDArray[np.float64]

Similar: TypeAlias = Callable[[Sequence[str]], Scores]
"""Seed items, by ids of the data set, to one score for each item of the data set, in its order; 0 is not similar."""

Preference: TypeAlias = Callable[[Sequence[str], Sequence[str]], Scores]
"""Liked items, oldest first, and candidates, by ids of the data set, to a score for each candidate; NaN is unknown."""


class CoOccurrence:
    """ItemCF: two items are as similar as the users whom they share, over the square root of the product of the
    numbers of users who took each (Linden et al., 2003), in the training part. An item is not similar to itself.
    """

    def __init__(self, dataset: Dataset) -> None:
        from scipy.sparse import csr_array

        part = dataset.training_part
        self._place = {item: place for place, item in enumerate(dataset.items)}
        places = np.array([self._place[item] for item in part.items], np.int64)[part.item]
        shape = (len(dataset.items), len(part.users))
        self._taken = csr_array((np.ones(len(part)), (places, part.user)), shape=shape)
        self._taken.sum_duplicates()
        self._taken.data[:] = 1.0
        self._totals = np.asarray(self._taken.sum(axis=1), np.float64)

    def __call__(self, seeds: Sequence[str]) -> Scores:
        """The mean similarity of each item of the data set to the seeds."""
        rows = [self._place[seed] for seed in dict.fromkeys(seeds)]
        if not rows:
            return np.zeros(len(self._totals))
        common = (self._taken @ self._taken[rows, :].T).toarray()
        products = np.outer(self._totals, self._totals[rows])
        similar = np.divide(common, np.sqrt(products), out=np.zeros_like(products), where=products > 0)
        similar[rows, np.arange(len(rows))] = 0.0
        return np.asarray(similar.mean(axis=1), np.float64)


def preference_of(ranker: Ranker) -> Preference:
    """What a fitted ranker that goes by a user's history (as SASRec does) makes of liked items."""
    return lambda liked, candidates: ranker.score(Case("", "", tuple(liked), None, 0), candidates)
