"""What an embedder is, what its vectors must be like, and which of them are nearest to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simengine.errors import UnitFailed

DIGITS = 12
"""Similarities that agree to so many decimals are equal: beyond them lies the order in which a machine adds."""


class Embedder(Protocol):
    """Turns texts into vectors whose products say how similar the texts are.

    ``embed`` gives a float64 array (number of texts, width): finite, each row of length 1, or all zeros where a text
    holds nothing to go by. Only rows of one call may be compared: a query is embedded together with what it is
    compared with. Raises :class:`~simengine.errors.UnitFailed` (reason ``embedding``) where a model answers with
    something else than vectors of that kind. Where one pool meets many queries, ``fit`` embeds it once for all.
    """

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]: ...

    async def fit(self, texts: Sequence[str]) -> Fitted: ...


class Fitted(Protocol):
    """Texts that were embedded once for all. ``similarities`` gives the cosine similarity (n,) of each to a query.

    Raises :class:`~simengine.errors.UnitFailed` as ``embed`` does.
    """

    async def similarities(self, query: str) -> NDArray[np.float64]: ...


def unit_rows(vectors: ArrayLike) -> NDArray[np.float64]:
    """The rows at length 1; rows of zeros stay so. Raises ``ValueError`` unless (n, width) and finite."""
    rows = np.asarray(vectors, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors are rows of a matrix, but here are {rows.ndim} dimensions")
    if not np.isfinite(rows).all():
        raise ValueError("a vector holds what is no number, or is infinite")
    greatest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    scaled = rows / np.where(greatest == 0.0, 1.0, greatest)  # first to size, so that no square leaves its range
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    return np.asarray(scaled / np.where(lengths == 0.0, 1.0, lengths), np.float64)


def model_rows(
    vectors: Sequence[Sequence[float]] | NDArray[np.floating], texts: int, model: str
) -> NDArray[np.float64]:
    """What a model gave for so many texts, at length 1.

    A model's vector is never zero: zeros, like a vector too few, another width or NaN, are a fault of the server or
    the weights, and raise :class:`~simengine.errors.UnitFailed`.
    """
    widths = sorted({len(vector) for vector in vectors})
    if len(vectors) != texts:
        raise odd(f"gave {len(vectors)} vectors for {texts} texts", model)
    if len(widths) > 1:
        raise odd(f"gave vectors of different widths: {', '.join(map(str, widths))}", model)
    try:
        rows = unit_rows(vectors)
    except (ValueError, TypeError) as error:
        raise odd(f"gave what cannot be compared: {error}", model) from None
    if not rows.any(axis=1).all():
        raise odd("gave a vector that is empty or all zeros", model)
    return rows


def nearest(query: ArrayLike, pool: ArrayLike) -> NDArray[np.intp]:
    """Positions in ``pool`` (n, width) by falling cosine similarity to ``query`` (width,).

    Of equally similar ones the last comes first: pools are kept oldest first, so that is the newest. A row of zeros has
    similarity 0 to everything, and a query of zeros leaves the newest first. Raises ``ValueError`` where shapes do not
    fit, and for NaN or infinite numbers.
    """
    vector, rows = np.asarray(query, np.float64), unit_rows(pool)
    if vector.ndim != 1 or len(vector) != rows.shape[1]:
        raise ValueError(f"a query of shape {vector.shape} does not fit a pool of width {rows.shape[1]}")
    similar = np.round(rows @ unit_rows(vector[None, :])[0], DIGITS)
    return np.lexsort((-np.arange(len(rows)), -similar))


async def nearest_texts(embedder: Embedder, query: str, pool: Sequence[str]) -> list[int]:
    """Positions in ``pool`` by falling similarity to ``query``; of equally similar texts the last one comes first."""
    if not pool:
        return []
    rows = await embedder.embed([query, *pool])
    return [int(position) for position in nearest(rows[0], rows[1:])]


def odd(problem: str, model: str) -> UnitFailed:
    """The failure of a model that answered with something else than vectors."""
    return UnitFailed(
        f"the embedding model {model} {problem}",
        reason="embedding",
        remedy="check that this model makes embeddings, and what the server says about its format",
        model=model,
    )
