"""What the data tell of each item in plain words: as a text to be found by, and as a line to be shown to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simengine.data import Dataset, Item
from simengine.methods.interec import columns
from simengine.methods.interec.table import ItemTable

NAMES = ("brand", "developer", "publisher")
"""The columns that name who made an item."""

_SHOWN = 300  # characters of a description that a line shows


def texts(dataset: Dataset) -> tuple[str, ...]:
    """For each item, in the order of the data set, the words by which it may be found: title, tags, makers, prose."""
    items = list(dataset.items.values())
    return tuple(
        ". ".join((item.title, *tags, *_names(item), columns.text(item, "description") or ""))
        for item, tags in zip(items, columns.tags(items), strict=True)
    )


def lines(dataset: Dataset, table: ItemTable) -> tuple[str, ...]:
    """For each item, in the order of the data set, all that is known of it but its title, between semicolons."""
    items = list(dataset.items.values())
    told = zip(items, columns.tags(items), table.visits, strict=True)
    return tuple("; ".join(_attributes(item, tags, visits)) for item, tags, visits in told)


def unlike(dataset: Dataset, table: ItemTable) -> tuple[str, ...]:
    """For each item its title: the whole one, with its year, where several are called alike without."""
    counts = Counter(table.titles)
    known = zip(table.titles, dataset.items.values(), strict=True)
    return tuple(plain if counts[plain] == 1 else item.title for plain, item in known)


def _attributes(item: Item, tags: Sequence[str], visits: int) -> Iterator[str]:
    yield from tags
    if date := columns.release_date(item):
        yield f"came out in {date}"
    if (price := columns.number(item, "price")) is not None:
        yield f"costs {price:g}"
    yield from _names(item)
    yield f"taken {visits} times so far"
    if prose := columns.text(item, "description"):
        yield prose if len(prose) <= _SHOWN else prose[:_SHOWN].rstrip() + "..."


def _names(item: Item) -> Iterator[str]:
    yield from (f"{name} {text}" for name in NAMES if (text := columns.text(item, name)))
