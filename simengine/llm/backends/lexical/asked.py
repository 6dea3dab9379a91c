"""Sentences by which a request says outright what is to be done, for the lexical backend: written, and planned from.

Where a request has none of them, the planner goes by the plans that it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

LIST, QUESTION = "Here is my list: {}. Which of them shall I take?", "How often was {} taken so far?"
MORE, LIKE = "It should be taken more often than {}, please.", "It should be something like: {}, please."
LIKE_MOST = "I want something like the one that you sell most."
POPULAR = ("What is popular comes first.", "Begin with the popular ones.", "I trust in what is popular.")
CLOSEST = ("The closest come first.", "Begin with the closest.")
ANY_ORDER = ("The order does not matter.", "Never mind the order, it does not matter.")

_LISTED, _QUESTION, _MORE, _LIKE = (
    re.compile(re.escape(sentence).replace(r"\{\}", "(.+?)")) for sentence in (LIST, QUESTION, MORE, LIKE)
)
_POPULAR, _CLOSEST, _ANY_ORDER = re.compile(r"\bpopular\b"), re.compile(r"\bclosest\b"), re.compile("does not matter")
_OUTRIGHT = (_LISTED, _QUESTION, _MORE, _LIKE, re.compile(re.escape(LIKE_MOST)), _POPULAR, _CLOSEST, _ANY_ORDER)


def joined(titles: Sequence[str]) -> str:
    """Titles as the sentences hold them."""
    return "; ".join(titles)


def without_titles(text: str) -> str:
    """A text without the sentences that name items, since a title says nothing of what is looked for."""
    for pattern in (_LISTED, _QUESTION, _MORE, _LIKE):
        text = pattern.sub("", text)
    return text


def steps(request: str, conditions: Sequence[str], liked: Sequence[str]) -> list[dict[str, Any]]:
    """The plan for what a request says outright; none where it says nothing of the kind.

    ``conditions`` in SQL, and titles that are ``liked``, are what else is known of the user's wishes.
    """
    if not any(pattern.search(request) for pattern in _OUTRIGHT):
        return []
    made: list[dict[str, Any]] = []
    stored = _titles(_LISTED, request)
    if stored:
        made.append(_step("store", titles=stored))
    wanted = list(conditions)
    made += [
        _step("look_up", sql=f"SELECT title, visits FROM items WHERE title = {_quoted(title)}")
        for title in _titles(_QUESTION, request)
    ]
    for title in _titles(_MORE, request):
        made.append(_step("look_up", sql=f"SELECT visits FROM items WHERE title = {_quoted(title)}"))
        wanted.append(f"visits > ${len(made)}.visits")
    alike = _titles(_LIKE, request)
    if LIKE_MOST in request:
        made.append(_step("look_up", sql="SELECT title FROM items ORDER BY visits DESC, id LIMIT 1"))
        alike.append(f"${len(made)}.title")
    if wanted:
        made.append(_step("hard_filter", sql=f"SELECT id FROM candidates WHERE {' AND '.join(wanted)}"))
    if alike:
        made.append(_step("soft_filter", titles=alike))
    ranking = _ranking(request, liked)
    made += [_step("rank", **ranking)] if ranking else []
    answered = [step["tool"] for step in made] == ["look_up"]
    return made if answered else [*made, _step("fetch", n=5)]


def _ranking(request: str, liked: Sequence[str]) -> Mapping[str, Any]:
    if _ANY_ORDER.search(request):
        return {}
    if liked:
        return {"by": "preference", "liked": list(liked)}
    if _CLOSEST.search(request):
        return {"by": "similarity"}
    return {"by": "popularity"} if _POPULAR.search(request) else {}


def _step(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool": tool, "input": given}


def _titles(pattern: re.Pattern[str], request: str) -> list[str]:
    found = pattern.search(request)
    return [title.strip() for title in found[1].split(";")] if found else []


def _quoted(title: str) -> str:
    return "'" + title.replace("'", "''") + "'"
