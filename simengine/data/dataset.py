"""The internal form of a data set: users, items, interactions as columns, test cases. Immutable, and plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data.columns import Numbers

Unit: TypeAlias = Literal["step", "s", "ms"]
"""What one unit of time is: a step of the user's own, a second or a millisecond since 1970 (UTC)."""


class Item(msgspec.Struct, frozen=True):
    """One item. ``title`` and ``category`` are readable text, ``raw_title``, ``extra`` and ``domain`` as in the file.

    ``domain`` is the part of the catalogue that the item belongs to, empty where the data tell of none.
    """

    id: str
    title: str
    category: str = ""
    raw_title: str = ""
    extra: Mapping[str, str] = {}
    domain: str = ""


class Interaction(msgspec.Struct, frozen=True, gc=False):
    """User took item at time. ``occurrence`` is 0, or counts up where user, item and time are all repeated."""

    user: str
    item: str
    time: int | float
    occurrence: int = 0


class Case(msgspec.Struct, frozen=True):
    """One ranking test: which item does this user take next?

    ``history`` are the items taken before, those of earlier cases too, oldest first. ``candidates`` hold the target, in
    an order that says nothing about it; ``None`` where there are none to rank it among, or the data leave them open.
    ``number`` counts the cases of the user, from 1, in the order of their targets.
    """

    user: str
    target: str
    history: tuple[str, ...]
    candidates: tuple[str, ...] | None
    time: int | float
    number: int = 1

    @property
    def key(self) -> tuple[str, int]:
        """What tells the case from all others."""
        return self.user, self.number

    @property
    def again(self) -> tuple[str, ...]:
        """What stands beside the user's name where something is named after the case: nothing for his first."""
        return () if self.number == 1 else (f"case {self.number}",)


@dataclass(frozen=True, eq=False, slots=True)
class Interactions:
    """Interactions as columns of equal length, in total order; iteration gives :class:`Interaction` rows.

    ``user`` and ``item`` are positions in ``users`` and ``items``. The total order is that of (time, user position,
    item position, occurrence), so these four integers are a row's sort key. ``line`` is the line of its source file.
    """

    users: tuple[str, ...]
    items: tuple[str, ...]
    user: NDArray[np.int32]
    item: NDArray[np.int32]
    time: Numbers
    occurrence: NDArray[np.int32]
    line: NDArray[np.int64]

    def __post_init__(self) -> None:
        for column in (self.user, self.item, self.time, self.occurrence, self.line):
            column.setflags(write=False)

    def __len__(self) -> int:
        return len(self.user)

    def __getitem__(self, row: int) -> Interaction:
        return Interaction(
            self.users[self.user[row]], self.items[self.item[row]], self.time[row].item(), int(self.occurrence[row])
        )

    def __iter__(self) -> Iterator[Interaction]:
        columns = (self.user.tolist(), self.item.tolist(), self.time.tolist(), self.occurrence.tolist())
        for user, item, time, occurrence in zip(*columns, strict=True):
            yield Interaction(self.users[user], self.items[item], time, occurrence)

    def order(self, row: int) -> tuple[int | float, int, int, int]:
        """The row's sort key in the total order, comparable across the tables of one data set."""
        return self.time[row].item(), int(self.user[row]), int(self.item[row]), int(self.occurrence[row])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, ready to be re-enacted.

    users: ids in the stated order: of first appearance where the file order is the only order there is (training file
        first), else natural order of ids (``u2`` before ``u10``).
    items: by id, in natural order of ids.
    train: the interactions to re-enact, in total order.
    history: interactions given but not re-enacted: each user's first item, and validation items.
    training_part: what rankers and negatives may learn from: ``train`` and ``history`` without validation items.
    cases: the ranking tests, in order of users, then of their targets.
    own: all items known of a user: training part, validation, test, and what a split leaves unused behind it.
    unit: the unit of all times.
    digest: SHA-256 of the bytes of the files used, whatever their path; of the parameters for an invented market.
    notes: what the user should be told about these data.
    recorded_negatives: the negative of each row of ``train``, where a file records them.
    """

    name: str
    noun: str
    users: tuple[str, ...]
    items: Mapping[str, Item]
    train: Interactions
    history: Interactions
    training_part: Interactions
    cases: tuple[Case, ...]
    own: Mapping[str, frozenset[str]]
    unit: Unit
    digest: str
    notes: tuple[str, ...] = ()
    recorded_negatives: Mapping[Interaction, str] | None = None

    def kept(self) -> str:
        """A digest of the items, and the interactions to learn from, that filters and splits have left of the files."""
        part, found = self.training_part, hashlib.sha256(self.digest.encode())
        for ids in (tuple(self.items), part.users, part.items):
            found.update("\n".join(ids).encode() + b"\0")
        for column in (part.user, part.item, part.time):
            found.update(column.tobytes())
        return found.hexdigest()
