"""Which rows of a log are kept: about these items, rated so high, within a k-core, of users who have enough of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simengine.data.assemble import users_note
from simengine.data.columns import Numbers
from simengine.data.order import natural_key
from simengine.data.settings import LogColumns, LogSettings
from simengine.data.table import Table
from simengine.errors import InputError


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a log.

    rows: positions of the rows, in the order of the log.
    users: their ids in the stated order.
    user, item: for each row the positions of its user and of its item.
    items: the positions, in the item table, of the items that ``item`` counts; ``None`` where it counts all of them.
    notes: what was left out.
    """

    rows: NDArray[np.intp]
    users: tuple[str, ...]
    user: NDArray[np.int32]
    item: NDArray[np.int32]
    items: NDArray[np.int32] | None
    notes: tuple[str, ...]


def keep(table: Table, columns: LogColumns, settings: LogSettings, item: NDArray[np.int32], items: int) -> Kept:
    """The rows that the settings keep, filter by filter, each of what the one before has left.

    ``item`` gives the position of each row's item among all ``items`` that are kept, -1 where it is not. Where nothing
    is left, the error names the filter that left nothing.
    """
    user, names = _numbered(table.ids(columns.user))
    filters = _Filters(table, user, item)
    filters.about()
    if settings.min_rating is not None and columns.rating:
        filters.rated(table.numbers(columns.rating), settings.min_rating)
    core = None
    if settings.core is not None:
        filters.core(settings.core, items)
        core = np.unique(item[filters.rows])
    filters.active(settings.min_interactions)
    rows = filters.rows
    ids = [names[one] for one in _first_seen(user[rows])]
    users = tuple(sorted(ids, key=natural_key) if columns.time else ids)[: settings.users]
    place = np.full(len(names), -1, np.int32)
    place[_codes(users, names)] = np.arange(len(users))
    rows = rows[place[user[rows]] >= 0]
    kept_item = item[rows] if core is None else np.searchsorted(core, item[rows]).astype(np.int32)
    notes = (*filters.notes, *users_note(settings.users, len(users)))
    return Kept(rows, users, place[user[rows]], kept_item, core, notes)


def k_core(user: NDArray[np.int32], item: NDArray[np.int32], k: int) -> tuple[NDArray[np.intp], int]:
    """The rows of the k-core, in order, and after how many rounds nothing more was left out.

    A round leaves out, at once, all users and all items with fewer than ``k`` of the rows that are still there. What
    stays is the largest set of rows in which every user and every item has ``k`` or more (the k-core of the bipartite
    graph), whatever the order of leaving out. A repeated interaction counts as often as it stands in the log.
    """
    rows, rounds = np.arange(len(user)), 0
    while len(rows):
        enough = (np.bincount(user)[user] >= k) & (np.bincount(item)[item] >= k)
        if np.all(enough):
            break
        rows, user, item = rows[enough], user[enough], item[enough]
        rounds += 1
    return rows, rounds


class _Filters:
    """The filters of one log. ``rows`` are the positions of the rows still left, ``notes`` say what was left out."""

    def __init__(self, table: Table, user: NDArray[np.int32], item: NDArray[np.int32]) -> None:
        self._table, self._user, self._item = table, user, item
        self.rows: NDArray[np.intp] = np.arange(len(user))
        self.notes: list[str] = []

    def about(self) -> None:
        """Rows about items that are kept."""
        before = self._left(
            self._item >= 0, "none is about an item of these domains", "Name other domains under data.domains."
        )
        if len(self.rows) < len(before):
            self.notes.append(f"{len(self.rows)} of {len(before)} interactions are about items of these domains")

    def rated(self, ratings: Numbers, least: float) -> None:
        """Rows that are rated so high."""
        before = self._left(ratings >= least, f"none is rated {least:g} or higher", "Lower data.min_rating.")
        self.notes.append(f"{len(self.rows)} of {len(before)} interactions are rated {least:g} or higher and kept")
        lost = _count(self._user[before]) - _count(self._user[self.rows])
        if lost:
            self.notes.append(f"{lost} users have no interaction that is rated so high, and are left out")

    def core(self, k: int, items: int) -> None:
        """Rows of the k-core."""
        user, item = self._user[self.rows], self._item[self.rows]
        inside, rounds = k_core(user, item, k)
        if not len(inside):
            # Cores lie within one another, so the highest k that leaves something can be searched for by halves.
            most = bisect_left(range(1, k), True, key=lambda one: not len(k_core(user, item, one)[0]))
            problem = f"there is no {k}-core, in which every user and every item has {k} of them"
            raise self._nothing(problem, f"Lower data.core; {most} is the highest that leaves any.")
        self.rows = self.rows[inside]
        self.notes.append(
            f"{k}-core, reached after {rounds} round{'s' * (rounds != 1)}: "
            f"{_count(user[inside])} of {_count(user)} users and "
            f"{_count(item[inside])} of {items} items are kept, with {len(inside)} of {len(user)} interactions"
        )

    def active(self, least: int) -> None:
        """Rows of users who have so many."""
        count = np.bincount(self._user[self.rows], minlength=int(self._user.max()) + 1)
        remedy = "Lower data.min_interactions."
        before = self._left(count[self._user] >= least, f"no user has {least} of them", remedy)
        if len(self.rows) < len(before):
            of, left = (_count(self._user[some]) for some in (before, self.rows))
            self.notes.append(
                f"{of - left} of {of} users have fewer than {least} interactions, "
                f"and are left out with their {len(before) - len(self.rows)} interactions"
            )

    def _left(self, mask: NDArray[np.bool_], problem: str, remedy: str) -> NDArray[np.intp]:
        """Keep the rows for which the mask over the whole log holds; gives those there were before."""
        before = self.rows
        self.rows = before[mask[before]]
        if not len(self.rows):
            raise self._nothing(problem, remedy)
        return before

    def _nothing(self, problem: str, remedy: str) -> InputError:
        return self._table.error(f"no interaction is left: {problem}", remedy)


def _numbered(ids: list[str]) -> tuple[NDArray[np.int32], list[str]]:
    """Ids as numbers in order of first appearance, and the ids by number."""
    names = list(dict.fromkeys(ids))
    return _codes(ids, names), names


def _codes(ids: Iterable[str], names: list[str]) -> NDArray[np.int32]:
    number = {name: at for at, name in enumerate(names)}
    return np.fromiter(map(number.__getitem__, ids), np.int32)


def _first_seen(numbers: NDArray[np.int32]) -> list[int]:
    """The different numbers in order of first appearance."""
    different, first = np.unique(numbers, return_index=True)
    order: list[int] = different[np.argsort(first)].tolist()
    return order


def _count(numbers: NDArray[np.int32]) -> int:
    """How many different ones there are."""
    return int(np.count_nonzero(np.bincount(numbers)))
