"""The self-introduction format: free text after ``My updated self-introduction:``; or in JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain, refuse_lapse
from simengine.llm.replies.lines import unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(
    r"(?:\bmy\s+)?\b(?:newly\s+)?(?:updated|revised|new)\s+self[-‐‑–\s]?introduction(?:\s+is)?\s*[:：]", re.IGNORECASE
)

JSON = JsonForm({"self_introduction": "<text>"})


def write(text: str, *, json: bool = False) -> str:
    """The reply in the format asked for."""
    return JSON.write(text) if json else f"My updated self-introduction: {text}"


def read(text: str, former: str) -> str:
    """The new self-introduction; ``former`` is the one before it, by whose writing system the language is judged.

    Raises :class:`Unreadable`: ``no_heading``, ``empty``, ``repeated`` where the heading comes back with another text,
    or a lapse. A word limit is not looked at here.
    """
    answer = clean(text)
    parts = [unwrap(part) for part in _HEADING.split(answer)[1:]]
    if not parts:
        raise explain(answer, former, "no_heading", f"the heading is missing; the reply begins {first_words(answer)}")
    return _one(parts, former)


def read_json(text: str, former: str) -> str:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, former)
    before, *parts = map(unwrap, _HEADING.split(text_of(fields, "self_introduction")))
    return _one([before, *parts] if before else parts, former)


def _one(parts: Sequence[str], former: str) -> str:
    """The one text that all parts are."""
    if not parts[0]:
        raise Unreadable("empty", "nothing stands after the heading")
    if any(part != parts[0] for part in parts[1:]):
        raise Unreadable("repeated", "the heading comes several times, with different texts")
    refuse_lapse(parts[0], former)
    return parts[0]
