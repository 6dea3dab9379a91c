"""From the logs of a source to one spool of numbered rows: each review once, in order of users, in bounded memory.

Memory holds the ids of users and items, and so many rows at a time, whatever the length of the logs: the rows lie in
temporary files. What is decided for all of them, as the unit of time, is decided before one is given out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simengine.data.order import moment, natural_key
from simengine.data.sources.lines import Lines, Reading, Watch
from simengine.data.sources.units import Units
from simengine.errors import InputError

ROW = np.dtype(
    [("user", "<i4"), ("item", "<i4"), ("variant", "<i4"), ("rating", "<f8"), ("time", "<f8"), ("line", "<i8")]
)
"""A row of the spool: the numbers of user, item and variant of the item, rating (NaN: none), time, line in its file."""

Rows: TypeAlias = NDArray[Any]
"""Rows of the type :data:`ROW`."""

Raw: TypeAlias = tuple[int, str, str, str, float, "int | float"]
"""A row as read: line, user, item, variant (empty: none), rating (NaN: none), time."""

_BATCH = 8_192  # rows that are numbered at once
_PART = 1 << 17  # rows that are sorted at once; a user with more is sorted whole


@dataclass(frozen=True)
class LogFile:
    """One file of reviews: ``rows`` reads its lines, ``domain`` tells that of an item when it occurs first."""

    path: Path
    rows: Callable[[Lines], Iterator[Raw]]
    domain: Callable[[str], str] = lambda _: ""


class Names(dict[str, int]):
    """Ids and their numbers in order of first appearance. White space in an id becomes single blanks."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __missing__(self, text: str) -> int:
        name = " ".join(text.split())
        if name != text:
            number = self[name]
        else:
            number = len(self.names)
            self.names.append(name)
        self[text] = number
        return number

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """The number of each text."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))

    def ranks(self) -> NDArray[np.int32]:
        """For each number the place of its name in natural order of ids."""
        order = sorted(range(len(self.names)), key=lambda number: natural_key(self.names[number]))
        ranks = np.empty(len(order), np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        return ranks


@dataclass(eq=False)
class Gathered:
    """All rows of a source, in a temporary file, with the names that their numbers stand for.

    ``domains`` are those of the items, by number. ``repeats`` is known when all of :meth:`in_order` was given out.
    A context manager, which removes the file.
    """

    users: Names = field(default_factory=Names)
    items: Names = field(default_factory=Names)
    variants: Names = field(default_factory=Names)
    domains: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    unit: Literal["s", "ms"] = "s"
    span: tuple[float, float] = (0, 0)
    ratings: tuple[float, float] = (np.nan, np.nan)
    rows: int = 0
    repeats: int = 0
    spool: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.spool.close()

    @property
    def rated(self) -> bool:
        """Whether rows have ratings."""
        return not np.isnan(self.ratings[0])

    def in_order(self) -> Iterator[Rows]:
        """All rows in blocks of whole users, in natural order of user ids; in each user's by time, item id, line.

        Of rows with the same user, item and time, the first that was read is given, and the others are counted.
        """
        self.repeats = 0
        item_rank = self.items.ranks()
        user_rank = self.users.ranks()
        for rows in self._parts(user_rank):
            order = np.lexsort((rows["line"], item_rank[rows["item"]], rows["time"], user_rank[rows["user"]]))
            rows = rows[order]
            same = np.zeros(len(rows), bool)
            same[1:] = np.logical_and.reduce([rows[name][1:] == rows[name][:-1] for name in ("user", "item", "time")])
            self.repeats += int(np.count_nonzero(same))
            yield rows[~same]

    def _parts(self, rank: NDArray[np.int32]) -> Iterator[Rows]:
        """The rows dealt out into parts that follow one another in order of users."""
        counts = np.zeros(len(rank), np.int64)
        for rows in self._blocks():
            counts += np.bincount(rank[rows["user"]], minlength=len(rank))
        part_of = (np.cumsum(counts) - 1) // _PART  # by rank of the user: so no user is divided
        sizes = np.bincount(part_of, counts).astype(np.int64) if len(rank) else np.zeros(0, np.int64)
        starts = np.cumsum(sizes) - sizes
        with tempfile.TemporaryFile() as dealt:
            at = starts.copy()
            for rows in self._blocks():
                part = part_of[rank[rows["user"]]]
                for number in np.unique(part).tolist():
                    chosen = rows[part == number]
                    dealt.seek(int(at[number]) * ROW.itemsize)
                    dealt.write(chosen.tobytes())
                    at[number] += len(chosen)
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
                if size:
                    dealt.seek(start * ROW.itemsize)
                    yield np.frombuffer(dealt.read(size * ROW.itemsize), ROW)

    def _blocks(self) -> Iterator[Rows]:
        self.spool.seek(0)
        while data := self.spool.read(_PART // 2 * ROW.itemsize):
            yield np.frombuffer(data, ROW)

    def time_note(self) -> str:
        """What the timestamps were read as."""
        first, last = (moment(time, self.unit).date() for time in self.span)
        name = "seconds" if self.unit == "s" else "milliseconds"
        return f"timestamps are read as {name} since 1970: {first} to {last} (UTC)"

    def rating_notes(self) -> Iterator[str]:
        """What is to be said of ratings that tell nothing."""
        if self.rated and self.rows > 1 and self.ratings[0] == self.ratings[1]:
            yield f"every rating is {self.ratings[0]:g}: it tells nothing apart, and none counts as a dislike"

    def repeat_notes(self) -> Iterator[str]:
        """How many rows were left out as repeats."""
        if self.repeats:
            yield f"{self.repeats} reviews repeat one of the same user, item and time, and are left out"


def gather(logs: Sequence[LogFile], watch: Watch) -> Gathered:
    """Read all logs into a spool. Raises :class:`InputError` with file and line."""
    found, units = Gathered(), Units()
    try:
        for log in logs:
            _read(log, found, units, watch)
        if not found.rows:
            files = ", ".join(str(log.path) for log in logs)
            raise InputError("the log holds no interaction", remedy="Give one review a line.", file=files)
        found.unit, found.span = units.decide(), units.span
    except BaseException:
        found.spool.close()
        raise
    return found


def _read(log: LogFile, found: Gathered, units: Units, watch: Watch) -> None:
    """The rows of one log, numbered, at the end of the spool."""
    lines = Lines(log.path)
    rows = log.rows(lines)
    read = 0
    while batch := list(islice(rows, _BATCH)):
        found.spool.write(_numbered(batch, found, lines.file).tobytes())
        found.domains.extend(map(log.domain, found.items.names[len(found.domains) :]))
        units.see([row[5] for row in batch], [row[0] for row in batch], lines.file)
        read += len(batch)
        watch(Reading(lines.file, lines.done, lines.total, read))
    found.rows += read
    found.digests[f"log {log.path.name}"] = lines.sha256


def _numbered(batch: list[Raw], found: Gathered, file: str) -> Rows:
    """A batch as rows of the spool."""
    line, users, items, variants, rating, time = zip(*batch, strict=True)
    for name, texts in (("user", users), ("item", items)):
        if not all(map(str.strip, texts)):
            row = next(row for row, text in enumerate(texts) if not text.strip())
            remedy = "Give the id, or leave the line out."
            raise InputError(f"the id of the {name} is empty", remedy=remedy, file=file, line=line[row])
    rows = np.empty(len(batch), ROW)
    rows["line"], rows["rating"], rows["time"] = line, rating, time
    rows["user"], rows["item"] = found.users.numbers(users), found.items.numbers(items)
    rows["variant"] = found.variants.numbers(variants)
    low, high = found.ratings
    found.ratings = float(np.fmin(low, rows["rating"].min())), float(np.fmax(high, rows["rating"].max()))
    return rows
