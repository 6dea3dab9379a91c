"""Tells whether a text names a title that it must not name, and how many of some phrases it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simengine.llm.replies import folding

_UNSPACED = "\u2e80"  # from here on there are writing systems that put no blanks between words


def names(text: str, title: str, others: Sequence[str] = ()) -> bool:
    """Whether ``text`` holds ``title``: whole words, case, accents and punctuation aside, with or without its year.

    Where it stands inside a longer title of one of ``others`` (``Portal`` in ``Portal 2``), it is not named. Spelling
    mistakes and paraphrases are not found.
    """
    said = _folded(text)
    covered = [span for other in others for form in _forms(other) for span in _spans(said, form)]
    for form in _forms(title):
        if _inside(said, form):
            return True
        for first, last in _spans(said, form):
            if not any(start <= first and last <= end and (start, end) != (first, last) for start, end in covered):
                return True
    return False


def held(text: str, phrases: Iterable[str]) -> int:
    """How many of the phrases ``text`` holds, as whole words where there are blanks between words."""
    said = _folded(text)
    return sum(_inside(said, form) or any(True for _ in _spans(said, form)) for form in map(_folded, phrases))


def _folded(text: str) -> tuple[str, ...]:
    return folding.key(folding.plain(text))


def _forms(title: str) -> tuple[tuple[str, ...], ...]:
    known = folding.title(title)
    return tuple(dict.fromkeys((known.full, known.without_year)))


def _spans(said: Sequence[str], form: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for first in range(len(said) - len(form) + 1):
        if tuple(said[first : first + len(form)]) == form:
            yield first, first + len(form)


def _inside(said: Sequence[str], form: Sequence[str]) -> bool:
    """Whether what is written without blanks stands in the text, whatever is round it."""
    unspaced = any(char >= _UNSPACED for word in form for char in word)
    return unspaced and "".join(form) in "".join(said)
