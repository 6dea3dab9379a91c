"""What an item table can tell of an item: the columns, and how a data set's texts become their values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from simengine.data import Item

Kind: TypeAlias = Literal["id", "title", "date", "tags", "number", "text", "prose"]
Value: TypeAlias = int | float | str | None

LONGEST = 1000
"""Characters that are kept of a text other than a title."""

BAR = "|"

_DATES = ("%Y-%m-%d", "%m/%d/%Y", "%Y/%m/%d", "%b %d, %Y", "%B %d, %Y", "%d %b, %Y", "%d %B %Y")
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_TITLE_YEAR = re.compile(r"\s*\(((?:1[89]|20)\d\d)\)\s*\Z")
_SEPARATOR = re.compile(r"\s*[;|]\s*")


class Column(msgspec.Struct, frozen=True):
    """One column of the item table. ``other_names`` are what data sets and people call it as well."""

    name: str
    kind: Kind
    meaning: str
    other_names: tuple[str, ...] = ()


COLUMNS = (
    Column("id", "id", "the number of the item", ("item_id",)),
    Column("title", "title", "the name of the item", ("name", "item_title", "movie_title")),
    Column(
        "release_date",
        "date",
        "when it came out: a text as '2015-03-27', or '2015' where only the year is known",
        ("release_year", "year", "date", "released"),
    ),
    Column(
        "tags",
        "tags",
        "what it is like: several tags between bars, as '|Action|Indie|'; ask for one by tags LIKE '%|Action|%'",
        ("tag", "category", "categories", "genre", "genres", "class"),
    ),
    Column("price", "number", "what it costs", ("price_usd", "cost")),
    Column("brand", "text", "who makes or sells it", ("store", "manufacturer")),
    Column("developer", "text", "who developed it", ("developers",)),
    Column("publisher", "text", "who published it", ("publishers",)),
    Column("description", "prose", "what it says of itself", ("about", "summary")),
    Column("domain", "text", "the part of the catalogue that it belongs to"),
    Column("visits", "number", "how often it was taken: its popularity", ("visit_count", "view_count", "popularity")),
)
"""All columns, in their order. Those for which no item of a data set has a value are left out of its table."""


def plain_title(item: Item, year: str) -> str:
    """The title without a year in brackets behind it, where that is the year that the item came out."""
    found = _TITLE_YEAR.search(item.title)
    return item.title[: found.start()] if found and found.start() and found[1] == year else item.title


def release_date(item: Item) -> str | None:
    """The date as ``YYYY-MM-DD``, ``YYYY-MM`` or ``YYYY``; where no column tells it, the year behind the title."""
    told = _told(item, "release_date")
    for forms, shape in ((_DATES, "%Y-%m-%d"), (_MONTHS, "%Y-%m")):
        for form in forms:
            try:
                return datetime.strptime(told, form).strftime(shape)
            except ValueError:
                continue
    if _YEAR.fullmatch(told):
        return told
    in_title = _TITLE_YEAR.search(item.title)
    return in_title[1] if in_title else None


def number(item: Item, name: str) -> float | None:
    """A column's number; none where it is missing, negative or no number."""
    try:
        value = float(_told(item, name) or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def text(item: Item, name: str) -> str | None:
    """A column's text, its first ``LONGEST`` characters; none where it is empty."""
    return _told(item, name)[:LONGEST].rstrip() or None


def tags(items: Sequence[Item]) -> list[tuple[str, ...]]:
    """The tags of each item: its category and what it has in columns of tags, each tag once.

    They are separated by semicolons or bars. Where a column has neither in any item, its words are the tags if there
    are fewer different words than different texts, as in ``Action Sci-Fi``; else a text is one tag.
    """
    names = [column for column in COLUMNS if column.kind == "tags"]
    columns = [[item.category for item in items], *([_told(item, it.name) for item in items] for it in names)]
    parts = zip(*map(_parted, columns), strict=True)
    return [tuple(dict.fromkeys(tag for part in row for tag in part)) for row in parts]


def joined(tags_of_one: Iterable[str]) -> str | None:
    """Tags as the table holds them: between bars."""
    told = BAR.join(tags_of_one)
    return f"{BAR}{told}{BAR}" if told else None


def _parted(texts: Sequence[str]) -> list[list[str]]:
    separated = any(_SEPARATOR.search(it) for it in texts)
    words = {word for it in texts for word in it.split()}
    if not separated and len(words) < len(set(texts)):
        return [it.split() for it in texts]
    return [[tag for tag in _SEPARATOR.split(it.strip()) if tag] for it in texts]


def _told(item: Item, name: str) -> str:
    """What an item has under one of a column's names, whatever their case; empty where it has nothing."""
    column = next(it for it in COLUMNS if it.name == name)
    extra = {key.casefold(): value for key, value in item.extra.items()}
    return next((" ".join(extra[key].split()) for key in (name, *column.other_names) if extra.get(key)), "")
