"""Tells whether a text names a title that it must not name, and how many of some phrases it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simengine.llm.replies import folding

_UNSPACED = "\u2e80"  # from here on there are writing systems that put no blanks between words


def names(text: str, title: str, others: Sequence[str] = ()) -> bool:
    """Whether ``text`` holds ``title``: whole words, case, accents and punctuation aside, with or without its year.

    Where it stands inside the title of one of ``others`` (``Portal`` in ``Portal 2``), it is not named. Spelling
    mistakes and paraphrases are not found.
    """
    said = _folded(text)
    covered = [span for other in others for form in _forms(other) for span in _spans(said, form)]
    for form in _forms(title):
        if any(_unspaced(word) for word in form) and "".join(form) in "".join(said):
            return True
        for first, last in _spans(said, form):
            if not any(start <= first and last <= end for start, end in covered):
                return True
    return False


def held(text: str, phrases: Iterable[str]) -> int:
    """How many of the phrases ``text`` holds, as whole words."""
    said = _folded(text)
    return sum(any(True for _ in _spans(said, _folded(phrase))) for phrase in phrases)


def _folded(text: str) -> tuple[str, ...]:
    return folding.key(folding.plain(text))


def _forms(title: str) -> tuple[tuple[str, ...], ...]:
    known = folding.title(title)
    return tuple(dict.fromkeys((known.full, known.without_year)))


def _spans(said: Sequence[str], form: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for first in range(len(said) - len(form) + 1):
        if tuple(said[first : first + len(form)]) == form:
            yield first, first + len(form)


def _unspaced(word: str) -> bool:
    return any(char >= _UNSPACED for char in word)
