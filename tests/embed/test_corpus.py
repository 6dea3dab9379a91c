"""A corpus: embedded once for all queries, the nearest first, what has nothing in common left out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.embed import Corpus, EmbedSettings, make_embedder
from simengine.errors import UnitFailed

TEXTS = ("slow jazz", "fast rock", "jazz and rock", "", "slow folk")
OPENAI = EmbedSettings(kind="openai", model="some-model")


class Server:
    """Two numbers a text: how many a and how many b. It can be told to fail at first."""

    def __init__(self, failures: int = 0, width: int = 2) -> None:
        self.asked: list[list[str]] = []
        self._failures = failures
        self._width = width

    async def embed(self, texts: Sequence[str], model: str) -> Sequence[Sequence[float]]:
        self.asked.append(list(texts))
        await asyncio.sleep(0)
        if len(self.asked) <= self._failures:
            return [[0.0, 0.0]] * len(texts)  # no vector of a model's
        width = self._width if len(texts) == 1 else 2
        return [[text.count("a"), text.count("b"), *[1.0] * (width - 2)] for text in texts]


def test_the_nearest_come_first_and_what_is_unlike_does_not_come() -> None:
    """By hand: `jazz` stands in two texts, of which `slow jazz` is the one whose other words weigh least."""

    async def found(query: str, count: int = 9) -> list[int]:
        return await Corpus(make_embedder(EmbedSettings()), TEXTS).nearest(query, count)

    assert asyncio.run(found("jazz")) == [0, 2]
    assert asyncio.run(found("jazz, slow JAZZ", 1)) == [0]
    assert asyncio.run(found("something else")) == []
    assert asyncio.run(found("")) == []


def test_of_equal_texts_the_first_comes_first() -> None:
    corpus = Corpus(make_embedder(EmbedSettings()), ("b", "a", "a", "a"))
    assert asyncio.run(corpus.nearest("a", 2)) == [1, 2]


@settings(deadline=None)  # the first example imports scikit-learn
@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=12), st.integers(1, 8))
def test_any_texts_will_do(texts: list[str], query: str, count: int) -> None:
    found = asyncio.run(Corpus(make_embedder(EmbedSettings()), texts).nearest(query, count))
    assert len(found) <= count
    assert len(set(found)) == len(found)
    assert set(found) <= set(range(len(texts)))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["jazz", "rock", "slow", "fast", "folk"]), min_size=1, max_size=4))
def test_similarities_are_cosines_of_the_pool_alone(words: list[str]) -> None:
    """The query is weighed by the pool's words, as scikit-learn's own transform weighs it."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    query = " ".join(words)
    vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit(TEXTS)
    expected = (vectorizer.transform(TEXTS) @ vectorizer.transform([query]).T).toarray()[:, 0]

    async def similarities() -> np.ndarray:
        return await (await make_embedder(EmbedSettings()).fit(TEXTS)).similarities(query)

    assert asyncio.run(similarities()) == pytest.approx(expected)


async def test_the_pool_is_embedded_once_however_many_ask_at_once() -> None:
    server = Server()
    corpus = Corpus(make_embedder(OPENAI, server), ("aab", "bba", "ab", " "))
    found = await asyncio.gather(corpus.nearest("a", 2), corpus.nearest("b", 2), corpus.nearest("a", 1))
    assert found == [[0, 2], [1, 2], [0]]
    assert [asked for asked in server.asked if len(asked) > 1] == [["aab", "bba", "ab"]]
    assert sum(len(asked) == 1 for asked in server.asked) == 3
    assert await corpus.nearest(" ", 2) == []


async def test_a_pool_that_failed_is_embedded_again() -> None:
    server = Server(failures=1)
    corpus = Corpus(make_embedder(OPENAI, server), ("a", "b"))
    with pytest.raises(UnitFailed, match="all zeros"):
        await corpus.nearest("b", 1)
    assert await corpus.nearest("b", 1) == [1]


async def test_a_query_of_another_width_is_a_fault_of_the_model() -> None:
    corpus = Corpus(make_embedder(OPENAI, Server(width=3)), ("a", "b"))
    with pytest.raises(UnitFailed, match="different widths: 2, 3"):
        await corpus.nearest("b", 1)


async def test_no_texts_and_blank_ones() -> None:
    server = Server()
    assert await Corpus(make_embedder(OPENAI, server), ()).nearest("a", 3) == []
    assert await Corpus(make_embedder(OPENAI, server), ("", " ")).nearest("a", 3) == []
