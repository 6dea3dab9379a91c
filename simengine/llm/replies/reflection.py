"""The reflection format: free text after ``My reflection:``, thought before a memory is updated; or in JSON."""

from __future__ import annotations

import re

from simengine.llm.replies.clean import clean
from simengine.llm.replies.lapses import refuse_lapse
from simengine.llm.replies.lines import unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(r"\A\W*(?:my\s+)?reflections?\s*[:：]", re.IGNORECASE)

JSON = JsonForm({"reflection": "<text>"}, "in a few sentences")


def write(text: str, *, json: bool = False) -> str:
    """The reply in the format asked for."""
    return JSON.write(text) if json else f"My reflection: {text}"


def read(text: str, shown: str) -> str:
    """The reflection; the heading may be left out, since all of the reply is read. Raises :class:`Unreadable`.

    ``shown`` is what the model was given, by whose writing systems the language is judged.
    """
    return _accepted(clean(text), shown)


def read_json(text: str, shown: str) -> str:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    return read(text, shown) if fields is None else _accepted(text_of(fields, "reflection"), shown)


def _accepted(text: str, shown: str) -> str:
    reflection = unwrap(_HEADING.sub("", text, count=1))
    if not reflection:
        raise Unreadable("empty", "the reply holds no reflection")
    refuse_lapse(reflection, shown)
    return reflection
