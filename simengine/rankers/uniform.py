"""Random: every candidate scores the same. As ties count by expectation, its metrics are those of chance, exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset


class Random:
    """Ranking by chance, without the noise of drawing."""

    name = "random"

    def fit(self, dataset: Dataset) -> None:
        """Learns nothing."""

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Zeros, one for each candidate."""
        return np.zeros(len(candidates))
