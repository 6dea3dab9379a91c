"""How the lexical backend lets a new item learn from popular ones: it suits whom they suit, the nearest first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from simengine.llm.backends.lexical import text as lt
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies.headed import DESCRIPTION

LIMIT = 50
"""The word limit where the prompt states none."""


def _adapt(shown: Shown) -> str:
    """The new item's identity, and what the adopters of those that it has read like, by turns, their newest first."""
    about = lt.identity(shown.text("memory"))
    by_turns = zip_longest(*(option.gathered for option in shown.options), fillvalue="")
    gathered = lt.distinct(
        (phrase for turn in by_turns for phrase in turn), without=lt.own_phrases(about, lt.name(about))
    )
    return DESCRIPTION.write(lt.write_description(about, gathered, shown.limit(LIMIT)), json=shown.json)


ANSWERS: dict[str, Callable[[Shown], str]] = {"cold_start.adapt": _adapt}
