"""How the lexical backend invents requests, and talks that end with one, by sentences that its planner knows.

Which tools a request is to take it reads off the prompt, or off what the first example asks for; what it speaks of are
the items that it is shown. How the sentences run goes by the length of those items' titles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from simengine.llm.backends.lexical import asked, converse
from simengine.llm.backends.lexical.shown import Shown
from simengine.llm.replies.headed import REQUEST
from simengine.llm.request import Request

_CHAT = (
    "Thank you, that was all for today.",
    "Good morning! What a fine day it is.",
    "I am only looking around, thanks.",
    "You have been of great help, see you next week.",
    "Do not trouble yourself, I shall come back later.",
    "My train leaves in five minutes, so goodbye for now.",
    "Nice place that you have here.",
)
_OPENERS = ("", "Hello! ", "Good evening. ", "Me again. ", "I have a question. ", "Help me, please. ", "It is urgent. ")
_KINDS = (
    f"{converse.WANT}{{}}.",
    "Today I am in the mood for {}.",
    "Show me whatever you have of the kind {}.",
    "My friends talk of nothing but {}, and I want that as well.",
    "For a present I need something with {} in it.",
    "Not just anything: {} is what I am after.",
)
_SHAPES = (  # what an example asks for, by its words: the first that fits
    (re.compile(r"(?i)\b(?:thank|hello|how are you)"), ()),
    (re.compile(r"(?i)\blist\b"), ("store", "rank")),
    (re.compile(r"\b(?:before|after|than) [A-Z]"), ("look_up", "hard_filter", "rank")),
    (re.compile(r"(?i)\b(?:how much|how often|when did)\b"), ("look_up",)),
    (re.compile(r"\blike:? (?:it\b|[A-Z])"), ("soft_filter", "rank")),
    (re.compile(r"\benjoyed\b(?!.*looking for)"), ("rank",)),
    (re.compile(r""), ("hard_filter", "rank")),
)
_ASKS = ("What have you enjoyed so far?", "What can I find for you?", "Do tell me what you have in mind.")
_ENTERS = ("I am new here.", "It is me, from yesterday.", "My sister sent me.", "I do not know where to begin.")
_NO_TAG = re.compile(r"(?:came out in|costs|brand|developer|publisher) ")
_YEAR, _TAKEN = re.compile(r"came out in \d{4}"), re.compile(r"taken (\d+) times")


class _Wares(NamedTuple):
    """What the prompt shows of the shop: titles, tags, what else a filter can go by, and a number to choose by."""

    titles: tuple[str, ...]
    tags: tuple[str, ...]
    other: str
    number: int


def _like(shown: Shown) -> str:
    """A request of the kind of the first example."""
    example = shown.texts("examples")[0]
    tools = next(tools for pattern, tools in _SHAPES if pattern.search(example))
    return REQUEST.write(_request(tools, _wares(shown)), json=shown.json)


def _for(shown: Shown) -> str:
    """A request that takes the tools that the prompt names."""
    return REQUEST.write(_request(re.findall(r"\w+", shown.text("combination")), _wares(shown)), json=shown.json)


def _talk(shown: Shown) -> str:
    """A talk whose last message takes the tools of the first example, and the plan that the planner makes of it."""
    example, wares = json.loads(shown.texts("examples")[0]), _wares(shown)
    request = _request([step["tool"] for step in example["steps"]], wares)
    dialogue = [f"Recommender: {_chosen(_ASKS, wares.number)}"]
    if wares.number % 2:
        offer = f"Recommender: {converse.OFFER}{asked.joined(wares.titles[-2:])}. Does one of them suit you?"
        dialogue = [f"{converse.USER}{_chosen(_ENTERS, wares.number)}", offer]
    slots: dict[str, str | tuple[str, ...]] = {
        "dialogue": tuple(dialogue),
        "request": request,
        "columns": (f"tags (tags): what it is like; near your request: {', '.join(wares.tags)}",),
        "demonstrations": (f"Request: {example['dialogue'][-1]}\nPlan: {json.dumps(example)}",),
    }
    planned = converse.ANSWERS["converse.plan"](Shown(Request("converse.plan", "", (), slots=slots)))
    talk = {"dialogue": [*dialogue, f"{converse.USER}{request}"], **json.loads(planned)}
    return json.dumps(talk, ensure_ascii=False)


def _request(tools: Sequence[str], wares: _Wares) -> str:
    """What asks for just these tools, of those that are known, a sentence or two."""
    number, titles = wares.number, wares.titles
    known = [tool for tool in tools if tool in ("store", "look_up", "hard_filter", "soft_filter", "rank")]
    if not known:
        return _chosen(_CHAT, number)
    said = [asked.LIST.format(asked.joined(titles[:3]))] if "store" in known else []
    if known == ["look_up"]:
        said.append(asked.QUESTION.format(titles[0]))
    elif "look_up" in known:
        said.append(asked.LIKE_MOST if "soft_filter" in known else asked.MORE.format(titles[-1]))
    elif "hard_filter" in known:
        said.append(_kind(wares))
    if "soft_filter" in known and "look_up" not in known:
        said.append(asked.LIKE.format(titles[-1]))
    return _chosen(_OPENERS, number) + " ".join([*said, *_order(known, wares)])


def _order(known: Sequence[str], wares: _Wares) -> list[str]:
    """What the request says of the order: a taste, popularity or likeness; or that there is to be none."""
    if "rank" not in known:
        return [] if known == ["look_up"] else [_chosen(asked.ANY_ORDER, wares.number)]
    if "soft_filter" in known:
        return [_chosen(asked.CLOSEST, wares.number)]
    if wares.number % 3:
        return [_chosen(asked.POPULAR, wares.number)]
    return [f"{converse.HAD}{asked.joined(wares.titles[-2:])}."]


def _kind(wares: _Wares) -> str:
    """What is looked for: a tag, or something else that is known of the items."""
    if not wares.tags:
        return f"{converse.WANT}{wares.other}."
    return _chosen(_KINDS, wares.number // 2).format(_chosen(wares.tags, wares.number))


def _wares(shown: Shown) -> _Wares:
    titles, facts = shown.texts("titles"), "\n".join(shown.texts("facts"))
    parts = [part for line in facts.splitlines() for part in _TAKEN.split(line)[0].split("; ") if part]
    tags = dict.fromkeys(part for part in parts if not _NO_TAG.match(part))
    years, taken = _YEAR.findall(facts), sorted(map(int, _TAKEN.findall(facts)))
    other = years[0] if years else f"taken {taken[0]} to {taken[-1]} times"
    return _Wares(titles, tuple(tags), other, len(asked.joined(titles)))


def _chosen(texts: Sequence[str], number: int) -> str:
    return texts[number % len(texts)]


ANSWERS: Mapping[str, Callable[[Shown], str]] = {
    "demonstrate.input_first": _like,
    "demonstrate.output_first": _for,
    "demonstrate.dialogues": _talk,
}
"""The tasks of generating demonstrations."""
