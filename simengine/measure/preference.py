"""Whether a memory's text holds a preference, told by its words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence

from simengine.errors import InputError

SHARE = 0.75
"""A text holds a statement where one of its sentences has at least this share of the statement's content words."""

# Matched against folded text: lower case, no accents, straight apostrophes.
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_ENTRY = re.compile(rf";|{_SENTENCE.pattern}")
_HEADING = re.compile(
    r"(?:\A|(?<=[.!?;])\s)\s*([^.!?;:]{0,60}\b(?:like|love|enjoy|prefer|favou?r|dislike|hate|avoid)s?):(?=\s)",
    re.IGNORECASE,
)
_TURN = re.compile(
    r",?\s+(?=(?:but|yet|while|whereas|although|though|however|unlike|except|without|rather than|instead of)\b)"
    r"|,?\s+(?=and i\b)|,\s+(?=i\b)"
)
_DISLIKE = re.compile(
    r"\b(?:dislik\w+|dislikes?|hat(?:es?|ed)|avoid\w*|detest\w*|loathe\w*|lack(?:s|ing)?|unlike|except|without"
    r"|rather than|instead of|but (?:not|never)(?! only| just)|no longer|put off|tired of|bor(?:ed|es|ing)|aversion"
    r"|(?:no|less) (?:interest\w*|appeal\w*)|less (?:drawn|fond|keen)|(?:can't|cannot|can not) stand"
    r"|(?:not|\w+n't|cannot|never)(?! only| just)(?: \w+){0,3}? (?:like|enjoy|care|prefer|favou?r|love|appeal"
    r"|appreciate|resonate|align|want|fan|fond|into|drawn|keen|interest|suit|for me|my)\w*)\b"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
# Words that say nothing about what is liked: grammar, and what people say when they talk about liking.
_EMPTY_TEXT = (
    "a about above after again all also although always am among an and any are as at be became because been being "
    "below between both but by can cannot could did do does doing down during each else even ever every few for "
    "from further had has have having he her here hers him his how i if in into is it its itself just me more most "
    "much my myself never no nor not now of off often on once one ones only or other our out over own perhaps quite "
    "really rather same she should so some such than that the their them then there these they this those though "
    "through to too towards under until up upon us very was we well were what when where whether which while who "
    "whom whose why will with within would yet you your i'm i'd i'll i've it's that's don't doesn't didn't isn't "
    "aren't can't won't appeal appeals appealing appreciate appreciates drawn enjoy enjoys enjoying fan fans favor "
    "favors favour favours find finds fond fondness interest interested interests like liked likes liking love "
    "loved loves particular particularly prefer preference preferences preferred prefers suit suits taste tastes "
    "tend tends want wants"
)
_EMPTY = frozenset(_EMPTY_TEXT.split())


class Preference:
    """A preference as the words that tell it, for matching against memories.

    A text holds it where one sentence, or one entry of a list (``I like: ...; ...``), has at least :data:`SHARE` of the
    content words of one of the preference's own sentences or entries. Clauses that speak of disliking do not count, nor
    do entries of a list of dislikes. Words match whatever their case, accents, plural, ``-ed`` or ``-ing``; word order,
    synonyms and irony are beyond it. ``noun`` is what all items are (``CD``), which says nothing about a preference.

    Raises :class:`InputError` for a text that states no liking in any word that says something.
    """

    def __init__(self, text: str, noun: str = "") -> None:
        self.text = text
        without = _stems(_folded(noun))
        found = (tuple(dict.fromkeys(stem for stem in words if stem not in without)) for words in _told(_folded(text)))
        self.statements: tuple[tuple[str, ...], ...] = tuple(words for words in found if words)
        if not self.statements:
            raise InputError(
                "no word of this preference says what is liked",
                remedy='State it as a liking of something: "I like slow songs with a theremin."',
                value=text,
            )

    def held_in(self, text: str) -> bool:
        """Whether this text holds it."""
        folded = _folded(text)
        # A stem is how its word begins, so a statement whose stems do not even occur need not be looked for.
        near = [words for words in self.statements if _enough(sum(stem in folded for stem in words), words)]
        return bool(near) and any(
            _enough(sum(stem in told for stem in words), words)
            for told in map(frozenset, _told(folded))
            for words in near
        )

    def phrases_in(self, text: str) -> tuple[str, ...]:
        """The sentences and list entries that hold it as they stand in the text, entries behind their list's heading.

        They are those by which :meth:`held_in` goes; where signs that folding changes end a sentence, the whole text.
        """
        if not self.held_in(text):
            return ()
        found = [(heading, unit.strip(" .,;")) for heading, unit in _units(text) if self.held_in(unit)]
        phrases = [f"{heading}: {unit}" if heading else unit for heading, unit in found]
        return tuple(dict.fromkeys(phrases)) or (text,)


def _enough(found: int, words: Sequence[str]) -> bool:
    return found >= math.ceil(SHARE * len(words))


def _told(folded: str) -> Iterator[list[str]]:
    """The content words of each sentence and list entry, as stems, without those of clauses that speak of disliking."""
    for _, unit in _units(folded):
        yield [stem for clause in _TURN.split(unit) if not _DISLIKE.search(clause) for stem in _stems(clause)]


def _units(text: str) -> Iterator[tuple[str, str]]:
    """Sentences, and the entries of lists of what is liked, each with its list's heading (empty for a sentence).

    A list of dislikes goes on to the next list or line.
    """
    for line in text.splitlines():
        free, *lists = _HEADING.split(line)
        yield from (("", sentence) for sentence in _SENTENCE.split(free))
        for heading, body in zip(lists[::2], lists[1::2], strict=True):
            if not _DISLIKE.search(_folded(heading)):
                yield from ((heading, entry) for entry in _ENTRY.split(body))


def _folded(text: str) -> str:
    """Lower case, without accents, apostrophes straight."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.replace("’", "'"))
    return "".join(letter for letter in apart if not unicodedata.combining(letter)).casefold()


def _stems(folded: str) -> list[str]:
    return [_stem(word.removesuffix("'s")) for word in _WORD.findall(folded) if word not in _EMPTY]


def _stem(word: str) -> str:
    """The beginning of a word that its plural, ``-ed`` and ``-ing`` share: ``melod``, ``evok``, ``hum``."""
    if len(word) > 2 and word.endswith("s") and not word.endswith("ss"):
        word = word.removesuffix("es") if word.endswith(("sses", "shes", "ches", "xes")) else word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and re.search("[aeiouy]", rest):
            word = rest
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    if word.endswith("ie") and len(word) > 4:
        return word[:-2]
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word
