"""What a ranker is: something that learns from a data set's training part and scores candidates of a test case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset


class Ranker(Protocol):
    """``fit`` once, then ``score`` any number of cases.

    ``score`` returns a float64 per candidate, in the order given: greater is better, equal is a tie, NaN says that this
    candidate cannot be scored. It must not depend on the order of the candidates, nor on which of them is the target.
    """

    name: str

    def fit(self, dataset: Dataset) -> None: ...

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]: ...
