"""Beginnings of talks with the plan for the last message: how they are written and read, and thirty of our own writing.

The reply is the JSON object of a planner's reply with one more field, ``dialogue``: the lines of the talk in their
order, each behind the name of who speaks, the last one the user's. Plan and profile are read as any planner's are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

from simengine.llm.replies import Unreadable
from simengine.llm.replies.clean import first_words
from simengine.llm.replies.dialogue import SPEAKER
from simengine.llm.replies.lines import one_line
from simengine.llm.replies.objects import JsonForm
from simengine.llm.task import Slots
from simengine.methods.interec.memory import RECOMMENDER, USER
from simengine.methods.interec.tasks import Planned, read_planned

_FORM = JsonForm({"dialogue": ["..."]})
_SPEAKER = re.compile(rf"\W*{SPEAKER}\W*[:：]\s*", re.IGNORECASE)


class Written(msgspec.Struct, frozen=True):
    """A talk as a model wrote it: the lines up to the last message, that message, and what was planned for it."""

    dialogue: tuple[str, ...]
    request: str
    planned: Planned


def read(text: str, slots: Slots) -> Written:
    """The talk of a reply and its plan.

    Raises :class:`Unreadable` like the plan's reader, ``incomplete`` where there are less than two lines or the last
    one is not the user's, ``no_heading`` where a line does not say who speaks, and ``empty`` where it says no more.
    """
    fields = _FORM.read(text) or {}
    lines = [_line(line) for line in fields.get("dialogue", ()) if line]
    if len(lines) < 2 or not lines[-1].startswith(USER):
        raise Unreadable("incomplete", "the dialogue has two lines at least, of which the last one is the user's")
    return Written(tuple(lines[:-1]), lines[-1].removeprefix(USER), read_planned(text, slots))


def write(dialogue: Sequence[str], planned: str) -> str:
    """The reply in the format asked for; ``planned`` is a planner's reply."""
    return json.dumps({"dialogue": list(dialogue), **json.loads(planned)}, ensure_ascii=False)


@cache
def handmade() -> tuple[str, ...]:
    """The thirty of our own writing, as replies. All names in them are made up, and no catalogue holds them."""
    return tuple((files(__package__) / "dialogues.jsonl").read_text(encoding="utf-8").splitlines())


def _line(text: str) -> str:
    speaker = _SPEAKER.match(text)
    if speaker is None:
        raise Unreadable("no_heading", f"a line of the dialogue does not say who speaks: {first_words(text)}")
    said = one_line(text[speaker.end() :])
    if not said:
        raise Unreadable("empty", "a line of the dialogue says nothing")
    return f"{USER if speaker['user'] else RECOMMENDER}{said}"
