"""Texts that stay as they are, embedded once, and which of them are nearest to one query after another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from simengine.embed.vectors import DIGITS, Embedder, Fitted


class Corpus:
    """Some texts behind an embedder. They are embedded when the first query comes, and never again.

    A text's place is its position. What fails raises as ``embed`` of the embedder does, and is tried again by the next
    query.
    """

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._texts = tuple(texts)
        self._fitted: Fitted | None = None
        self._turn = asyncio.Lock()

    async def nearest(self, query: str, count: int) -> list[int]:
        """Positions of at most ``count`` texts, the most similar to ``query`` first; of equal ones the first.

        A text that has nothing in common with the query (similarity 0 or less) is not near.
        """
        if not self._texts:
            return []
        async with self._turn:
            if self._fitted is None:
                self._fitted = await self._embedder.fit(self._texts)
        similar = np.round(await self._fitted.similarities(query), DIGITS)
        order = np.argsort(-similar, kind="stable")[:count]
        return [int(at) for at in order if similar[at] > 0]
