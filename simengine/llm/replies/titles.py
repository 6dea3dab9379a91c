"""Finds which of the options shown a text names, or says that it cannot tell; it never guesses.

The rules, in order; the first one that finds anything decides, and two finds are an ambiguity, not a choice:

1. *Exact*, after folding case, punctuation, quotes, entities, Latin accents, ``&`` and a moved article
   (``Matrix, The``); then the same without a final ``(year)``, where the years do not contradict; then without the
   option's subtitle after a colon and its bracketed suffixes.
2. *Leading*: the text begins with a whole title, then a colon, a spaced dash or a bracket. The longest title counts.
3. *Contained*: the text holds exactly one title as whole words. Where one title contains another at the same place, the
   longest counts. A hit that seems to go on (``Heat`` in ``Heat 2`` or ``Heat Wave``) is none, and makes another hit
   uncertain.
4. *Alike*: ``rapidfuzz.fuzz.ratio`` of the folded texts is at least ``THRESHOLD``, ``MARGIN`` above the runner-up,
   and both hold the same numbers, so that ``Vol. 1`` is never ``Vol. 2``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from simengine.llm.replies import folding
from simengine.llm.replies.folding import Title, Word

THRESHOLD = 88.0
MARGIN = 6.0

_LEAD_END = re.compile(r"\A(?:['\"”’]?\s*:|['\"”’]?\s+[-–—]+\s|['\"”’]?\s*[(\[])")
_SEQUEL_TEXT = "vol volume part pt chapter episode book"
_SEQUEL = frozenset(_SEQUEL_TEXT.split())
# Words that may touch a title without being part of it: what people say round a choice.
_FRAME_TEXT = (
    "i id ill my we the a an this that choose chose chosen choice pick picked select selected prefer take took taking "
    "want like go going with for is was would will be rather over instead than because since as by from it its "
    "option number no item title titled called named cd cds album movie film book game product answer rank first "
    "second one to of and or but not most then recommend choosing picking"
)
_FRAME = frozenset(_FRAME_TEXT.split())
_LINKS_TEXT = "of with in and the for on to from"
_LINKS = frozenset(_LINKS_TEXT.split())


@dataclass(frozen=True)
class Match:
    """Which option a text names: its ``index``, or ``reason`` why none; ``named`` are all options that it may mean.

    ``ambiguous``: one name fits several options. ``both``: several options are named.
    """

    index: int | None
    reason: Literal["", "unmatched", "ambiguous", "both"] = ""
    named: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Hit:
    first: int
    last: int  # index of the word after the title
    options: tuple[int, ...]
    doubtful: bool


class TitleIndex:
    """The titles of the options, in the order shown, ready to be found in a reply."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = tuple(map(folding.title, titles))

    def match(self, text: str) -> Match:
        """The option that ``text`` (a title as a model wrote it, perhaps in a sentence) names."""
        match = self.exact(text)
        if match.reason != "unmatched":
            return match
        asked = _asked(text)
        tokens = list(folding.words(asked))
        hits = self._hits(asked, tokens)
        if hits and _leads(asked, tokens, hits[0]):
            return _one(hits[0].options)
        return _settle(hits) if hits else self._alike(folding.title(asked))

    def exact(self, text: str) -> Match:
        """The same by rule 1 alone: the whole text is a title."""
        named = folding.title(_asked(text))
        for rule in self._exact_rules(named):
            found = tuple(at for at, known in enumerate(self._titles) if rule(known))
            if found:
                return _one(found)
        return Match(None, "unmatched")

    def _exact_rules(self, named: Title) -> Iterable[Callable[[Title], bool]]:
        yield lambda known: known.full == named.full
        yield lambda known: _same_but_for_year(known, named)
        yield lambda known: known.short == named.full

    def _hits(self, text: str, tokens: list[Word]) -> list[_Hit]:
        """Where ``text`` holds whole titles, the longest at each place only, in order of place."""
        found: dict[tuple[int, int], list[int]] = {}
        folded = [token.folded for token in tokens]
        for at, known in enumerate(self._titles):
            for form in dict.fromkeys((known.full, known.without_year)):
                for first in range(len(folded) - len(form) + 1):
                    last = first + len(form)
                    if tuple(folded[first:last]) == form:
                        end = _past_year(text, tokens, last)
                        if end == last or not known.year or known.year == folded[last]:
                            found.setdefault((first, end), []).append(at)
        kept: list[_Hit] = []
        for (first, last), options in sorted(found.items(), key=lambda hit: (hit[0][0] - hit[0][1], hit[0])):
            if all(last <= other.first or other.last <= first for other in kept):
                kept.append(_Hit(first, last, tuple(dict.fromkeys(options)), _goes_on(text, tokens, first, last)))
        return sorted(kept, key=lambda hit: hit.first)

    def _alike(self, named: Title) -> Match:
        asked = " ".join(named.without_year)
        scores = sorted(
            ((fuzz.ratio(asked, " ".join(known.without_year)), -at) for at, known in enumerate(self._titles)),
            reverse=True,
        )
        near = [-at for score, at in scores if score >= THRESHOLD and self._may_be(self._titles[-at], named)]
        if not near:
            return Match(None, "unmatched")
        best = next(score for score, at in scores if -at == near[0])
        rivals = [-at for score, at in scores if -at != near[0] and score > best - MARGIN]
        return _one((near[0], *rivals))

    @staticmethod
    def _may_be(known: Title, named: Title) -> bool:
        same_numbers = folding.numbers(known.without_year) == folding.numbers(named.without_year)
        return same_numbers and not (known.year and named.year and known.year != named.year)


