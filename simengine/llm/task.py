"""What a method may ask a model for: a task's name, the template that asks for it, the format of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from simengine.llm.prompts import Slot
from simengine.llm.replies import choice, descriptions, ranking, reflection, selfintro

Slots = Mapping[str, Slot]
T = TypeVar("T")


@dataclass(frozen=True)
class Task(Generic[T]):
    """A task: ``name`` goes into the request, ``template`` to ``PromptBook.render``, the reply's text to ``read``.

    ``read(text, slots)`` takes the slots that the prompt was given, since a reply speaks of what was shown; it raises
    :class:`~simengine.llm.replies.Unreadable`.
    """

    name: str
    template: str
    read: Callable[[str, Slots], T]


def _texts(slots: Slots, name: str) -> tuple[str, ...]:
    value = slots[name]
    return (value,) if isinstance(value, str) else value


def _read_choice(text: str, slots: Slots) -> choice.Choice:
    return choice.read(text, _texts(slots, "titles"))


def _read_reflection(text: str, slots: Slots) -> str:
    return reflection.read(text, " ".join((*_texts(slots, "memory"), *_texts(slots, "options"))))


def _read_selfintro(text: str, slots: Slots) -> str:
    return selfintro.read(text, " ".join(_texts(slots, "memory")))


def _read_descriptions(text: str, slots: Slots) -> tuple[str, str]:
    first, second = _texts(slots, "options")
    return descriptions.read(text, (first, second))


def _read_ranking(text: str, slots: Slots) -> ranking.Ranking:
    return ranking.read(text, _texts(slots, "titles"))


CHOOSE = Task("choose", "choose", _read_choice)
RANK = Task("rank", "rank", _read_ranking)
# Whether the choice was right is told by the template alone; the task and the format of its reply are the same.
REFLECT_USER_RIGHT = Task("reflect.user", "reflect.user.right", _read_selfintro)
REFLECT_USER_WRONG = Task("reflect.user", "reflect.user.wrong", _read_selfintro)
REFLECT_ITEM_RIGHT = Task("reflect.item", "reflect.item.right", _read_descriptions)
REFLECT_ITEM_WRONG = Task("reflect.item", "reflect.item.wrong", _read_descriptions)
ANALYSE_USER = Task("analyse.user", "analyse.user", _read_reflection)
ANALYSE_ITEM = Task("analyse.item", "analyse.item", _read_reflection)
