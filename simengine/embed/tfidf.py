"""TF-IDF: texts as weighted counts of their words, with no model and nothing to install."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class TfIdf:
    """Term frequency (1 + log) times smoothed inverse document frequency, by scikit-learn.

    It is fitted on the texts of each call alone, so that what is nearest is a function of the query and its pool and of
    nothing else: neither of what was embedded before, which concurrency would decide, nor of texts that come later in
    time. Words that the whole pool shares weigh least, which is what telling its members apart needs. A word is any run
    of letters and digits, in lower case.
    """

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """See :class:`~simengine.embed.Embedder`; a text without words is a row of zeros."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True, dtype=np.float64)
        words = vectorizer.build_analyzer()
        if not any(words(text) for text in texts):
            return np.zeros((len(texts), 1))
        return np.asarray(vectorizer.fit_transform(texts).toarray(), np.float64)
