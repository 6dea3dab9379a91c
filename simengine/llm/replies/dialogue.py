"""The format of a whole talk: lines ``User: ...`` and ``Recommender: ...`` in turn; or two lists in JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm
from simengine.llm.replies.unreadable import Unreadable

Exchange = tuple[str, str]
"""What the user says, and what is answered."""

SPEAKER = r"(?:(?P<user>user|seeker|customer|human)|(?:shop\s+)?(?:recommender|assistant|agent|system))"
"""A pattern, in lower case, of what models call the two who speak; the group ``user`` tells them apart."""

_SPEAKER = re.compile(
    rf"^\W*(?:\d{{1,2}}[.)]\W*)?{SPEAKER}(?:\s+\d+)?\s*[:：]",
    re.IGNORECASE | re.MULTILINE,
)

JSON = JsonForm(
    {"user": ["<the user's first line>", "<the next>"], "recommender": ["<the answer to the first>", "<to the next>"]},
    rule="Both lists are as long as the talk, each line of the one answered by that of the other.",
)


def write(talk: Sequence[Exchange], *, json: bool = False) -> str:
    """The reply in the format asked for."""
    if json:
        return JSON.write([one_line(said) for said, _ in talk], [one_line(answer) for _, answer in talk])
    return "\n".join(f"User: {one_line(said)}\nRecommender: {one_line(answer)}" for said, answer in talk)


def read(text: str, shown: str) -> tuple[Exchange, ...]:
    """The exchanges of a reply, in their order.

    What the recommender says before the user is no part of them, nor is a last line of the user that nobody answers;
    lines of one speaker that follow each other are one. ``shown`` is what the model was given, by whose writing systems
    the language is judged. Raises :class:`Unreadable`: ``no_heading`` where nobody speaks, ``incomplete`` where there
    is no exchange, or a lapse.
    """
    answer = clean(text)
    marks = list(_SPEAKER.finditer(answer))
    if not marks:
        raise explain(answer, shown, "no_heading", f"nobody speaks in the reply, which begins {first_words(answer)}")
    ends = [mark.start() for mark in marks[1:]] + [len(answer)]
    lines: list[tuple[bool, str]] = []
    for mark, end in zip(marks, ends, strict=True):
        users, said = mark["user"] is not None, unwrap(one_line(answer[mark.end() : end]))
        if lines and lines[-1][0] == users:
            users, said = users, one_line(f"{lines.pop()[1]} {said}")
        lines.append((users, said))
    if not lines[0][0]:
        lines = lines[1:]
    return _whole([(said, told) for (_, said), (_, told) in zip(lines[::2], lines[1::2], strict=False)])


def read_json(text: str, shown: str) -> tuple[Exchange, ...]:
    """The same from a reply in JSON; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, shown)
    said, told = (fields.get(name, ()) for name in ("user", "recommender"))
    return _whole([(one_line(one), one_line(other)) for one, other in zip(said, told, strict=False)])


def _whole(talk: Sequence[Exchange]) -> tuple[Exchange, ...]:
    kept = tuple((said, told) for said, told in talk if said and told)
    if not kept:
        raise Unreadable("incomplete", "the reply holds no line of the user with an answer")
    return kept
