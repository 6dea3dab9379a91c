"""What is asked of a model in a talk: the user's words, a plan or a step of one, the reply, the critic's verdict."""

from __future__ import annotations

import re

import msgspec

from simengine.llm.prompts import Slot
from simengine.llm.replies import Unreadable, decision, talk
from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.task import Json, Slots, Task
from simengine.methods.interec import profile, reply
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.plan import Plan
from simengine.methods.interec.profile import Profile

_MESSAGE = re.compile(r"^\W*(?:(?:my|the)\s+)?(?:message|reply|assistant|recommender)\s*[:：]", re.I | re.M)


class Planned(msgspec.Struct, frozen=True):
    """What a planner's reply came to: a plan, or why the plan that it holds is not to be carried out."""

    plan: Plan
    profile: Profile
    text: str
    fault: Fault | None = None


def read_planned(text: str, slots: Slots) -> Planned:
    """The plan and the profile. Raises :class:`Unreadable` where there is no plan at all."""
    told = profile.read(text)
    try:
        plan = reply.read(text)
        # JSON can spell lone surrogates, which no file can hold
        thought = one_line(plan.thought.encode("utf-8", "replace").decode())
        return Planned(msgspec.structs.replace(plan, thought=thought), told, text)
    except Fault as fault:
        return Planned(Plan(), told, text, fault)


def write_message(text: str) -> str:
    """A reply to the user in the format asked for."""
    return f"Message: {one_line(text)}"


def read_message(text: str, slots: Slots) -> str:
    """A reply to the user.

    An assistant may well speak as one, and be sorry: these are no lapses here. Raises :class:`Unreadable`
    (``no_heading``, ``repeated``, ``empty``).
    """
    answer = clean(text)
    found = _MESSAGE.search(answer)
    if found is None:
        raise Unreadable("no_heading", f"the heading is missing; the reply begins {first_words(answer)}")
    said = unwrap(answer[found.end() :])
    if _MESSAGE.search(said):
        raise Unreadable("repeated", "the reply holds more than one message")
    if not said:
        raise Unreadable("empty", "the reply holds no message")
    return said


def _all(slots: Slots) -> str:
    return " ".join(text for slot in slots.values() for text in _texts(slot))


def _texts(slot: Slot) -> tuple[str, ...]:
    return (slot,) if isinstance(slot, str) else slot


PLAN = Task("converse.plan", "interec.plan", read_planned)
STEP = Task("converse.step", "interec.step", read_planned)
REPLY = Task("converse.reply", "interec.reply", read_message)
CRITIC = Task(
    "converse.critic",
    "interec.critic",
    lambda text, slots: decision.read(text, _all(slots)),
    Json(decision.JSON, lambda text, slots: decision.read_json(text, _all(slots))),
)
USER = Task(
    "converse.user",
    "interec.user",
    lambda text, slots: talk.read(text, _all(slots), _texts(slots["target"])),
    Json(talk.JSON, lambda text, slots: talk.read_json(text, _all(slots), _texts(slots["target"]))),
)