def _asked(text: str) -> str:
    return folding.front_article(folding.plain(text)).rstrip(".")


def _leads(text: str, tokens: list[Word], hit: _Hit) -> bool:
    """True where the text begins with this title and then breaks off."""
    return hit.first == 0 and not hit.doubtful and bool(_LEAD_END.match(text[tokens[hit.last - 1].end :]))


def _one(found: tuple[int, ...]) -> Match:
    return Match(found[0], named=found) if len(found) == 1 else Match(None, "ambiguous", found)


def _settle(hits: list[_Hit]) -> Match:
    """The one option that all hits can mean; ``both`` where they mean different ones."""
    sure = [set(hit.options) for hit in hits if not hit.doubtful]
    if not sure:
        return Match(None, "unmatched")
    named = tuple(dict.fromkeys(option for hit in hits if not hit.doubtful for option in hit.options))
    common = set.intersection(*sure)
    if not common:
        return Match(None, "both", named)
    if len(common) > 1 or any(hit.doubtful and not common & set(hit.options) for hit in hits):
        return Match(None, "ambiguous", named)
    return _one(tuple(common))


def _same_but_for_year(known: Title, named: Title) -> bool:
    return known.without_year == named.without_year and not (known.year and named.year and known.year != named.year)


def _past_year(text: str, tokens: list[Word], last: int) -> int:
    """``last``, or one further where a year in brackets follows the title."""
    if last < len(tokens) and len(tokens[last].folded) == 4 and tokens[last].folded.isdigit():
        around = text[tokens[last - 1].end : tokens[last].start].strip(), text[tokens[last].end : tokens[last].end + 1]
        return last + (around in (("(", ")"), ("[", "]")))
    return last


def _goes_on(text: str, tokens: list[Word], first: int, last: int) -> bool:
    """True where the words next to a hit seem to belong to a longer title than the one found."""
    after = tokens[last : last + 2]
    if after and ((folding.is_number(after[0].folded) and after[0].capital) or after[0].folded in _SEQUEL):
        return True
    if last - first >= 3:  # a title of three words or more is hardly met by chance
        return False
    titled = any(token.capital for token in tokens[first:last])
    if after and text[tokens[last - 1].end : after[0].start] in (" ", "-", ""):
        linked = last - first == 1 and len(after) > 1 and after[0].folded in _LINKS and after[1].capital
        if linked or _continues(after[0], titled):
            return True
    if first == 0 or text[tokens[first - 1].end : tokens[first].start] not in (" ", "-", ""):
        return False
    before = tokens[first - 1]
    possessive = text[before.start : before.end].endswith(("'s", "’s"))
    return not possessive and _continues(before, titled)


def _continues(neighbour: Word, titled: bool) -> bool:
    latin = neighbour.folded.isascii()
    return latin and neighbour.folded not in _FRAME and (neighbour.capital or not titled)
