"""SeqSim: a candidate scores by how alike its text is to the texts of the user's past items (LLMSeqSim, by TF-IDF)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset, Item


class SeqSim:
    """Cosine similarity between a candidate's vector and the mean vector of the items in the case's history.

    It is LLMSeqSim (Harte et al. 2023) with TF-IDF of titles and categories in place of a language model's embeddings,
    so that it needs no model. It learns from the item table alone. An item without words scores 0, as does every
    candidate of a case without history; NaN is for an id that is not in the data set.
    """

    name = "seqsim"

    def __init__(self) -> None:
        self._rows: Any = None  # a sparse matrix, a row for each item
        self._position: dict[str, int] = {}

    def fit(self, dataset: Dataset) -> None:
        """Make the vectors of all items."""
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = list(map(_text, dataset.items.values()))
        vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True, dtype=np.float64)
        words = vectorizer.build_analyzer()
        there = any(words(text) for text in texts)
        self._rows = vectorizer.fit_transform(texts) if there else csr_matrix((len(texts), 1))
        self._position = {item: position for position, item in enumerate(dataset.items)}

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """The candidates' similarities to the history, between 0 and 1."""
        if self._rows is None:
            raise RuntimeError("SeqSim compares what it has made vectors of: call fit first")
        total = self._sum(case.history)
        length = math.sqrt(total @ total)
        query = total / length if length else total
        scores = np.full(len(candidates), np.nan)
        for place, item in enumerate(candidates):
            if item in self._position:
                scores[place] = (self._rows[self._position[item]] @ query).item()
        return scores

    def _sum(self, items: Sequence[str]) -> NDArray[np.float64]:
        """The sum of the vectors of some items."""
        past = [self._position[item] for item in items if item in self._position]
        return np.asarray(self._rows[past].sum(axis=0), np.float64).reshape(-1)


def _text(item: Item) -> str:
    return f"{item.title} {item.category}"
