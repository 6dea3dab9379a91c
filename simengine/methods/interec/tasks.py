"""What is asked of a model in a talk: the user's words, a plan or a step of one, the reply, the critic's verdict."""

from __future__ import annotations

import msgspec

from simengine.llm.prompts import Slot
from simengine.llm.replies import Unreadable, decision, dialogue, message, talk
from simengine.llm.replies.clean import first_words
from simengine.llm.replies.objects import JsonForm
from simengine.llm.task import Json, Slots, Task
from simengine.methods.interec import profile, reply
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.plan import Plan
from simengine.methods.interec.profile import Profile


class Planned(msgspec.Struct, frozen=True):
    """What a planner's reply came to: a plan, or why the plan that it holds is not to be carried out."""

    plan: Plan
    profile: Profile
    text: str
    fault: Fault | None = None


def read_planned(text: str, slots: Slots) -> Planned:
    """The plan and the profile. Raises :class:`Unreadable` where there is no plan at all."""
    found = reply.scanned(text)
    told = profile.profile_of(found)
    try:
        return Planned(reply.plan_of(found), told, text)
    except Fault as fault:
        return Planned(Plan(), told, text, fault)


TASTES = JsonForm({"like": ["..."], "dislike": ["..."]})
"""What a talk has told of a user's tastes."""


def read_tastes(text: str, slots: Slots) -> Profile:
    """The tastes as a profile. Raises :class:`Unreadable`, with ``incomplete`` where there is no object of the form."""
    fields = TASTES.read(text)
    if fields is None:
        raise Unreadable("incomplete", f"there is no JSON object in {first_words(text)}")
    return profile.Profile(*(tuple(fields.get(name, ())) for name in TASTES.fields))


def prompt_text(slots: Slots) -> str:
    """All that a prompt shows, as one text."""
    return " ".join(text for slot in slots.values() for text in _texts(slot))


def _texts(slot: Slot) -> tuple[str, ...]:
    return (slot,) if isinstance(slot, str) else slot


PLAN = Task("converse.plan", "interec.plan", read_planned, Json(reply.FORM, read_planned))
STEP = Task("converse.step", "interec.step", read_planned, Json(reply.FORM, read_planned))
REPLY = Task(
    "converse.reply",
    "interec.reply",
    lambda text, slots: message.read(text),
    Json(message.JSON, lambda text, slots: message.read_json(text)),
)
CRITIC = Task(
    "converse.critic",
    "interec.critic",
    lambda text, slots: decision.read(text, prompt_text(slots)),
    Json(decision.JSON, lambda text, slots: decision.read_json(text, prompt_text(slots))),
)
USER = Task(
    "converse.user",
    "interec.user",
    lambda text, slots: talk.read(text, prompt_text(slots), _texts(slots["target"])),
    Json(talk.JSON, lambda text, slots: talk.read_json(text, prompt_text(slots), _texts(slots["target"]))),
)
DISTIL = Task("converse.distil", "interec.distil", read_tastes, Json(TASTES, read_tastes))
DAY = Task(
    "converse.day",
    "interec.day",
    lambda text, slots: dialogue.read(text, prompt_text(slots)),
    Json(dialogue.JSON, lambda text, slots: dialogue.read_json(text, prompt_text(slots))),
)
