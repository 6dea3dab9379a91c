"""Texts that belong together: known clusters, counts beyond what there is, and always the same numbers."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.embed import EmbedSettings, cluster_texts, clusters, make_embedder

TEXTS = ["slow jazz", "jazz piano", "metal riffs", "slow jazz", "heavy metal"]


def _clustered(texts: list[str], count: int) -> list[int]:
    return asyncio.run(cluster_texts(make_embedder(EmbedSettings()), texts, count))


def test_texts_that_share_a_word_are_together() -> None:
    assert _clustered(TEXTS, 2) == [0, 0, 1, 0, 1]


def test_there_are_no_more_clusters_than_different_texts() -> None:
    """Equal vectors stay together however many clusters are asked for, and nothing warns."""
    assert _clustered(TEXTS, 384) == [0, 1, 2, 0, 3]
    assert _clustered(["jazz", "Jazz", "JAZZ!"], 2) == [0, 0, 0]
    assert _clustered([], 3) == []
    assert _clustered(["???", "!!!"], 2) == [0, 0]


def test_one_cluster_holds_all() -> None:
    assert _clustered(TEXTS, 1) == [0] * 5


def test_a_cluster_is_the_nearest_centre() -> None:
    rows = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.0, 0.9]])
    assert clusters(rows, 2) == [0, 0, 1, 1, 0]


def test_less_than_one_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        clusters(np.eye(2), 0)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12), st.integers(1, 6))
def test_numbers_count_up_by_appearance_and_are_always_the_same(points: list[tuple[int, int]], count: int) -> None:
    rows = np.array(points, np.float64)
    found = clusters(rows, count)
    assert found == clusters(rows, count)
    assert list(dict.fromkeys(found)) == list(range(max(found) + 1))
    assert max(found) < count
    for one, other in zip(range(len(points)), found, strict=True):
        assert all(found[at] == other for at in range(len(points)) if points[at] == points[one])
