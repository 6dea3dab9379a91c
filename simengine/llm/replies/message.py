"""The message format: ``Message: ...``, what an assistant says to a user; or a JSON object of it."""

from __future__ import annotations

import re

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(r"^\W*(?:(?:my|the)\s+)?(?:message|reply|assistant|recommender)\s*[:：]", re.I | re.M)

JSON = JsonForm({"message": "<what you say to the user>"})


def write(text: str, *, json: bool = False) -> str:
    """The reply in the format asked for."""
    said = one_line(text)
    return JSON.write(said) if json else f"Message: {said}"


def read(text: str) -> str:
    """What is said to the user.

    An assistant may well speak as one, and be sorry: these are no lapses here. Raises :class:`Unreadable`
    (``no_heading``, ``repeated``, ``empty``).
    """
    answer = clean(text)
    found = _HEADING.search(answer)
    if found is None:
        raise Unreadable("no_heading", f"the heading is missing; the reply begins {first_words(answer)}")
    return _one(answer[found.end() :])


def read_json(text: str) -> str:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text)
    said = text_of(fields, "message")
    found = _HEADING.match(said)
    return _one(said[found.end() :] if found else said)


def _one(text: str) -> str:
    said = unwrap(text)
    if _HEADING.search(said):
        raise Unreadable("repeated", "the reply holds more than one message")
    if not said:
        raise Unreadable("empty", "the reply holds no message")
    return said
