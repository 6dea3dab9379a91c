"""Finds the one known name or title that a text means, or says that there is none: never merely the nearest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from rapidfuzz import fuzz, process

from simengine.llm.replies import folding, titles

THRESHOLD = 85.0
"""``rapidfuzz.fuzz.ratio`` of the folded texts (0 to 100) from which on a name of a column or a value is meant."""

MARGIN = 6.0
"""By how much the one that is meant must be nearer than any other."""


class Found(msgspec.Struct, frozen=True):
    """What a text means: the position ``at``, or ``reason`` why none; ``named`` are all that it may mean."""

    at: int | None
    reason: Literal["", "unmatched", "ambiguous"] = ""
    named: tuple[int, ...] = ()


class Vocabulary:
    """Names, each with its position.

    A name is found by its folded form (case, accents, punctuation, ``&``), then by likeness from ``THRESHOLD`` on,
    ``MARGIN`` above the runner-up, if it holds the same numbers: ``2D`` is never ``3D``.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._keys = [folding.key(folding.plain(name)) for name in names]
        self._folded = [" ".join(key) for key in self._keys]
        self._exact: dict[str, list[int]] = {}
        for at, folded in enumerate(self._folded):
            self._exact.setdefault(folded, []).append(at)

    def find(self, text: str) -> Found:
        """The name that ``text`` means."""
        key = folding.key(folding.plain(text))
        asked = " ".join(key)
        if asked in self._exact:
            return _one(self._exact[asked])
        same = [
            (score, at)
            for score, at in _alike(asked, self._folded, THRESHOLD - MARGIN)
            if folding.numbers(self._keys[at]) == folding.numbers(key)
        ]
        return _best(same, THRESHOLD, MARGIN)


class Titles:
    """The titles of a catalogue. A text means a title as a whole; a title inside a longer text does not count.

    Rules 1 and 4 of :mod:`simengine.llm.replies.titles` decide, with its ``THRESHOLD`` (88) and ``MARGIN`` (6): exactly
    after folding, with or without the year and bracketed suffixes, else alike. But a subtitle may not be left out,
    since a catalogue can hold ``Portal: Prelude`` without ``Portal``. What was asked before is remembered.
    """

    def __init__(self, known: Sequence[str]) -> None:
        spread = [title.replace(":", " ") for title in known]  # the index cuts subtitles at colons
        self._index = titles.TitleIndex(spread)
        self._titles = [folding.title(title) for title in spread]
        self._folded = [" ".join(title.without_year) for title in self._titles]
        self._memo: dict[str, Found] = {}

    def find(self, text: str) -> Found:
        """The title that ``text`` means."""
        if text not in self._memo:
            self._memo[text] = self._find(text.replace(":", " "))
        return self._memo[text]

    def _find(self, text: str) -> Found:
        exact = self._index.exact(text)
        if exact.reason != "unmatched":
            return _one(exact.named)
        asked = folding.title(text)
        same = [
            (score, at)
            for score, at in _alike(" ".join(asked.without_year), self._folded, titles.THRESHOLD - titles.MARGIN)
            if _may_be(self._titles[at], asked)
        ]
        return _best(same, titles.THRESHOLD, titles.MARGIN)


def _may_be(known: folding.Title, asked: folding.Title) -> bool:
    """True where the two have the same numbers, and not different years."""
    same_numbers = folding.numbers(known.without_year) == folding.numbers(asked.without_year)
    return same_numbers and not (known.year and asked.year and known.year != asked.year)


def _alike(asked: str, known: Sequence[str], least: float) -> list[tuple[float, int]]:
    """Likeness and position of all that are at least so like, the likest first."""
    found = process.extract(asked, known, scorer=fuzz.ratio, limit=None, score_cutoff=least)
    return [(score, at) for _, score, at in found]


def _best(alike: Sequence[tuple[float, int]], threshold: float, margin: float) -> Found:
    """The likest, if it is like enough; with all others that are nearly as like."""
    if not alike or alike[0][0] < threshold:
        return Found(None, "unmatched")
    return _one([at for score, at in alike if score > alike[0][0] - margin])


def _one(named: Sequence[int]) -> Found:
    return Found(named[0], "", tuple(named)) if len(named) == 1 else Found(None, "ambiguous", tuple(named))
