"""Which texts are new: those that are not nearly alike, word by word, to one that was kept before them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz.distance import Indel

THRESHOLD = 0.8
"""ROUGE-L from which on two texts say the same."""

_WORD = re.compile(r"\w+")


def rouge_l(one: str, other: str) -> float:
    """ROUGE-L of two texts, its F-measure: twice the longest common subsequence of their words by the sum of both
    lengths, case and punctuation aside (Lin, 2004); 1 for two texts without words.

    That is what is left of 1 when the share of words is taken off that one has to delete and insert between them.
    """
    return Indel.normalized_similarity(_words(one), _words(other))


def novel(texts: Sequence[str], known: Sequence[str] = ()) -> list[int]:
    """The places of the texts that are new, in their order: ROUGE-L below ``THRESHOLD`` to all that are ``known``, and
    to every one that was kept before."""
    seen = [_words(text) for text in known]
    kept = []
    for at, words in enumerate(map(_words, texts)):
        # no cutoff is handed over: it is turned into one of distances, which lets what is just at the threshold pass
        if all(Indel.normalized_similarity(words, other) < THRESHOLD for other in seen):
            seen.append(words)
            kept.append(at)
    return kept


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
