"""Pop: a candidate scores by how often it occurs in the training parts of all users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset


class Pop:
    """Popularity, counted over what may be learnt from: on AgentCF's data the first six items of each user."""

    name = "pop"

    def __init__(self) -> None:
        self._counts: Counter[str] | None = None

    def fit(self, dataset: Dataset) -> None:
        """Count each item's interactions in the training part."""
        part = dataset.training_part
        self._counts = Counter({part.items[item]: count for item, count in Counter(part.item.tolist()).items()})

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """The candidates' counts; 0 for one that was never seen."""
        if self._counts is None:
            raise RuntimeError("Pop scores by what it has counted: call fit first")
        return np.array([self._counts[item] for item in candidates], np.float64)
