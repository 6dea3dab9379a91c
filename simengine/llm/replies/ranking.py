"""The ranking format: ``Rank:``, then the candidates' titles, numbered, one a line, the best first; or a JSON list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simengine.llm.replies.clean import clean, first_words
from simengine.llm.replies.lapses import explain
from simengine.llm.replies.lines import one_line, unwrap
from simengine.llm.replies.objects import JsonForm
from simengine.llm.replies.titles import TitleIndex
from simengine.llm.replies.unreadable import Unreadable

_HEADING = re.compile(
    r"^\W*(?:my\s+|the\s+|final\s+)*rank(?:ing)?\b[^:：\n]{0,40}[:：][ \t]*", re.IGNORECASE | re.MULTILINE
)
_ITEM = re.compile(r"\A[ \t]*(?:[-*•][ \t]+)?(?:\(?(\d{1,3})[.):][ \t]+|[-*•][ \t]+)")

JSON = JsonForm(
    {"order": ["<title>", "<title>"]},
    "with the full titles as they are shown",
    "The list goes on to the last title.",
)


@dataclass(frozen=True)
class Ranking:
    """``order``: positions of the candidates named, best first; ``missing``: those not named, in the order shown."""

    order: tuple[int, ...]
    missing: tuple[int, ...]


def write(titles: Sequence[str], *, json: bool = False) -> str:
    """The reply in the format asked for; ``titles`` from best to worst."""
    if json:
        return JSON.write(list(map(one_line, titles)))
    return "\n".join(["Rank:", *(f"{place}. {one_line(title)}" for place, title in enumerate(titles, start=1))])


def read(text: str, titles: Sequence[str]) -> Ranking:
    """The order of the candidates that a reply gives.

    Items are whole lines: numbered ones where there are any, else all that follow the heading. A line that names no
    candidate, or not a single one, is passed over; a candidate named again keeps its first place. What is missing is
    listed and never put anywhere. Raises :class:`Unreadable`: ``incomplete`` where fewer than half of the candidates
    were read, or a lapse.
    """
    answer = clean(text)
    headed = _HEADING.search(answer)
    lines = (answer[headed.end() :] if headed else answer).splitlines()
    numbered = [line for line in lines if (item := _ITEM.match(line)) and item[1]]
    return _ranking(numbered or lines, answer, titles)


def read_json(text: str, titles: Sequence[str]) -> Ranking:
    """The order that a reply in JSON gives; one that holds no JSON is read as text. Raises like :func:`read`."""
    fields = JSON.read(text)
    if fields is None:
        return read(text, titles)
    if (named := fields.get("order")) is None:
        raise Unreadable("incomplete", "the JSON has no field order")
    return _ranking(named, "; ".join(named), titles)


def _ranking(lines: Iterable[str], answer: str, titles: Sequence[str]) -> Ranking:
    """The candidates that lines name, where they are enough; ``answer`` is what is quoted where they are not."""
    index = TitleIndex(titles)
    order: dict[int, None] = {}
    for line in lines:
        at = _named(line, index)
        if at is not None:
            order.setdefault(at)
    if 2 * len(order) < len(titles):
        detail = f"only {len(order)} of {len(titles)} candidates were found in {first_words(answer)}"
        raise explain(answer, " ".join(titles), "incomplete", detail)
    return Ranking(tuple(order), tuple(at for at in range(len(titles)) if at not in order))


def _named(line: str, index: TitleIndex) -> int | None:
    """The candidate on a line, without its list number; or with it, where the number belongs to the title."""
    item = _ITEM.match(line)
    at = index.match(unwrap(line[item.end() :])).index if item else None
    return index.match(unwrap(line)).index if at is None and line.strip() else at
