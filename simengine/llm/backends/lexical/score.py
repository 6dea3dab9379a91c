"""How the lexical backend weighs options against a taste: in the manner of BM25, over what one request shows.

A word of an option weighs ``log(options / options with it)``, so that a word in all options says nothing, times how
much it is wanted. A liked phrase wants each of its words by ``LOVE`` or 1, less the further back it stands in its list
(``RECENCY`` a place), so newer and repeated likes count more; a disliked phrase takes ``DISLIKE`` off. An item's own
words are summed as if all descriptions were equally long. A word that it has only gathered from its adopters adds
``GATHERED`` of its weight, whatever the length: the more adopters with a taste like this one, the better.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from simengine.llm.backends.lexical.text import Taste, terms

LOVE = 2.0
"""A phrase that was liked again, against one that was liked once."""
RECENCY = 0.9
"""What remains of a like's weight for each like that stands before it in its list."""
DISLIKE = 0.5
"""A disliked phrase against a liked one: what a user leaves is weaker evidence than what a user takes."""
GATHERED = 0.2
"""A word that an item has from its adopters, against one of its own."""


class Option(NamedTuple):
    """The phrases of an item: its own, and those that its description has gathered from adopters."""

    own: tuple[str, ...]
    gathered: tuple[str, ...] = ()


def scores(options: Sequence[Option], taste: Taste) -> list[float]:
    """The score of each option by a taste; independent of the options' order to the last bit."""
    return by_words(options, _wanted(taste))


def by_words(options: Sequence[Option], wanted: Mapping[str, float]) -> list[float]:
    """The score of each option by how much each word is wanted."""
    own = [words_of(option.own) for option in options]
    gathered = [words_of(option.gathered) - words for option, words in zip(options, own, strict=True)]
    with_own = Counter(word for words in own for word in words)
    with_any = Counter(word for pair in zip(own, gathered, strict=True) for words in pair for word in words)
    mean = sum(map(len, own)) / len(options)

    def total(words: Iterable[str], spread: Counter[str]) -> float:
        # fsum, since a sum that depended on the order of a set would not be reproducible
        return math.fsum(math.log(len(options) / spread[word]) * wanted[word] for word in words if word in wanted)

    return [
        (total(mine, with_own) * mean / len(mine) if mine else 0.0) + GATHERED * total(others, with_any)
        for mine, others in zip(own, gathered, strict=True)
    ]


def appeal(option: Option, taste: Taste) -> float:
    """How much one item is wanted by itself: nothing stands beside it that could tell which of its words say something.

    It is how much a word of its own is wanted on the mean, and ``GATHERED`` of the same for words from adopters.
    """
    wanted, own = _wanted(taste), words_of(option.own)
    return _mean(own, wanted) + GATHERED * _mean(words_of(option.gathered) - own, wanted)


def _mean(words: set[str], wanted: dict[str, float]) -> float:
    return math.fsum(wanted[word] for word in words if word in wanted) / len(words) if words else 0.0


def words_of(phrases: Iterable[str]) -> set[str]:
    """The words of some phrases that say something."""
    return {word for phrase in phrases for word in terms(phrase)}


def _wanted(taste: Taste) -> dict[str, float]:
    """How much each word of the taste is wanted; below zero where it is rather unwanted."""
    wanted: defaultdict[str, float] = defaultdict(float)
    lists = ((taste.loves, LOVE, RECENCY), (taste.likes, 1.0, RECENCY), (taste.dislikes, -DISLIKE, 1.0))
    for phrases, weight, fading in lists:
        for place, phrase in enumerate(phrases):
            for word in set(terms(phrase)):  # each word's own sum, so their order does not matter
                wanted[word] += weight * fading**place
    return wanted
