"""The self-introduction format: free text after ``My updated self-introduction:``."""

from __future__ import annotations

import re

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain, refuse_lapse
from simengine.llm.replies.lines import unwrap
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(
    r"(?:\bmy\s+)?\b(?:newly\s+)?(?:updated|revised|new)\s+self[-‐‑–\s]?introduction(?:\s+is)?\s*[:：]", re.IGNORECASE
)


def write(text: str) -> str:
    """The reply in the format asked for."""
    return f"My updated self-introduction: {text}"


def read(text: str, former: str) -> str:
    """The new self-introduction; ``former`` is the one before it, by whose writing system the language is judged.

    Raises :class:`Unreadable`: ``no_heading``, ``empty``, ``repeated`` where the heading comes back with another text,
    or a lapse. A word limit is not looked at here.
    """
    answer = clean(text)
    parts = [unwrap(part) for part in _HEADING.split(answer)[1:]]
    if not parts:
        raise explain(answer, former, "no_heading", f"the heading is missing; the reply begins {first_words(answer)}")
    if not parts[0]:
        raise Unreadable("empty", "nothing stands after the heading")
    if any(part != parts[0] for part in parts[1:]):
        raise Unreadable("repeated", "the heading comes several times, with different texts")
    refuse_lapse(parts[0], former)
    return parts[0]
