"""A small shop of games for the tests of the tools: titles that are easily mistaken, and who took what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simengine.data import Dataset, Interactions, Item
from simengine.llm.replies import Unreadable
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.similar import CoOccurrence, preference_of
from simengine.methods.interec.sql import Fence
from simengine.methods.interec.table import build
from simengine.methods.interec.tools import Shop

GAMES = (
    ("g1", "Portal", "Puzzle; First-Person", "2007-10-10", "9.99"),
    ("g2", "Portal 2", "Puzzle; Co-op", "4/18/2011", "9.99"),
    ("g3", "Half-Life", "Action; First-Person", "1998", "4.99"),
    ("g4", "Half-Life 2", "Action; First-Person", "2004-11-16", "9.99"),
    ("g5", "b", "Music", "2019-01-02", "0"),
    ("g6", "原神", "RPG; Open World", "2020-09-28", "0"),
    ("g7", "Мор. Утопия", "RPG; Horror", "2005-06-09", "19.99"),
    ("g8", "The Witcher 3: Wild Hunt", "RPG; Open World", "May 18, 2015", "39.99"),
    ("g9", "Football, Tactics & Glory", "Strategy; Sports", "2018-06-01", "24.99"),
    ("g10", "O'Brien's Puzzle Platformer", "Puzzle Platformer", "", ""),
    ("g11", "Twins", "Racing", "2001", "5"),
    ("g12", "Twins", "War", "2002", "6"),
    ("g13", "Counter-Strike", "Action; War", "2000-11-01", "9.99"),
    ("g14", "Counter-Strike: Source", "Action", "2004-11-01", "9.99"),
    ("g15", "Warfare 1917", "Warfare", "2010-01-01", "1"),
    ("g16", "100% Orange Juice", "Card Game", "2013-09-10", "6.99"),
)
TAKEN = {
    "u1": ("g1", "g2", "g4"),
    "u2": ("g1", "g2", "g16"),
    "u3": ("g3", "g4", "g13"),
    "u4": ("g3", "g4", "g2"),
    "u5": ("g6", "g8"),
}


def shop_data(items: Sequence[Item] | None = None, taken: Mapping[str, Sequence[str]] = TAKEN) -> Dataset:
    """The shop as a data set; all interactions belong to the training part."""
    known = items or [
        Item(name, title, tags, title, {"release_date": date, "Price_USD": price})
        for name, title, tags, date, price in GAMES
    ]
    by_id = {item.id: item for item in known}
    users, names = tuple(taken), tuple(by_id)
    pairs = [(users.index(user), names.index(item), at) for user, row in taken.items() for at, item in enumerate(row)]
    user, item, time = np.array(pairs, np.int64).reshape(-1, 3).T
    zeros = np.zeros(len(pairs), np.int32)
    rows = Interactions(users, names, user.astype(np.int32), item.astype(np.int32), time, zeros, zeros.astype(np.int64))
    return Dataset("games", "game", users, by_id, rows, rows, rows, (), {}, "step", "")


def fault_of(error: Unreadable | Fault) -> Fault:
    """What the tracker is told of a reply that gave no plan."""
    return error if isinstance(error, Fault) else Fault("unreadable", error.detail)


class ById:
    """A ranker that prefers later items, and knows none of the first."""

    name = "by_id"

    def fit(self, dataset: Dataset) -> None: ...

    def score(self, case: object, candidates: Sequence[str]) -> np.ndarray:
        return np.array([float(it[1:]) if it != "g1" else np.nan for it in candidates])


def make_shop(data: Dataset | None = None) -> Shop:
    """The tools' surroundings over the shop."""
    data = data or shop_data()
    table = build(data)
    return Shop(table, Fence(table), CoOccurrence(data), preference_of(ById()))
