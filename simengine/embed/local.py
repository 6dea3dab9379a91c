"""Embeddings computed in this process by the library sentence-transformers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from simengine.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceTransformers:
    """Answers ``embed(texts, model)`` as a server would, with weights that are loaded when first asked for.

    One call computes at a time, in a thread of its own, so that others go on meanwhile. The last digits of the numbers
    depend on the machine. Raises :class:`~simengine.errors.InputError` where the library is not installed, and from
    ``embed`` where the model cannot be loaded.
    """

    def __init__(self) -> None:
        if find_spec("sentence_transformers") is None:
            raise InputError(
                "embeddings of the kind sentence-transformers need that library, which is not installed",
                field="embed.kind",
                remedy="Install it: pip install sentence-transformers",
            )
        self._loaded: dict[str, SentenceTransformer] = {}
        self._turn = asyncio.Lock()

    async def embed(self, texts: Sequence[str], model: str) -> Sequence[Sequence[float]]:
        """One vector for each text, in their order."""
        async with self._turn:
            return await asyncio.to_thread(self._encode, list(texts), model)

    def _encode(self, texts: list[str], model: str) -> Sequence[Sequence[float]]:
        if model not in self._loaded:
            self._loaded[model] = _load(model)
        rows: Sequence[Sequence[float]] = self._loaded[model].encode(texts, show_progress_bar=False).tolist()
        return rows


def _load(model: str) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(model, device="cpu")
    except (OSError, ValueError) as error:
        raise InputError(
            f"sentence-transformers cannot load this model: {error}",
            field="embed.model",
            value=model,
            remedy="name a folder with a model, or one of https://huggingface.co/sentence-transformers",
        ) from error
