"""What readings of a recommender's turns have in common: whom they compare, and what they count in messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from simengine.runlog import MessageLine

AGENT, RANDOM, POPULARITY = "interec", "random", "popularity"
"""The recommender of the run, whichever it is, and the two that talk to nobody."""
IN_VAIN = ("invented", "ambiguous", "repeated", "outside")
"""Why a title that a model named stands for no item."""

Body: TypeAlias = dict[str, Any]


def bodies(messages: Iterable[MessageLine], kind: str) -> list[Body]:
    """What the messages of one kind hold."""
    return [message.body for message in messages if message.kind == kind]


def tool_errors(plans: Iterable[Body]) -> Counter[str]:
    """The errors of the tools that plans have used, by their codes."""
    return Counter(work["code"] for plan in plans for work in plan["work"] if work["code"])


def verdicts(judged: Iterable[Body], units: Iterable[tuple[str, str]]) -> Counter[str]:
    """What a critic has said; a verdict that could not be read is a unit that failed."""
    said = Counter("accepted" if verdict["accepted"] else "rejected" for verdict in judged)
    unread = sum(unit.startswith("critic/") and outcome != "ok" for unit, outcome in units)
    return said + Counter({"unreadable": unread})


def in_vain(replies: Sequence[Body]) -> Counter[str]:
    """The titles that stand for no item, by why."""
    return Counter({why: count for why in IN_VAIN if (count := sum(len(reply.get(why, ())) for reply in replies))})


def added(counters: Iterable[Counter[str]]) -> Counter[str]:
    """All of them together."""
    return sum(counters, Counter[str]())


def told(counts: Mapping[str, int]) -> str:
    """Counts as a note tells them."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
