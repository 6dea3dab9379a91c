"""The three embedders: what each makes of texts, of blanks, of a model that answers oddly, and of what is missing."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import types
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simengine.embed import EmbedSettings, make_embedder, nearest_texts
from simengine.errors import InputError, UnitFailed

OPENAI = EmbedSettings(kind="openai", model="some-model")
LOCAL = EmbedSettings(kind="sentence-transformers", model="some-model")


class Server:
    """Answers with two numbers a text, how many letters and how many blanks, and remembers what it was asked."""

    def __init__(self, answer: Sequence[Sequence[float]] | None = None) -> None:
        self.asked: list[tuple[list[str], str]] = []
        self._answer = answer

    async def embed(self, texts: Sequence[str], model: str) -> Sequence[Sequence[float]]:
        self.asked.append((list(texts), model))
        if self._answer is not None:
            return self._answer
        return [(len(text) - text.count(" "), text.count(" ")) for text in texts]


def test_importing_the_room_imports_nothing_heavy():
    heavy = "('sklearn', 'scipy', 'torch', 'sentence_transformers')"
    code = f"import sys, simengine.embed; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_tfidf_by_hand():
    # Two texts: a shared word has idf 1, a word of one text alone ln(3/2) + 1; two of a kind count 1 + ln 2.
    rows = await make_embedder(EmbedSettings()).embed(["Jazz, jazz & 4", "jazz"])
    alone = math.log(3 / 2) + 1
    raw = np.array([[alone, 1 + math.log(2)], [0, 1]])  # columns: 4, jazz
    assert rows == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert rows.dtype == np.float64


@given(st.lists(st.text(max_size=30), max_size=5))
def test_tfidf_takes_any_text_and_always_says_the_same(texts):
    embedder = make_embedder(EmbedSettings())
    rows = asyncio.run(embedder.embed(texts))
    assert rows.shape[0] == len(texts)
    assert np.isfinite(rows).all()
    lengths = np.sqrt((rows**2).sum(axis=1))
    assert all(length == 0 or length == pytest.approx(1) for length in lengths)
    asyncio.run(embedder.embed(["something", "else", "between"]))
    assert np.array_equal(asyncio.run(embedder.embed(texts)), rows)


async def test_the_nearest_text_by_what_it_is_about_not_by_common_words():
    pool = [
        "I like loud guitars and fast drums on this CD",
        "I like quiet piano trios and soft brushes on this CD",
        "I like loud guitars and fast drums on this CD",
        "",
    ]
    tfidf = make_embedder(EmbedSettings())
    assert await nearest_texts(tfidf, "a piano trio, quiet and soft", pool) == [1, 2, 0, 3]
    assert await nearest_texts(tfidf, "guitars", pool) == [2, 0, 3, 1]
    assert await nearest_texts(tfidf, "", pool) == [3, 2, 1, 0]
    assert await nearest_texts(tfidf, "guitars", []) == []


async def test_a_server_is_asked_once_for_equal_texts_and_never_for_blanks():
    server = Server()
    rows = await make_embedder(OPENAI, server).embed(["a b c", "", "dd", "a b c", " \n"])
    assert server.asked == [(["a b c", "dd"], "some-model")]
    first = np.array([3, 2]) / math.sqrt(13)
    assert rows == pytest.approx(np.array([first, [0, 0], [1, 0], first, [0, 0]]))
    assert rows.dtype == np.float64


async def test_blanks_alone_ask_nobody():
    server = Server()
    embedder = make_embedder(OPENAI, server)
    assert (await embedder.embed(["", " "])).tolist() == [[0.0], [0.0]]
    assert (await embedder.embed([])).shape[0] == 0
    assert server.asked == []


@pytest.mark.parametrize("answer", [[], [[1.0], [1.0, 2.0]], [[1.0, 2.0]], [[0.0, 0.0], [1.0, 1.0]]])
async def test_a_server_that_answers_oddly_fails_the_unit(answer):
    with pytest.raises(UnitFailed, match="some-model"):
        await make_embedder(OPENAI, Server(answer)).embed(["one", "two"])


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A library of that name whose models answer like ``Server``; what is loaded and asked is returned."""
    seen: list[object] = []

    class Model:
        def __init__(self, name: str, device: str) -> None:
            if name == "nowhere":
                raise OSError("no such model")
            seen.append((name, device))

        def encode(self, texts: list[str], show_progress_bar: bool) -> np.ndarray:
            seen.append(texts)
            return np.array([(len(text), 1) for text in texts], np.float32)

    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr("simengine.embed.local.find_spec", lambda name: name)
    return seen


async def test_a_local_model_is_loaded_once_and_when_needed(transformers):
    embedder = make_embedder(LOCAL)
    assert transformers == []
    both = await asyncio.gather(embedder.embed(["abc"]), embedder.embed(["d", ""]))
    assert transformers == [("some-model", "cpu"), ["abc"], ["d"]]
    assert both[0] == pytest.approx(np.array([[3, 1]]) / math.sqrt(10))
    assert both[1] == pytest.approx(np.array([[1, 1], [0, 0]]) / math.sqrt(2))


async def test_a_local_model_that_cannot_be_loaded(transformers):
    embedder = make_embedder(EmbedSettings(kind="sentence-transformers", model="nowhere"))
    with pytest.raises(InputError, match=r"cannot load this model: no such model"):
        await embedder.embed(["abc"])


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr("simengine.embed.local.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install sentence-transformers"):
        make_embedder(LOCAL)


def test_openai_needs_somebody_to_ask():
    with pytest.raises(InputError, match="backend: openai"):
        make_embedder(OPENAI)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"model": "text-embedding-3-small"}, "has no model"),
        ({"kind": "openai"}, "model: text-embedding-3-small"),
        ({"kind": "sentence-transformers"}, "model: all-MiniLM-L6-v2"),
        ({"kind": "openai", "model": ""}, "at least 1 character"),
        ({"kind": "word2vec", "model": "x"}, "tfidf"),
        ({"kind": "tfidf", "width": 3}, "Extra inputs"),
    ],
)
def test_settings_that_do_not_fit(said, problem):
    with pytest.raises(ValidationError, match=problem):
        EmbedSettings(**said)
