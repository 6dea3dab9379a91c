"""How the lexical backend looks for an item in a talk: it says what it has had, and what it wants bit by bit.

In a session it says first what it has had last and one thing that it looks for, then one more in each turn. In a long
chat each message does what it is for: tells of more that it has had, of one more thing that it wants, or of the
weather. It also writes whole talks, in which it tells of what it has had, and the other listens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simengine.llm.backends.lexical.converse import ALSO, HAD, USER, WANT
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies import dialogue, talk

OLDEST = 3
"""How many of the things that it has had it names in one message; in a session those that it had last."""

LINES = 4
"""How many messages of its own it writes in a talk, at most."""

_CHAT = ("It has been raining here all day.", "I slept badly last night.", "My sister comes to see me tomorrow.")


def _user(shown: Shown) -> str:
    """One condition a turn; when all is told it says once that it is none of these, then goodbye."""
    own, left = _told(shown)
    intent = shown.text("intent").partition(":")[0]
    if intent:
        return talk.write(_long(shown, intent, own, left), False, json=shown.json)
    if not own:
        had = shown.texts("history")[-OLDEST:]
        parts = [_had(had)] if had else []
        parts += [f"{WANT}{left[0]}."] if left else []
        return talk.write(" ".join(parts) or "What do you recommend?", False, json=shown.json)
    if left:
        return talk.write(f"None of these, thank you. {ALSO}{left[0]}.", False, json=shown.json)
    if len(own) <= len(shown.texts("conditions")):
        return talk.write("None of these, thank you. What else is there?", False, json=shown.json)
    return talk.write("It is not among them. Goodbye!", True, json=shown.json)


def _told(shown: Shown) -> tuple[list[str], list[str]]:
    """What was said so far, and the conditions that are not yet told."""
    own = [line for line in shown.texts("dialogue") if line.startswith(USER)]
    return own, [it for it in shown.texts("conditions") if not any(it in line for line in own)]


def _long(shown: Shown, intent: str, own: list[str], left: list[str]) -> str:
    """A message of a long chat."""
    if intent == "chat":
        return _CHAT[len(own) % len(_CHAT)]
    if intent == "share":
        new = [it for it in shown.texts("history") if not any(it in line for line in own)]
        return _had(new[:OLDEST]) if new else "You know all that I have had."
    if not left:
        return "What else is there?"
    return f"{ALSO if any(WANT in line for line in own) else WANT}{left[0]}."


def _had(titles: tuple[str, ...] | list[str]) -> str:
    return f"{HAD}{'; '.join(titles)}."


def _day(shown: Shown) -> str:
    """It tells of what it has had, a few things in a message; the other listens."""
    titles = shown.texts("history")
    told = [titles[at : at + OLDEST] for at in range(0, len(titles), OLDEST)]
    return dialogue.write([(_had(some), "That is good to know.") for some in told], json=shown.json)


def _dialogue(shown: Shown) -> str:
    """The same of the things that it has had last; the oldest of these come first."""
    titles = shown.texts("history")[-LINES * OLDEST :]
    told = [titles[at : at + OLDEST] for at in range(0, len(titles), OLDEST)]
    talk_of = [(_had(some), "That is good to know.") for some in told]
    return dialogue.write(talk_of or [("I have had nothing so far.", "Then we begin anew.")], json=shown.json)


ANSWERS: Mapping[str, Callable[[Shown], str]] = {
    "converse.user": _user,
    "converse.day": _day,
    "converse.dialogue": _dialogue,
}
"""The tasks of a user."""
