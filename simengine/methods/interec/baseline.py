"""What the recommenders that the agent is compared with have in common: one call a turn, whose titles are taken by id.

They play in the same talks as the agent, and leave what it leaves: the message with the items, and the dialogue. There
is no critic, so that each exchange enters the dialogue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

from simengine.kernel import Context, Version
from simengine.llm.prompts import Slot
from simengine.llm.replies import recommendation
from simengine.llm.replies.lines import one_line
from simengine.llm.replies.recommendation import Recommendation
from simengine.llm.task import Json, Task
from simengine.methods.interec.exchange import REPLIED, Answer, Desk, Heard
from simengine.methods.interec.memory import USER, Memory, Recalled, accept
from simengine.methods.interec.picks import pick
from simengine.methods.turn import tell

NAMES = "I recommend: "
"""What stands before the titles in what is said to the user."""


class Recommender(Protocol):
    """Who answers the users of ``converse`` stages."""

    def turn_calls(self) -> tuple[int, int]:
        """The fewest and the most model calls of one turn, where every reply can be read."""

    async def answer(self, context: Context, heard: Heard) -> Answer | None:
        """What is said to the user in a turn; none where no reply could be had."""


def task_of(name: str, template: str) -> Task[Recommendation]:
    """A task whose answer is a message with titles."""
    json = Json(recommendation.JSON, lambda text, slots: recommendation.read_json(text))
    return Task(name, template, lambda text, slots: recommendation.read(text), json)


async def recalled(context: Context, heard: Heard, desk: Desk) -> Recalled:
    """What there is room for of the talk before this turn: they have no long-term memory."""
    return await Memory(desk.asker, desk.settings.window, long_term=False).recall(context, heard.venue)


def users_words(known: Recalled, heard: Heard) -> str:
    """What the user has said in the talk, as far as it is recalled."""
    return "\n".join([*(line.removeprefix(USER) for line in known.lines if line.startswith(USER)), heard.text])


async def recommend(
    context: Context,
    heard: Heard,
    desk: Desk,
    task: Task[Recommendation],
    known: Recalled,
    shown: Mapping[str, Slot],
    among: Collection[str] | None = None,
) -> Answer | None:
    """Ask for the reply of a turn and say it; none where it cannot be read.

    ``shown`` are slots beside the talk, ``among`` the items to choose from, which is the catalogue where none are
    given. The user hears the message with the titles behind it, invented ones too, but at most ``heard.k``. The
    message's body holds what :class:`~simengine.methods.interec.picks.Picks` tells of them.
    """
    slots: dict[str, Slot] = {
        "dialogue": known.lines,
        "request": heard.text,
        "count": str(heard.k),
        "limit": str(desk.settings.reply_words),
        **shown,
    }

    async def write(inner: Context) -> Recommendation:
        return await desk.asker.ask(inner, task, slots)

    written = await context.unit("reply/1", write)
    if not written.ok:
        return None
    picks = pick(written.value.titles, heard.k, desk.table, among)
    text = _spoken(written.value, heard.k)
    body = {"turn": heard.number, "attempt": 1, "text": text, "items": picks.items, **msgspec.structs.asdict(picks)}
    because: list[str | Version] = [heard.message, *known.versions]
    message = tell(context, heard.venue, heard.venue, REPLIED, msgspec.to_builtins(body), because=because)
    accept(context, heard.venue, (heard.text, text), (heard.message, message))
    return Answer(text, picks.items, message)


def _spoken(written: Recommendation, most: int) -> str:
    titles = "; ".join(written.titles[:most])
    return " ".join(filter(None, (one_line(written.text), f"{NAMES}{titles}." if titles else "")))
