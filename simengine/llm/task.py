"""What a method may ask a model for: a task's name, the template that asks for it, the format of its reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from simengine.llm.prompts import Slot
from simengine.llm.replies import choice, decision, descriptions, ranking, reflection, selfintro, tags, talk
from simengine.llm.replies.headed import (
    ADVERTISEMENT,
    DESCRIPTION,
    GROUP_NAME,
    PREFERENCES,
    REVIEW_TEXT,
    SUGGESTIONS,
    Headed,
)
from simengine.llm.replies.objects import Form

Slots = Mapping[str, Slot]
T = TypeVar("T")
Read = Callable[[str, Slots], T]


@dataclass(frozen=True)
class Json(Generic[T]):
    """The JSON form of a reply: what a prompt asks for and a schema holds to, and how a reply is read then."""

    form: Form
    read: Read[T]


@dataclass(frozen=True)
class Task(Generic[T]):
    """A task: ``name`` goes into the request, ``template`` to ``PromptBook.render``, the reply's text to ``read``.

    ``read(text, slots)`` takes the slots that the prompt was given, since a reply speaks of what was shown; it raises
    :class:`~simengine.llm.replies.Unreadable`. ``json`` is the other form of the same reply, for ``llm.output: json``;
    a task without one is asked for as text. A task is a constant of its module: what a scenario says of tasks is held
    against those that exist when it is checked.
    """

    name: str
    template: str
    read: Read[T]
    json: Json[T] | None = None

    def __post_init__(self) -> None:
        _ASKED_BY.setdefault(self.template, {})[self.name] = None


_ASKED_BY: dict[str, dict[str, None]] = {}


def tasks_of(templates: Iterable[str]) -> list[str]:
    """The names of the tasks that these templates ask for, in order."""
    return sorted({name for template in templates for name in _ASKED_BY.get(template, ())})


def _texts(slots: Slots, name: str) -> tuple[str, ...]:
    value = slots[name]
    return (value,) if isinstance(value, str) else value


def _titles(slots: Slots) -> tuple[str, ...]:
    return _texts(slots, "titles")


def _memory(slots: Slots) -> str:
    return " ".join(_texts(slots, "memory"))


def _pair(slots: Slots) -> tuple[str, str]:
    first, second = _texts(slots, "options")
    return first, second


def _shown(slots: Slots) -> str:
    return " ".join((*_texts(slots, "memory"), *_texts(slots, "options")))


def _asked(slots: Slots) -> str:
    return " ".join((*_texts(slots, "memory"), *_texts(slots, "preference")))


def _others(slots: Slots) -> str:
    return " ".join(_texts(slots, "others"))


def _layers(slots: Slots) -> str:
    return " ".join(text for name in ("memory", "separate", "extracted") for text in _texts(slots, name))


def _tags(slots: Slots) -> str:
    return " ".join(_texts(slots, "tags"))


S = TypeVar("S")


def _of(read: Callable[[str, S], T], shown: Callable[[Slots], S]) -> Read[T]:
    """A format's reader, given what it needs of the slots."""
    return lambda text, slots: read(text, shown(slots))


def _headed(kind: Headed, shown: Callable[[Slots], str] = _memory) -> tuple[Read[str], Json[str]]:
    return _of(kind.read, shown), Json(kind.json, _of(kind.read_json, shown))


_CHOICE = _of(choice.read, _titles), Json(choice.JSON, _of(choice.read_json, _titles))
_RANKING = _of(ranking.read, _titles), Json(ranking.JSON, _of(ranking.read_json, _titles))
_SELF_INTRODUCTION = _of(selfintro.read, _memory), Json(selfintro.JSON, _of(selfintro.read_json, _memory))
_DESCRIPTIONS = _of(descriptions.read, _pair), Json(descriptions.JSON, _of(descriptions.read_json, _pair))
_REFLECTION = _of(reflection.read, _shown), Json(reflection.JSON, _of(reflection.read_json, _shown))
_DECISION = _of(decision.read, _shown), Json(decision.JSON, _of(decision.read_json, _shown))
_TURN = (
    lambda text, slots: talk.read(text, _shown(slots), _titles(slots)),
    Json(talk.JSON, lambda text, slots: talk.read_json(text, _shown(slots), _titles(slots))),
)

