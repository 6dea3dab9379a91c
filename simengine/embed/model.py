"""Embeddings that a model makes, on a server or in this process: whoever asks it is handed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simengine.embed.vectors import model_rows, odd


class EmbeddingServer(Protocol):
    """Who asks the model, and limits, retries and records as it must: one vector for each text, in their order."""

    async def embed(self, texts: Sequence[str], model: str) -> Sequence[Sequence[float]]: ...


class ModelEmbeddings:
    """Vectors of the named model. Texts of blanks alone are not sent, as servers refuse them: their rows are zeros."""

    def __init__(self, server: EmbeddingServer, model: str) -> None:
        self._server = server
        self._model = model

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """See :class:`~simengine.embed.Embedder`; equal texts are asked for once."""
        asked = {text: row for row, text in enumerate(dict.fromkeys(text for text in texts if text.strip()))}
        if not asked:
            return np.zeros((len(texts), 1))
        found = model_rows(await self._server.embed(list(asked), self._model), len(asked), self._model)
        rows = np.zeros((len(texts), found.shape[1]))
        for row, text in enumerate(texts):
            if text in asked:
                rows[row] = found[asked[text]]
        return rows

    async def fit(self, texts: Sequence[str]) -> FittedRows:
        """The texts as rows; a later query is sent alone."""
        return FittedRows(self, self._model, await self.embed(texts))


class FittedRows:
    """Rows of one model, which can be compared with a row that it makes later."""

    def __init__(self, embeddings: ModelEmbeddings, model: str, rows: NDArray[np.float64]) -> None:
        self._embeddings = embeddings
        self._model = model
        self._rows = rows

    async def similarities(self, query: str) -> NDArray[np.float64]:
        """See :class:`~simengine.embed.vectors.Fitted`; a query of blanks is similar to nothing."""
        row = (await self._embeddings.embed([query]))[0]
        if not row.any() or not self._rows.any():
            return np.zeros(len(self._rows))
        if len(row) != self._rows.shape[1]:
            problem = f"gave vectors of different widths: {self._rows.shape[1]}, {len(row)}"
            raise odd(problem, self._model)
        return np.asarray(self._rows @ row, np.float64)
