"""How the lexical backend understands the one request of a one-turn evaluation: so many items, or an order of a list.

The planner ranks by what the user has enjoyed, or by popularity where he has told nothing, and fetches as many as were
asked for; a list is stored first. A bare model puts a list in order by the words that its titles have in common with
what the user has enjoyed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from simengine.llm.backends.lexical import text as lt

_COUNT = re.compile(r"\bName (\d+) \S.*, the best first\.\Z")
_LIST = re.compile(r"\bPut all \d+ of them in order, the best first[^\n]*:((?:\n- [^\n]+)+)\Z")


def listed(request: str) -> list[str]:
    """The titles that are to be put in order; none where none are."""
    found = _LIST.search(request)
    return [line.removeprefix("- ") for line in found[1].strip().splitlines()] if found else []


def without_list(request: str) -> str:
    """The request without these titles, which say nothing of what the user wants."""
    return _LIST.sub("", request)


def steps(request: str, liked: Sequence[str]) -> list[dict[str, Any]]:
    """The plan for such a request; none for any other."""
    titles, count = listed(request), _COUNT.search(request)
    if not titles and count is None:
        return []
    made: list[dict[str, Any]] = [{"tool": "store", "input": {"titles": titles}}] if titles else []
    by = {"by": "preference", "liked": list(liked)} if liked else {"by": "popularity"}
    wanted = int(count[1]) if count else len(titles)
    return [*made, {"tool": "rank", "input": by}, {"tool": "fetch", "input": {"n": wanted}}]


def in_order(titles: Sequence[str], liked: Sequence[str]) -> list[str]:
    """The titles, first those that have most words in common with the liked ones; as they were where as many."""
    words = {word for title in liked for word in lt.terms(title)}
    return sorted(titles, key=lambda title: -len(words.intersection(lt.terms(title))))
