"""How invented users take items: what they are shown at a visit, what they take of it, and when they come."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from simengine.data.assemble import Rows, assemble, leave_one_out
from simengine.data.dataset import Dataset, Item
from simengine.data.settings import Clock

SHOWN = 10
"""How many items a user is shown at a visit, to take one of them."""

_TRIES = 20 * SHOWN
_OPENING = 1_700_000_000  # second since 1970 at which the first may come
_DAY = 86_400

Visit: TypeAlias = tuple[int, int, Sequence[int]]
"""Time in seconds, the item taken, and the items shown, by their numbers."""


class Shelf:
    """Items that are shown together, by their numbers, each as often as ``popularity`` says."""

    def __init__(self, numbers: Sequence[int], popularity: Sequence[float]) -> None:
        self._numbers = numbers
        self._weights = [popularity[number] for number in numbers]
        self._cumulative = list(accumulate(self._weights))

    def show(self, taken: Collection[int], draws: random.Random) -> list[int]:
        """Different items not taken yet, in the order drawn, each in proportion to the popularity of those left."""
        shown: dict[int, None] = {}
        for _ in range(_TRIES):
            number = self._numbers[_draw(self._cumulative, draws)]
            if number not in taken:
                shown.setdefault(number)
            if len(shown) == SHOWN:
                return list(shown)
        # The same law without rejection, for a user who has taken nearly all that is popular.
        left = {
            number: weight
            for number, weight in zip(self._numbers, self._weights, strict=True)
            if number not in taken and number not in shown
        }
        while left and len(shown) < SHOWN:
            number = list(left)[_draw(list(accumulate(left.values())), draws)]
            shown[number] = None
            del left[number]
        return list(shown)


def zipf(items: int, skew: float, draws: random.Random) -> list[float]:
    """The popularity of each item: a Zipf law of the exponent ``skew`` over a random ranking."""
    ranks = list(range(1, items + 1))
    draws.shuffle(ranks)
    return [rank**-skew for rank in ranks]


def _draw(cumulative: Sequence[float], draws: random.Random) -> int:
    """A place drawn by weights, given as their running sums."""
    return min(bisect_right(cumulative, draws.random() * cumulative[-1]), len(cumulative) - 1)


def visits(
    count: int,
    streams: Callable[[str], random.Random],
    shelf: Callable[[], Shelf],
    liking: Callable[[int, float], float],
) -> Iterator[Visit]:
    """The visits of one user, in order: of what a shelf shows him he takes one, drawn by his liking of each.

    ``streams`` gives his random numbers for ``shown``, ``taken`` and ``times``, ``shelf`` that of his next visit,
    ``liking`` how much he likes an item (by number) so many days after the opening.
    """
    shop, own = streams("shown"), streams("taken")
    taken: set[int] = set()
    for time in _times(count, streams("times")):
        shown = shelf().show(taken, shop)
        day = (time - _OPENING) / _DAY
        number = shown[_draw(list(accumulate(liking(number, day) for number in shown)), own)]
        taken.add(number)
        yield time, number, shown


def _times(count: int, draws: random.Random) -> Iterator[int]:
    """Times in seconds, increasing: a first visit within the first month, then a week apart on average."""
    time = _OPENING + int(draws.random() * 30 * _DAY)
    for _ in range(count):
        yield time
        time += 1 + int(-math.log(1 - draws.random()) * 7 * _DAY)


def of_visits(
    users: tuple[str, ...],
    items: Mapping[str, Item],
    made: Sequence[Sequence[Visit]],
    *,
    clock: Clock,
    name: str,
    noun: str,
    digest: str,
    notes: tuple[str, ...] = (),
) -> Dataset:
    """The data set of the visits of all users, split leave-one-out; numbers count the items from 0.

    The candidates of a test are what was shown at that visit.
    """
    names = tuple(items)
    last = {user: own[-1][2] for user, own in zip(users, made, strict=True)}
    candidates = {user: tuple(names[number] for number in sorted(shown)) for user, shown in last.items()}
    fewest = min(map(len, last.values()))
    few = (f"only {fewest} items are left to be shown at the last visit",) if fewest < SHOWN else ()
    return assemble(
        _rows(users, made, clock),
        items,
        name=name,
        noun=noun,
        digest=digest,
        notes=(*notes, *few),
        candidates=lambda user, _: candidates[user],
    )


def _rows(users: tuple[str, ...], made: Sequence[Sequence[Visit]], clock: Clock) -> Rows:
    user = np.repeat(np.arange(len(users), dtype=np.int32), [len(own) for own in made])
    order = np.arange(len(user))
    place, part = leave_one_out(user, order)
    steps = clock == "step"
    return Rows(
        users=users,
        user=user,
        item=np.array([taken for own in made for _, taken, _ in own], np.int32),
        time=place if steps else np.array([time for own in made for time, _, _ in own], np.int64),
        line=order + 1,
        part=part,
        unit="step" if steps else "s",
    )
