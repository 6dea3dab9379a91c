"""The descriptions format: ``The updated description of the first <noun> is: ...``, the second likewise; or JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain, refuse_lapse
from simengine.llm.replies.lines import unwrap
from simengine.llm.replies.objects import JsonForm
from simengine.llm.replies.unreadable import Unreadable

_ORDINALS = ("first", "second")
# Models put the title into the heading (``... of the first CD 'Heat: Live', is: ...``), so the text begins after the
# line's first ``is:``; only where there is none does a plain colon, or a quote after ``is``, end the heading.
_HEADING = re.compile(
    r"^[\W\d]*(?:the\s+)?(?:updated|revised|new)\s+description\s+of\s+(?:the\s+)?(first|second)\b"
    r"(?:[^\n]{0,200}?\bis\s*[:：]|[^:：\n]{0,60}?\bis\s+(?=[\"'“])|[^:：\n]{0,60}[:：])",
    re.IGNORECASE | re.MULTILINE,
)

JSON = JsonForm(
    {"first": "<the updated description of the first>", "second": "<the updated description of the second>"},
    "in the order in which the two are listed",
)


def write(noun: str, first: str, second: str, *, json: bool = False) -> str:
    """The reply in the format asked for."""
    if json:
        return JSON.write(first, second)
    return "\n".join(
        f"The updated description of the {ordinal} {noun} is: {text}"
        for ordinal, text in zip(_ORDINALS, (first, second), strict=True)
    )


def read(text: str, former: tuple[str, str]) -> tuple[str, str]:
    """The new descriptions of both items in the order shown; ``former`` are the ones before.

    Raises :class:`Unreadable`: ``no_heading``, ``incomplete`` where one is missing, ``empty``, ``repeated`` where one
    comes twice with different texts, or a lapse.
    """
    answer = clean(text)
    shown = " ".join(former)
    headings = list(_HEADING.finditer(answer))
    if not headings:
        raise explain(answer, shown, "no_heading", f"no heading was found; the reply begins {first_words(answer)}")
    found: dict[str, str] = {}
    ends = [heading.start() for heading in headings[1:]] + [len(answer)]
    for heading, end in zip(headings, ends, strict=True):
        ordinal, body = heading[1].lower(), unwrap(answer[heading.end() : end])
        if found.setdefault(ordinal, body) != body:
            raise Unreadable("repeated", f"the {ordinal} description comes several times, with different texts")
    return _both(found, shown)


def read_json(text: str, former: tuple[str, str]) -> tuple[str, str]:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, former)
    return _both({ordinal: _body(str(said)) for ordinal, said in fields.items()}, " ".join(former))


def _body(said: str) -> str:
    """A description without a heading that came with it."""
    heading = _HEADING.match(said)
    return unwrap(said[heading.end() :] if heading else said)


def _both(found: Mapping[str, str], shown: str) -> tuple[str, str]:
    for ordinal in _ORDINALS:
        if ordinal not in found:
            raise Unreadable("incomplete", f"the {ordinal} description is missing")
        if not found[ordinal]:
            raise Unreadable("empty", f"the {ordinal} description is empty")
        refuse_lapse(found[ordinal], shown)
    return found["first"], found["second"]
