"""What members of a group took lately: derived from the data set, never written, as of a place in the total order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any, Protocol

from simengine.data import Dataset, Interaction
from simengine.kernel import Order


class Rows(Protocol):
    """Interactions in the total order."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Interaction]: ...

    def __getitem__(self, row: int, /) -> Interaction: ...


class _Track:
    """Interactions of one phase, with the places of each user's in each domain."""

    def __init__(self, dataset: Dataset, rows: Rows, order: Callable[[int], Order]) -> None:
        self._rows = rows
        self._order = order
        self._places: dict[tuple[str, str], list[int]] = {}
        for place, row in enumerate(rows):
            self._places.setdefault((row.user, dataset.items[row.item].domain), []).append(place)

    def last(self, users: Iterable[str], domains: Sequence[str], before: Order, count: int) -> list[tuple[Order, int]]:
        """The last ``count`` of these users in these domains that stand before a place in the order, newest first."""
        end = bisect_left(range(len(self._rows)), before, key=self._order)
        found: list[int] = []
        for user in users:
            for domain in domains:
                places = self._places.get((user, domain), ())
                upto = bisect_left(places, end)
                found += places[max(upto - count, 0) : upto]
        return [(self._order(place), place) for place in nlargest(count, found)]

    def __getitem__(self, place: int) -> Interaction:
        return self._rows[place]


class Views:
    """The interactions that views are made of: those that are re-enacted, from the moment on that their events stand.

    They are facts of the data set, so that a view depends on no event that is under way, and nobody waits for it.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._data = dataset
        self._tracks: dict[str, _Track] = {}

    def add(self, name: str, rows: Rows, order: Callable[[int], Order]) -> None:
        """Take in what is re-enacted under ``name``; ``order`` gives the place of a row's event in the total order."""
        self._tracks[name] = _Track(self._data, rows, order)

    def last(self, users: Sequence[str], domains: Sequence[str], before: Order, count: int) -> list[Interaction]:
        """The last ``count`` interactions of these users in these domains before a place in the order, newest first."""
        found = [
            (order, name, place)
            for name, track in self._tracks.items()
            for order, place in track.last(users, domains, before, count)
        ]
        return [self._tracks[name][place] for _, name, place in nlargest(count, found)]


def groups_of(groups: Sequence[Mapping[str, Any]], user: str) -> list[Mapping[str, Any]]:
    """The groups that a user is in, the largest first."""
    return [group for group in groups if user in group["members"]]
