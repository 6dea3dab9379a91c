"""Text embeddings behind one protocol: TF-IDF, a server, a local model; what is nearest by them, what is alike."""

from __future__ import annotations

from simengine.embed.clusters import cluster_texts, clusters
from simengine.embed.corpus import Corpus
from simengine.embed.make import make_embedder
from simengine.embed.model import EmbeddingServer
from simengine.embed.settings import EmbedSettings
from simengine.embed.vectors import Embedder, nearest, nearest_texts

__all__ = [
    "Corpus",
    "EmbedSettings",
    "Embedder",
    "EmbeddingServer",
    "cluster_texts",
    "clusters",
    "make_embedder",
    "nearest",
    "nearest_texts",
]
