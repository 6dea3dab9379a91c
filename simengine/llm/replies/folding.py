"""Normal forms of titles: what two spellings of one title have in common, and what keeps two titles apart."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_ARTICLE = r"the|an?|les?|la|l'|el|los|las|un[ae]?|der|die|das|ein|eine|il|lo|gli"
_MOVED_ARTICLE = re.compile(rf"\A(.+?),\s*({_ARTICLE})(?=\s*(?:[(\[:]|\Z))", re.IGNORECASE)
_YEAR = re.compile(r"\s*[(\[]((?:1[89]|20)\d\d)[)\]]\s*\Z")
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*\Z")
_SUBTITLE = re.compile(r"(?<=\w)\s*:\s.*\Z", re.DOTALL)
_WORD = re.compile(r"&|[^\W_]+(?:['’][^\W_]+)*")
_LATIN_MARK = re.compile("([a-z])[\u0300-\u036f]+")
_NUMBER_WORDS_TEXT = (
    "ii iii iv vi vii viii ix xi xii xiii one two three four five six seven eight nine ten first second third"
)
_NUMBER_WORDS = frozenset(_NUMBER_WORDS_TEXT.split())


@dataclass(frozen=True)
class Word:
    """A word of a text: its folded form, where it stands, and whether it begins with a capital."""

    folded: str
    start: int
    end: int
    capital: bool


@dataclass(frozen=True)
class Title:
    """A title's normal forms, each a tuple of folded words (or the bare characters where a title has no word)."""

    full: tuple[str, ...]
    without_year: tuple[str, ...]
    year: str
    short: tuple[str, ...]


def plain(text: str) -> str:
    """``text`` on one line, HTML entities decoded (twice: some catalogues encode an ampersand again)."""
    decoded = html.unescape(html.unescape(text))
    if not decoded.isascii():  # ASCII has no invisible marks
        decoded = "".join(c for c in decoded if unicodedata.category(c) != "Cf")
    return " ".join(decoded.split())


def words(text: str) -> Iterator[Word]:
    """The words of a plain text. Case, Latin accents, apostrophes and ``&`` against ``and`` make no difference."""
    for hit in _WORD.finditer(text):
        yield Word(_fold(hit[0]), hit.start(), hit.end(), hit[0][0].isupper() or hit[0][0].isdigit())


def key(text: str) -> tuple[str, ...]:
    """The folded words of a plain text; of a text without words, its characters as one."""
    return tuple(word.folded for word in words(text)) or (text.casefold(),)


def title(text: str) -> Title:
    """The normal forms of one title: with its year, without, and without subtitle and bracketed suffixes."""
    text = front_article(plain(text))
    year = _YEAR.search(text)
    bare = text[: year.start()] if year and year.start() else text
    short = _SUBTITLE.sub("", bare)
    while (cut := _BRACKETS.sub("", short)) and cut != short:
        short = cut
    return Title(key(text), key(front_article(bare)), year[1] if year and bare != text else "", key(short))


def front_article(text: str) -> str:
    """``Matrix, The (1999)`` as ``The Matrix (1999)``."""
    hit = _MOVED_ARTICLE.match(text)
    return f"{hit[2]} {hit[1]}{text[hit.end() :]}" if hit else text


def is_number(folded: str) -> bool:
    """True for a word that tells a sequel or a volume from another: digits, Roman numerals above I, number words."""
    return any(char.isdigit() for char in folded) or folded in _NUMBER_WORDS


def numbers(folded: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a key that count something, in order; titles that differ in one are different titles."""
    return tuple(word for word in folded if is_number(word))


def _fold(word: str) -> str:
    if word == "&":
        return "and"
    spread = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", _LATIN_MARK.sub(r"\1", spread)).replace("'", "").replace("’", "")