CHOOSE = Task("choose", "choose", *_CHOICE)
RANK = Task("rank", "rank", *_RANKING)
RANK_BY_TITLES = Task("rank", "rank.titles", *_RANKING)
# Whether the choice was right is told by the template alone; the task and the format of its reply are the same.
REFLECT_USER_RIGHT = Task("reflect.user", "reflect.user.right", *_SELF_INTRODUCTION)
REFLECT_USER_WRONG = Task("reflect.user", "reflect.user.wrong", *_SELF_INTRODUCTION)
REFLECT_ITEM_RIGHT = Task("reflect.item", "reflect.item.right", *_DESCRIPTIONS)
REFLECT_ITEM_WRONG = Task("reflect.item", "reflect.item.wrong", *_DESCRIPTIONS)
REFLECT_USER_TOLD = Task("reflect.user", "reflect.user.told", *_SELF_INTRODUCTION)
REFLECT_ITEM_TOLD = Task("reflect.item", "reflect.item.told", *_DESCRIPTIONS)
ANALYSE_USER = Task("analyse.user", "analyse.user", *_REFLECTION)
ANALYSE_ITEM = Task("analyse.item", "analyse.item", *_REFLECTION)
COLD_START_ADAPT = Task("cold_start.adapt", "cold_start.adapt", *_headed(DESCRIPTION))
ADVERTISING_DRAFT = Task("advertising.draft", "advertising.draft", *_headed(ADVERTISEMENT))
ADVERTISING_CRITIQUE = Task("advertising.critique", "advertising.critique", *_headed(SUGGESTIONS))
ADVERTISING_REFINE = Task("advertising.refine", "advertising.refine", *_headed(ADVERTISEMENT))
ADVERTISING_JUDGE = Task("advertising.judge", "advertising.judge", *_CHOICE)
PROBE = Task("probe", "probe", _of(decision.read, _asked), Json(decision.JSON, _of(decision.read_json, _asked)))
DECIDE = Task("decide", "decide", *_DECISION)
DECIDE_REVIEWED = Task("decide", "decide.reviewed", *_DECISION)
DECIDE_DISCUSSED = Task("decide", "decide.discussed", *_DECISION)
REVIEW = Task("review", "review", *_headed(REVIEW_TEXT))
TALK_BUYER = Task("talk", "talk.buyer", *_TURN)
TALK_OWNER = Task("talk", "talk.owner", *_TURN)
# What an agent of AgentCF++ sees differs from AgentCF's by the template alone.
DOMAIN_CHOOSE = Task("choose", "domain.choose", *_CHOICE)
DOMAIN_RANK = Task("rank", "domain.rank", *_RANKING)
DOMAIN_REFLECT_USER = Task("reflect.user", "domain.reflect.user", *_SELF_INTRODUCTION)
DOMAIN_REFLECT_ITEM = Task("reflect.item", "domain.reflect.item", *_DESCRIPTIONS)
FUSE_EXTRACT = Task("fuse.extract", "fuse.extract", *_headed(PREFERENCES, _others))
FUSE_MERGE = Task(
    "fuse.merge", "fuse.merge", _of(selfintro.read, _layers), Json(selfintro.JSON, _of(selfintro.read_json, _layers))
)
GROUP_TAGS = Task("group.tags", "group.tags", _of(tags.read, _memory), Json(tags.JSON, _of(tags.read_json, _memory)))
GROUP_NAMING = Task("group.name", "group.name", *_headed(GROUP_NAME, _tags))
