"""Groups texts by meaning: k-means over their embeddings, always from the same start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simengine.embed.vectors import Embedder

_DIGITS = 12
"""Vectors that agree to so many decimals are equal: beyond them lies the order in which a machine adds."""
_STARTS = 4
"""How often k-means begins anew; the best end is kept."""


def clusters(rows: NDArray[np.float64], count: int) -> list[int]:
    """For each row of a matrix (n, width) the number of its cluster, from 0 in the order of first appearance.

    There are at most ``count`` clusters, and no more than different rows. Raises ``ValueError`` for a count below 1.
    """
    if count < 1:
        raise ValueError("there must be at least one cluster")
    if not len(rows):
        return []
    from sklearn.cluster import KMeans

    distinct, at = np.unique(np.round(rows, _DIGITS), axis=0, return_inverse=True)
    at = at.reshape(-1)
    if len(distinct) <= count:
        labels = at
    else:
        weights = np.bincount(at).astype(np.float64)
        labels = KMeans(count, n_init=_STARTS, random_state=0).fit(distinct, sample_weight=weights).labels_[at]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels.tolist()]


async def cluster_texts(embedder: Embedder, texts: Sequence[str], count: int) -> list[int]:
    """For each text the number of its cluster, of at most ``count``."""
    return clusters(await embedder.embed(texts), count) if texts else []
