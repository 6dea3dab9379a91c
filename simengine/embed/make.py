"""Makes the embedder that settings describe."""

from __future__ import annotations

from simengine.embed.local import SentenceTransformers
from simengine.embed.model import EmbeddingServer, ModelEmbeddings
from simengine.embed.settings import EmbedSettings
from simengine.embed.tfidf import TfIdf
from simengine.embed.vectors import Embedder
from simengine.errors import InputError


def make_embedder(settings: EmbedSettings, server: EmbeddingServer | None = None) -> Embedder:
    """The embedder of these settings; ``server`` is who asks for the embeddings of kind ``openai``.

    Raises :class:`~simengine.errors.InputError` where there is no such server, or a library is not installed.
    """
    if settings.model is None:
        return TfIdf()
    if settings.kind == "sentence-transformers":
        return ModelEmbeddings(SentenceTransformers(), settings.model)
    if server is None:
        raise InputError(
            "embeddings of the kind openai are asked of the scenario's model server, and there is none",
            field="embed.kind",
            value=settings.kind,
            remedy="say `llm: {backend: openai, ...}`, or `embed: {kind: tfidf}`, which needs no server",
        )
    return ModelEmbeddings(server, settings.model)
