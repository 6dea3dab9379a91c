"""BM25: a candidate scores by the words that its title and category share with those of the user's past items."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset, Item
from simengine.rankers.optional import require

if TYPE_CHECKING:
    from bm25s import BM25 as Index

_WORD = re.compile(r"[a-z0-9]+")


class BM25:
    """Okapi BM25 in Lucene's form (k1 1.5, b 0.75) over words, by the library bm25s.

    The documents are all items of the data set: raw title and category, entities decoded, in lower case, cut into runs
    of ``a-z0-9``, less NLTK's English stop words. The query are all words of the items in the case's history, as often
    as they occur there. It learns from the item table alone, so an item that nobody has taken is scored like any
    other: 0 where it shares no word with the history. NaN is for an id that is not in the data set.
    """

    name = "bm25"

    def __init__(self) -> None:
        require(self.name, "bm25s")
        self._index: Index | None = None
        self._words: dict[str, list[str]] = {}
        self._position: dict[str, int] = {}

    def fit(self, dataset: Dataset) -> None:
        """Index the item table."""
        import bm25s

        self._words = {item.id: _words(item) for item in dataset.items.values()}
        self._position = {item: position for position, item in enumerate(self._words)}
        self._index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self._index.index(list(self._words.values()), show_progress=False)

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """The candidates' BM25 scores for the words of the history; zeros where the history has none."""
        if self._index is None:
            raise RuntimeError("BM25 scores by its index: call fit first")
        query = [word for item in case.history for word in self._words.get(item, ())]
        found = self._index.get_scores_from_ids(self._index.get_tokens_ids(query))
        return np.array(
            [found[self._position[item]] if item in self._position else np.nan for item in candidates], np.float64
        )


def _words(item: Item) -> list[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # NLTK's list, word for word

    text = html.unescape(f"{item.raw_title or item.title} {item.category}").lower()
    stop = frozenset(STOPWORDS_EN_PLUS)
    return [word for word in _WORD.findall(text) if word not in stop]
