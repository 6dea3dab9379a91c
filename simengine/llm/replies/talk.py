"""The format of a turn in a talk: ``Message: ...``, then ``Goodbye: yes`` or ``no`` on a last line; or both in JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain, refuse_lapse
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.unreadable import Unreadable

_SPEAKERS = "buyer|owner"
_HEADING = re.compile(
    rf"^\W*(?:(?:my|the)\s+)?(?:message|{_SPEAKERS})(?:\s+(?:says|is))?\s*[:：]", re.IGNORECASE | re.MULTILINE
)
_MARK = re.compile(r"^\W*good-?\s?bye\s*[:：][ \t]*([^\n]*)$", re.IGNORECASE | re.MULTILINE)
_YES_OR_NO = re.compile(r"\A\W*(yes|no|true|false)\b(?!\W*(?:or\W+)?(?:yes|no)\b)", re.IGNORECASE)
_FAREWELL = re.compile(
    r"\A\W*(?:(?:well|so|ok(?:ay)?|and|thanks?(?:\s+you)?)\W+)*"
    r"(?:good-?\s?bye|bye|farewell|take care|see (?:you|ya)|(?:talk|speak) to you|catch you later"
    r"|have a (?:good|nice|great|lovely) (?:day|evening|night|week|weekend|time|one))\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_FAREWELL_WORDS = 8
"""A last sentence that begins with a farewell and has no more words than this is one."""

JSON = JsonForm({"message": "<what you say>", "goodbye": "<yes or no>"})


@dataclass(frozen=True)
class Turn:
    """What is said in one turn, and whether the speaker ends the talk with it."""

    text: str
    goodbye: bool


def write(text: str, goodbye: bool, *, json: bool = False) -> str:
    """The reply in the format asked for."""
    said, mark = one_line(text), "yes" if goodbye else "no"
    return JSON.write(said, mark) if json else f"Message: {said}\nGoodbye: {mark}"


def read(text: str, shown: str, titles: Sequence[str]) -> Turn:
    """The turn. It ends the talk where the mark says so, or where its last sentence is a farewell, mark or none.

    One of heading and mark may be missing. ``shown`` is what the model was given, by whose writing systems the language
    is judged; ``titles`` are those of the items talked about, which may hold farewells. Raises :class:`Unreadable`:
    ``no_heading`` where heading and mark are missing, ``empty``, ``repeated`` where the reply goes on in the other's
    name, ``unmatched`` where the mark says neither yes nor no, or a lapse.
    """
    answer = clean(text)
    headings, marks = list(_HEADING.finditer(answer)), list(_MARK.finditer(answer))
    if not headings and not marks:
        raise explain(answer, shown, "no_heading", f"the heading is missing; the reply begins {first_words(answer)}")
    if len(headings) > 1 or len(marks) > 1:
        raise Unreadable("repeated", "the reply holds more than one message")
    start = headings[0].end() if headings else 0
    end = marks[0].start() if marks and marks[0].start() >= start else len(answer)
    return _turn(answer[start:end], marks[0][1] if marks else "no", shown, titles)


def read_json(text: str, shown: str, titles: Sequence[str]) -> Turn:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, shown, titles)
    parts = [part for part in _HEADING.split(text_of(fields, "message")) if part.strip()]
    if len(parts) > 1:
        raise Unreadable("repeated", "the reply holds more than one message")
    return _turn("".join(parts), str(fields.get("goodbye", "no")), shown, titles)


def _turn(text: str, mark: str, shown: str, titles: Sequence[str]) -> Turn:
    said, marked = unwrap(text), _YES_OR_NO.match(mark)
    if not said:
        raise Unreadable("empty", "the reply holds no message")
    if marked is None:
        raise Unreadable("unmatched", f"neither yes nor no stands after Goodbye, but {first_words(mark)}")
    refuse_lapse(said, shown)
    return Turn(said, marked[1].lower() in ("yes", "true") or _is_farewell(said, titles))


def _is_farewell(text: str, titles: Sequence[str]) -> bool:
    for title in filter(None, titles):
        text = re.sub(re.escape(title), "it", text, flags=re.IGNORECASE)
    last = _SENTENCE.split(text.strip())[-1]
    return len(last.split()) <= _FAREWELL_WORDS and _FAREWELL.match(last) is not None
