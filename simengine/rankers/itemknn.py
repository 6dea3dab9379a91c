"""ItemKNN: a candidate scores by how similar the user's past items are to it, by who took them both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class ItemKNN:
    """Item-based nearest neighbours for interactions without ratings (Deshpande and Karypis, 2004).

    Two items are as similar as the cosine of their columns in the 0/1 matrix of users and items of the training part.
    A candidate's score is the sum of its similarities to those items of the case's history that are among its
    ``neighbours`` most similar ones; items as similar as the last of them count too, so that no order of ids decides.
    An item is no neighbour of itself. What nobody took in training has no neighbours: it scores 0, like everything
    that shares no user with the history.

    This is not cornac's ItemKNN, which is made for ratings: it takes cosines over common users only and averages the
    ratings of the neighbours, so that without ratings all its similarities and scores are 0 or 1.
    """

    name = "itemknn"

    def __init__(self, neighbours: int = 100) -> None:
        self._neighbours = neighbours
        self._position: dict[str, int] = {}
        self._similar: csr_array | None = None

    def fit(self, dataset: Dataset) -> None:
        """Compare all pairs of items that have a user in common."""
        from scipy.sparse import csr_array

        part = dataset.training_part
        taken = csr_array((np.ones(len(part)), (part.item, part.user)), shape=(len(part.items), len(part.users)))
        taken.sum_duplicates()
        taken.data[:] = 1.0
        common = csr_array(taken @ taken.T).tocoo()
        counts = np.diff(taken.indptr)
        first, second = common.coords
        # one square root of an exact product: equal counts give equal bits, and so remain ties
        cosine = common.data / np.sqrt(counts[first].astype(np.float64) * counts[second])
        keep = first != second
        similar = csr_array((cosine[keep], (first[keep], second[keep])), shape=common.shape)
        for start, end in zip(similar.indptr[:-1], similar.indptr[1:], strict=True):
            row = similar.data[start:end]
            if len(row) > self._neighbours:
                row[row < np.partition(row, -self._neighbours)[-self._neighbours]] = 0.0
        self._position = {item: position for position, item in enumerate(part.items)}
        self._similar = similar

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Sums of similarities to the items of the history, each counted once."""
        if self._similar is None:
            raise RuntimeError("ItemKNN scores by similarities of items: call fit first")
        history = [self._position[item] for item in dict.fromkeys(case.history) if item in self._position]
        scores = np.zeros(len(candidates))
        for place, item in enumerate(candidates):
            if item in self._position:
                similar = self._similar[[self._position[item]], :].toarray()[0, history]
                scores[place] = math.fsum(similar)  # the same, whatever the order: equal parts remain a tie
        return scores
