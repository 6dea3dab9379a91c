"""TF-IDF: texts as weighted counts of their words, with no model and nothing to install."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer


class TfIdf:
    """Term frequency (1 + log) times smoothed inverse document frequency, by scikit-learn.

    It is fitted on the texts of each call alone, so that what is nearest is a function of the query and its pool and of
    nothing else: neither of what was embedded before, which concurrency would decide, nor of texts that come later in
    time. Words that the whole pool shares weigh least, which is what telling its members apart needs. A word is any run
    of letters and digits, in lower case.
    """

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """See :class:`~simengine.embed.Embedder`; a text without words is a row of zeros."""
        vectorizer = _vectorizer(texts)
        if vectorizer is None:
            return np.zeros((len(texts), 1))
        return np.asarray(vectorizer.fit_transform(texts).toarray(), np.float64)

    async def fit(self, texts: Sequence[str]) -> FittedTfIdf:
        """The texts with their words' weights. Of a later query only words that are in them count."""
        return FittedTfIdf(texts)


class FittedTfIdf:
    """Texts as sparse rows: a catalogue has many texts, and each few of all words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        self._vectorizer = _vectorizer(texts)
        self._rows = None if self._vectorizer is None else self._vectorizer.fit_transform(texts)

    async def similarities(self, query: str) -> NDArray[np.float64]:
        """See :class:`~simengine.embed.vectors.Fitted`."""
        if self._vectorizer is None:
            return np.zeros(self._count)
        return np.asarray((self._rows @ self._vectorizer.transform([query]).T).toarray(), np.float64)[:, 0]


def _vectorizer(texts: Sequence[str]) -> TfidfVectorizer | None:
    """One that is not fitted yet; none where the texts hold no word, which it would refuse."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True, dtype=np.float64)
    words = vectorizer.build_analyzer()
    return vectorizer if any(words(text) for text in texts) else None
