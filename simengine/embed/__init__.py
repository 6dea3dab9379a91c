"""Text embeddings behind one protocol, and what is nearest by them: TF-IDF, an embedding server, a local model."""

from __future__ import annotations

from simengine.embed.make import make_embedder
from simengine.embed.model import EmbeddingServer
from simengine.embed.settings import EmbedSettings
from simengine.embed.vectors import Embedder, nearest, nearest_texts

__all__ = ["EmbedSettings", "Embedder", "EmbeddingServer", "make_embedder", "nearest", "nearest_texts"]
