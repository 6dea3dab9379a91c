"""The item table of a data set as an SQLite image in memory, and what a planner is told of its columns."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import msgspec
import numpy as np
from rapidfuzz import fuzz, process, utils

from simengine.data import Dataset
from simengine.methods.interec import columns as told
from simengine.methods.interec.columns import BAR, COLUMNS, Column, Kind, Value
from simengine.methods.interec.vocabulary import THRESHOLD, Titles, Vocabulary

SHOWN = 5
"""How many values of a column of tags or names are shown that are near a request, and how many others."""

_STRETCH = 5  # words of a request that are looked at together, at most
_TYPES: Mapping[Kind, str] = {"id": "INTEGER PRIMARY KEY", "title": "TEXT NOT NULL", "number": "REAL"}
_TEXTS = ("brand", "developer", "publisher", "description")
_LISTED: frozenset[Kind] = frozenset({"tags", "text"})


class Described(msgspec.Struct, frozen=True):
    """A column as a planner is shown it.

    ``low`` and ``high`` are its range where it is a number or a date. Of tags and names ``near`` are values that are
    like some words of the request, ``others`` the most frequent ones beside, ``distinct`` how many there are.
    """

    name: str
    kind: Kind
    meaning: str
    low: Value = None
    high: Value = None
    distinct: int = 0
    near: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.name} ({self.kind}): {self.meaning}"]
        if self.low is not None:
            parts.append(f"from {self.low} to {self.high}")
        if self.near:
            parts.append(f"near your request: {', '.join(self.near)}")
        if self.others:
            parts.append(f"{'others' if self.near else 'as'}: {', '.join(self.others)}")
        return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class ItemTable:
    """The items of a data set under dense ids from 1, in the order of the data set.

    ``items`` and ``titles`` are ids of the data set and titles (the item of dense id ``n`` stands at ``n - 1``),
    ``visits`` the numbers of its interactions in the training part. ``columns`` are the columns that have values,
    ``image`` is the SQLite database with the one table ``items``. ``words`` holds the values of columns of tags and
    names, the most frequent first, with ``vocabularies`` to find them by; ``by_title`` finds titles.
    """

    columns: tuple[Column, ...]
    items: tuple[str, ...]
    titles: tuple[str, ...]
    visits: tuple[int, ...]
    image: bytes
    words: Mapping[str, tuple[str, ...]]
    vocabularies: Mapping[str, Vocabulary]
    by_title: Titles
    ranges: Mapping[str, tuple[Value, Value]]
    longest: int

    def __len__(self) -> int:
        return len(self.items)

    def kind(self, column: str) -> Kind | None:
        """The kind of a column by its name, whatever the case; none where there is no such column."""
        return next((it.kind for it in self.columns if it.name == column.lower()), None)

    def describe(self, request: str) -> tuple[Described, ...]:
        """The columns, with values that may matter to a request."""
        return tuple(self._described(column, request) for column in self.columns)

    def _described(self, column: Column, request: str) -> Described:
        low, high = self.ranges.get(column.name, (None, None))
        words = self.words.get(column.name, ())
        near = _near(request, words)
        others = tuple(word for word in words if word not in near)[:SHOWN]
        return Described(column.name, column.kind, column.meaning, low, high, len(words), near, others)


def build(dataset: Dataset) -> ItemTable:
    """The item table of a data set. Visits are counted in the training part alone."""
    items = list(dataset.items.values())
    dates = [told.release_date(item) for item in items]
    tags = told.tags(items)
    visits = _visits(dataset)
    drawn: dict[str, Sequence[Value]] = {
        "id": range(1, len(items) + 1),
        "title": [told.plain_title(item, (date or "")[:4]) for item, date in zip(items, dates, strict=True)],
        "release_date": dates,
        "tags": list(map(told.joined, tags)),
        "price": [told.number(item, "price") for item in items],
        **{name: [told.text(item, name) for item in items] for name in _TEXTS},
        "domain": [item.domain or None for item in items],
        "visits": visits,
    }
    columns = tuple(column for column in COLUMNS if any(value is not None for value in drawn[column.name]))
    words = {column.name: _words(column, drawn[column.name]) for column in columns if column.kind in _LISTED}
    rows = list(zip(*(drawn[column.name] for column in columns), strict=True))
    return ItemTable(
        columns=columns,
        items=tuple(item.id for item in items),
        titles=tuple(map(str, drawn["title"])),
        visits=tuple(visits),
        image=_image(columns, rows),
        words=words,
        vocabularies={name: Vocabulary(values) for name, values in words.items()},
        by_title=Titles([item.title for item in items]),
        ranges={it.name: _range(drawn[it.name]) for it in columns if it.kind in ("number", "date")},
        longest=max(sum(len(str(value).encode()) for value in row) for row in rows),
    )


def _visits(dataset: Dataset) -> list[int]:
    part = dataset.training_part
    counts = dict(zip(part.items, np.bincount(part.item, minlength=len(part.items)).tolist(), strict=True))
    return [counts.get(item, 0) for item in dataset.items]


def _words(column: Column, values: Sequence[Value]) -> tuple[str, ...]:
    """The different values of a column, or its tags: the most frequent first, then by name."""
    texts = [str(value) for value in values if value is not None]
    counts = Counter(word for it in texts for word in (it.strip(BAR).split(BAR) if column.kind == "tags" else [it]))
    return tuple(sorted(counts, key=lambda word: (-counts[word], word)))


def _range(values: Sequence[Value]) -> tuple[Value, Value]:
    known = [value for value in values if value is not None]
    return min(known), max(known)


def _image(columns: Sequence[Column], rows: Sequence[Sequence[Value]]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        spec = ", ".join(f"{it.name} {_column_type(it)}" for it in columns)
        connection.execute(f"CREATE TABLE items ({spec})")
        connection.executemany(f"INSERT INTO items VALUES ({', '.join('?' * len(columns))})", rows)
        connection.commit()
        return connection.serialize()


def _column_type(column: Column) -> str:
    return "INTEGER" if column.name == "visits" else _TYPES.get(column.kind, "TEXT")


def _near(request: str, words: Sequence[str]) -> tuple[str, ...]:
    """The values that are like some words of the request, the likest first."""
    asked = utils.default_process(request).split()
    stretches = [
        " ".join(asked[at : at + width]) for width in range(1, _STRETCH + 1) for at in range(len(asked) - width + 1)
    ]
    if not stretches or not words:
        return ()
    scores = process.cdist(words, stretches, scorer=fuzz.ratio, processor=utils.default_process).max(axis=1)
    best = np.argsort(-scores, kind="stable")[:SHOWN]
    return tuple(words[at] for at in best.tolist() if scores[at] >= THRESHOLD)
