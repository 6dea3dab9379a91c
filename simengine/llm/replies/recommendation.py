"""The format of a recommendation: ``Message: ...``, then ``Recommended:`` and titles, one a line; or both in JSON.

The titles are an ordered list, so that the same format serves where a few things are recommended and where many are
ranked. They are given as they were written: which of them mean an item is for the caller to say, who has a catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm
from simengine.llm.replies.unreadable import Unreadable

_BEFORE = r"^[^\w\n]*(?:(?:my|the|our)\s+)?"
_MESSAGE = re.compile(_BEFORE + r"(?:message|reply|assistant|recommender)\s*[:：]", re.IGNORECASE | re.MULTILINE)
_LIST = re.compile(
    _BEFORE + r"(?:(?:recommended|recommendations?|ranking)\b[^:：\n]{0,40}|titles\s*)[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED = re.compile(r"\A[ \t]*(?:[-*•][ \t]+)?\(?(\d{1,3})[.):][ \t]+(?=\S)")
_BULLETED = re.compile(r"\A[ \t]*[-*•][ \t]+(?=\S)")
_NONE = re.compile(
    r"\A\W*(?:none|nothing|n/a|no (?:titles?|recommendations?))(?: (?:yet|so far))?\W*\Z|\A[-–—]\Z", re.IGNORECASE
)

JSON = JsonForm(
    {"message": "<what you say>", "recommended": ["<title>", "<title>"]},
    rule="The list is empty where you recommend nothing.",
)


@dataclass(frozen=True)
class Recommendation:
    """What is said, and the titles that are recommended, the best first; one of the two may be empty."""

    text: str
    titles: tuple[str, ...]


def write(text: str, titles: Sequence[str], *, json: bool = False) -> str:
    """The reply in the format asked for."""
    said, named = one_line(text), list(map(one_line, titles))
    if json:
        return JSON.write(said, named)
    lines = [f"{place}. {title}" for place, title in enumerate(named, start=1)]
    return "\n".join([f"Message: {said}", "Recommended:" if lines else "Recommended: none", *lines])


def read(text: str) -> Recommendation:
    """The message and the titles.

    Titles are the numbered lines of the list where its numbers begin at the beginning, else the lines with bullets,
    else all lines up to an empty one, or the parts between semicolons of a single line. One of the two headings may be
    missing: the message then is what stands before the list, and the list the numbered lines, if there are any. An
    assistant may well speak as one, and be sorry: these are no lapses here.

    Raises :class:`Unreadable`: ``no_heading`` where both are missing, ``repeated`` where one comes again, ``empty``.
    """
    answer = clean(text)
    messages, lists = list(_MESSAGE.finditer(answer)), list(_LIST.finditer(answer))
    if len(messages) > 1 or len(lists) > 1:
        raise Unreadable("repeated", "the reply holds more than one message or list")
    if not messages and not lists:
        raise Unreadable("no_heading", f"the headings are missing; the reply begins {first_words(answer)}")
    if not lists:
        return _without_heading(answer[messages[0].end() :])
    start, end = lists[0].span()
    if not messages:
        return _recommendation(answer[:start], _listed(answer[end:]))
    first, last = messages[0].span()
    if first < start:
        return _recommendation(answer[last:start], _listed(answer[end:]))
    return _recommendation(answer[last:], _listed(answer[end:first]))


def read_json(text: str) -> Recommendation:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text)
    said, named = fields.get("message", ""), fields.get("recommended")
    if not isinstance(said, str) or not isinstance(named, tuple):
        raise Unreadable("incomplete", "the JSON has no field recommended")
    return _recommendation(_MESSAGE.sub("", said, count=1), named)


def _recommendation(text: str, titles: Iterable[str]) -> Recommendation:
    said, named = unwrap(text), [title for it in titles if (title := one_line(unwrap(it)))]
    if len(named) == 1 and _NONE.match(named[0]):
        named = []
    if not said and not named:
        raise Unreadable("empty", "the reply holds neither a message nor a title")
    return Recommendation(said, tuple(named))


def _without_heading(text: str) -> Recommendation:
    """A message in which a list may stand: numbered lines, and what is said before them."""
    lines = text.splitlines()
    numbered = _numbered(lines)
    before = takewhile(lambda line: not _NUMBERED.match(line), lines) if numbered else lines
    return _recommendation("\n".join(before), numbered)


def _listed(text: str) -> list[str]:
    lines = text.splitlines()
    if numbered := _numbered(lines):
        return numbered
    if bulleted := [line[found.end() :] for line in lines if (found := _BULLETED.match(line))]:
        return bulleted
    block = list(takewhile(str.strip, dropwhile(lambda line: not line.strip(), lines)))
    return block[0].split(";") if len(block) == 1 else block


def _numbered(lines: Sequence[str]) -> list[str]:
    """The numbered lines without their numbers; none where the first number is another: it belongs to a title."""
    found = [(line, match) for line in lines if (match := _NUMBERED.match(line))]
    if not found or int(found[0][1][1]) > 1:
        return []
    return [line[match.end() :] for line, match in found]
