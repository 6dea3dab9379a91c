"""Small text tools that several reply formats share: one-line titles, and quotes round a whole answer."""

from __future__ import annotations

_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "[": "]"}


def one_line(text: str) -> str:
    """``text`` with every run of white space as one blank."""
    return " ".join(text.split())


def unwrap(text: str) -> str:
    """``text`` without the quotes or brackets that enclose all of it (not those of a title at either end)."""
    text = text.strip()
    while len(text) > 1 and _PAIRS.get(text[0]) == text[-1] and not _reopens(text[1:-1], text[0], text[-1]):
        text = text[1:-1].strip()
    return text


def _reopens(inner: str, opener: str, closer: str) -> bool:
    """True where ``inner`` holds one of the marks itself; an apostrophe inside a word is none."""
    return any(
        char in (opener, closer)
        and not (char in "'’" and inner[at - 1 : at].isalnum() and inner[at + 1 : at + 2].isalnum())
        for at, char in enumerate(inner)
    )
