"""The choice format: ``Chosen <noun>: <title>``, then ``Explanation: ...`` on a new line; or both in JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm, text_of
from simengine.llm.replies.titles import Match, TitleIndex
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(r"^\W*(?:my\s+)?(?:chosen\b|choice\b)[^:：\n]{0,40}[:：]", re.IGNORECASE | re.MULTILINE)
_EXPLANATION = re.compile(
    r"^\W*(?:my\s+)?(?:explanation|reason(?:ing)?|rationale)\s*[:：]", re.IGNORECASE | re.MULTILINE
)
# ``2. Title``, ``(2) Title``, ``#2: Title``, ``Option 2: Title``, or the number alone.
_NUMBER = re.compile(r"\A(?:(?:option|candidate|number|no\.)\s*)?[(#]?(\d{1,2})(?:[.):](?=\s|\Z)|\Z)\s*", re.IGNORECASE)

JSON = JsonForm(
    {"chosen": "<title>", "explanation": "<your reasons>"},
    "with the full title as it is shown",
    'Should both titles be the same, put the number of the one you take before it, as in "1. <title>".',
)


@dataclass(frozen=True)
class Choice:
    """Which option was taken (position in the order shown, from 0) and why (may be empty)."""

    index: int
    explanation: str


def write(noun: str, titles: Sequence[str], index: int, explanation: str, *, json: bool = False) -> str:
    """The reply that takes option ``index``; its number stands before the title where the titles are not enough."""
    title, why = one_line(titles[index]), one_line(explanation)
    told = TitleIndex(titles).exact(title).index == index
    named = title if told else f"{index + 1}. {title}"
    return JSON.write(named, why) if json else f"Chosen {noun}: {named}\nExplanation: {why}"


def read(text: str, titles: Sequence[str]) -> Choice:
    """The option that a reply takes.

    The title stands after the heading, or, where the heading was left out, in the text before the explanation. Equal
    titles are told apart only by the option's number before the title. Raises :class:`Unreadable`: ``both`` where the
    answer names several different titles, ``ambiguous`` where a name fits several options, ``unmatched``, or a lapse.
    """
    answer = clean(text)
    explained = _EXPLANATION.search(answer)
    before = answer[: explained.start()] if explained else answer
    why = answer[explained.end() :].strip() if explained else ""
    named = [_first_line(before[heading.end() :]) for heading in _HEADING.finditer(before)] or [before.strip()]
    picks = {_pick(line, answer, titles) for line in named}
    if len(picks) > 1:
        raise Unreadable("both", f"the reply chose more than once: {first_words('; '.join(named))}")
    return Choice(picks.pop(), unwrap(why))


def read_json(text: str, titles: Sequence[str]) -> Choice:
    """The option that a reply in JSON takes; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, titles)
    title, why = text_of(fields, "chosen"), str(fields.get("explanation", ""))
    return Choice(_pick(title, f"{title}\n{why}", titles), unwrap(why))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _pick(line: str, answer: str, titles: Sequence[str]) -> int:
    line = unwrap(line)
    index = TitleIndex(titles)
    match = index.exact(line)  # a title such as ``25`` or ``1. Outside`` is a title before it is a number
    numbered = _NUMBER.match(line)
    if match.index is None and numbered:
        rest, number = unwrap(line[numbered.end() :]), int(numbered[1]) - 1
        match = index.match(rest) if rest else Match(None, "ambiguous", tuple(range(len(titles))))
        if number in match.named and match.reason != "both":
            return number
        if match.index is not None:
            raise Unreadable("ambiguous", f"number and title are of two options: {first_words(line)}")
    elif match.index is None:
        match = index.match(line)
    if match.index is not None:
        return match.index
    if match.reason == "both":
        raise Unreadable("both", f"the reply names several options: {first_words(line)}")
    if match.reason == "ambiguous":
        raise Unreadable("ambiguous", f"it is not clear which option is meant by {first_words(line)}")
    raise explain(answer, " ".join(titles), "unmatched", f"no option is called {first_words(line)}")
