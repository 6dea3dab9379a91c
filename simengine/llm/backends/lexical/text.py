"""How the lexical backend reads and writes memories: as phrases that a person can read and it can read again.

Its own memories are lists after a fixed phrase (``I like: ...; ...``), the newest first. Other text is taken sentence
by sentence and cut into phrases at its punctuation, so that memories written by a person or a language model can be
read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from simengine.llm.replies import folding

LOVES = "I love: "
LIKES = "I like: "
DISLIKES = "I dislike: "
SUITS = "It suits people who like: "

_LISTS = re.compile(rf"\s*\b({'|'.join(map(re.escape, map(str.strip, (LOVES, LIKES, DISLIKES, SUITS))))})\s*")
_NAMED = re.compile(r'\A"(.+?)" is an? ')
_SENTENCE = re.compile(r"(?<=[.!?])\s+|,?\s+(?:but|while|whereas|although|however),?\s+")
_PHRASE = re.compile(r"[,;.!?:]+(?=\s|\Z)|[\"“”()]|\s[-–—]\s|\s(?:and|or|which|that|such as|as well as)\s")
_DISLIKE = re.compile(
    r"\b(?:dislikes?|disliked|hates?|avoids?|avoiding|lacks?|no longer|less (?:interested|appealing|drawn)"
    r"|put off|bor(?:ed|es|ing)"
    r"|(?:not|\w+n['’]t|never)\s+(?:\w+\s+){0,3}?(?:like|enjoy|care|prefer|love|appeal|appreciate|resonate|align|want))\b",
    re.IGNORECASE,
)
# Words that say nothing about taste: grammar, and what people say when they talk about liking things.
_EMPTY_TEXT = (
    "a about after again all also although am an and any are as at be because been being both but by can could did do "
    "does for from further had has have he her his how i id if ill im in into is it its ive just me more most much my "
    "new no nor not of off on one ones only or other our out over own particularly really she so some such than that "
    "the their them then there these they this those through to too under up very was we well were what when where "
    "which while who whose will with within would you your dont doesnt didnt isnt arent cant wont appeal appealing "
    "appreciate appreciates aligns aligning called care category curious dislike dislikes drawn enjoy enjoys enjoying "
    "fan fans feature features featuring filed find fond item items like likes listen listening love loves offer "
    "offers people perfect prefer preference preferences prefers recently suits taste titled tend user users"
)
_EMPTY = frozenset(_EMPTY_TEXT.split())


class Taste(NamedTuple):
    """What a self-introduction states, as phrases, the newest first; ``loves`` are likes that came up again."""

    loves: tuple[str, ...] = ()
    likes: tuple[str, ...] = ()
    dislikes: tuple[str, ...] = ()


@lru_cache(maxsize=1 << 16)
def terms(phrase: str) -> tuple[str, ...]:
    """The words of a phrase that say something, folded, a plural's ``s`` taken off."""
    folded = (word.folded for word in folding.words(folding.plain(phrase)))
    return tuple(_singular(word) for word in folded if word not in _EMPTY)


def distinct(phrases: Iterable[str], without: Iterable[str] = ()) -> tuple[str, ...]:
    """The phrases that say something, each once (by its terms), less those that ``without`` holds."""
    seen = {terms(phrase) for phrase in without} | {()}
    kept: dict[tuple[str, ...], str] = {}
    for phrase in phrases:
        if terms(phrase) not in seen:
            kept.setdefault(terms(phrase), phrase)
    return tuple(kept.values())


def read_taste(memory: str, noun: str) -> Taste:
    """The taste that a self-introduction states; liking ``noun`` (what all items are) says nothing."""
    found: dict[str, list[str]] = {LOVES: [], LIKES: [], DISLIKES: []}
    for heading, body in _parts(memory):
        if heading:
            found.get(f"{heading} ", found[LIKES]).extend(_listed(body))
            continue
        for sentence in _SENTENCE.split(body):
            found[DISLIKES if _DISLIKE.search(sentence) else LIKES].extend(_phrases(sentence))
    return Taste(*(distinct(phrases, without=(noun,)) for phrases in found.values()))


def write_taste(taste: Taste, limit: int, share: float) -> str:
    """A self-introduction of at most ``limit`` words, up to ``share`` of them for loves and likes.

    Of each list the last goes first; loves have room before likes, and dislikes have what is left.
    """
    loves = _fit(LOVES, taste.loves, int(limit * share))
    likes = _fit(LIKES, taste.likes, int(limit * share) - len(loves.split()))
    dislikes = _fit(DISLIKES, taste.dislikes, limit - len(loves.split()) - len(likes.split()))
    return "\n".join(part for part in (loves, likes, dislikes) if part)


def identity(option: str) -> str:
    """What an item's description says about the item itself, without what it has gathered from adopters."""
    return _LISTS.split(option, maxsplit=1)[0].strip()


def name(option: str) -> str:
    """What an item's description calls the item: the title that it begins with in quotes, else all of its identity."""
    about = identity(option)
    quoted = _NAMED.match(about)
    return quoted[1] if quoted else about


def own_phrases(option: str, title: str) -> tuple[str, ...]:
    """The title, and the phrases of the item's identity."""
    rest = identity(option).replace(title, " ") if title else identity(option)
    head, colon, tail = rest.partition(": ")
    return distinct((title, *(_listed(tail) if colon else _phrases(head))))


def gathered_phrases(option: str) -> tuple[str, ...]:
    """The phrases that an item's description has gathered from adopters, the newest first."""
    return distinct(phrase for heading, body in _parts(option) if heading for phrase in _listed(body))


def write_description(about: str, gathered: Sequence[str], limit: int) -> str:
    """An item's description of at most ``limit`` words, the identity whole if there is room for it."""
    about = " ".join(about.split()[:limit])
    return "\n".join(part for part in (about, _fit(SUITS, gathered, limit - len(about.split()))) if part)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The free text before the first list, then each list's heading and body."""
    pieces = _LISTS.split(text)
    yield "", pieces[0]
    yield from zip(pieces[1::2], pieces[2::2], strict=True)


def _listed(body: str) -> list[str]:
    return [phrase for part in body.strip().removesuffix(".").split(";") if (phrase := " ".join(part.split()))]


def _phrases(sentence: str) -> list[str]:
    return [phrase for part in _PHRASE.split(sentence) if (phrase := trim(part))]


def trim(phrase: str) -> str:
    """A phrase without the empty words at its ends."""
    found = phrase.split()
    while found and not terms(found[0]):
        found.pop(0)
    while found and not terms(found[-1]):
        found.pop()
    return " ".join(found)


def _fit(heading: str, phrases: Iterable[str], limit: int) -> str:
    """As many phrases, from the first on, as the word limit allows; nothing where it allows none."""
    room = limit - len(heading.split())
    kept: list[str] = []
    for phrase in phrases:
        room -= len(phrase.split())
        if room < 0:
            break
        kept.append(phrase.replace(";", ","))
    return f"{heading}{'; '.join(kept)}." if kept else ""


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word
