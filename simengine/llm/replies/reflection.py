"""The reflection format: free text after ``My reflection:``, which is thought before a memory is updated."""

from __future__ import annotations

import re

from simengine.llm.replies.clean import clean
from simengine.llm.replies.lapses import refuse_lapse
from simengine.llm.replies.lines import unwrap
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(r"\A\W*(?:my\s+)?reflections?\s*[:：]", re.IGNORECASE)


def write(text: str) -> str:
    """The reply in the format asked for."""
    return f"My reflection: {text}"


def read(text: str, shown: str) -> str:
    """The reflection; the heading may be left out, since all of the reply is read. Raises :class:`Unreadable`.

    ``shown`` is what the model was given, by whose writing systems the language is judged.
    """
    reflection = unwrap(_HEADING.sub("", clean(text), count=1))
    if not reflection:
        raise Unreadable("empty", "the reply holds no reflection")
    refuse_lapse(reflection, shown)
    return reflection
