"""An invented market: users with latent tastes take items that they are shown. A function of its settings."""

from __future__ import annotations

import hashlib
import json
import math
import random
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from simengine.data.assemble import Rows, assemble, leave_one_out
from simengine.data.catalogue import domain_of, interest_of, make_items, shelves
from simengine.data.dataset import Dataset
from simengine.data.market_truth import Truth, market_truth, stream
from simengine.data.settings import Fashion, MarketSettings

SHOWN = 10
"""How many items a user is shown at a visit, to take one of them."""

_TRIES = 20 * SHOWN
_OPENING = 1_700_000_000  # second of 1970 at which a market opens
_DAY = 86_400


def make_market(settings: MarketSettings) -> Dataset:
    """The market of these settings, split leave-one-out; the candidates of a test are what was shown at that visit.

    At a visit a user is shown items of one domain, drawn by lot, that he has not taken yet, drawn by a Zipf law over a
    random ranking of all items, and takes one of them, drawn by how much he likes its interest in that domain at that
    time; on the null market by lot. So whatever was shown could have been the target, and what tells them apart is
    taste alone.
    """
    truth = market_truth(settings)
    items = make_items(settings.items, settings.interests, settings.sold, stream(settings, "catalogue"))
    visits = [tuple(_visits(settings, truth, user)) for user in range(settings.users)]
    names = tuple(items)
    candidates = {
        user: tuple(names[number] for number in sorted(made[-1][2]))
        for user, made in zip(truth.users, visits, strict=True)
    }
    fewest = min(map(len, candidates.values()))
    return assemble(
        _rows(settings, truth.users, visits),
        items,
        name="market",
        noun=settings.noun,
        digest=_digest(settings),
        notes=(f"only {fewest} items are left to be shown at the last visit",) if fewest < SHOWN else (),
        candidates=lambda user, _: candidates[user],
    )


def _digest(settings: MarketSettings) -> str:
    """The SHA-256 of the settings. What fashions do not say of domain and followers is left out, as before there was
    such a thing, so that the markets of then keep theirs."""
    said = settings.model_dump(mode="json", exclude={"noun"})
    for fashion in said["fashions"]:
        for field in ("domain", "among"):
            if fashion[field] is None:
                del fashion[field]
    return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


_Visit: TypeAlias = tuple[int, int, Sequence[int]]
"""Time in seconds, the item taken, and the items shown, by their numbers."""


def _rows(settings: MarketSettings, users: tuple[str, ...], visits: Sequence[Sequence[_Visit]]) -> Rows:
    user = np.repeat(np.arange(settings.users, dtype=np.int32), settings.interactions)
    order = np.arange(len(user))
    place, part = leave_one_out(user, order)
    steps = settings.clock == "step"
    return Rows(
        users=users,
        user=user,
        item=np.array([taken for made in visits for _, taken, _ in made], np.int32),
        time=place if steps else np.array([time for made in visits for time, _, _ in made], np.int64),
        line=order + 1,
        part=part,
        unit="step" if steps else "s",
    )


def _visits(settings: MarketSettings, truth: Truth, user: int) -> Iterator[_Visit]:
    """The visits of one user, in order."""
    shop, own, wish = (stream(settings, f"{name} {user}") for name in ("shown", "taken", "domain"))
    popularity = _popularity(settings)
    domains = shelves(settings.items, settings.interests, len(settings.sold))
    taken: set[int] = set()
    for time in _times(settings.interactions, stream(settings, f"times {user}")):
        shelf = domains[wish.randrange(len(domains))]
        shown = _shown(shelf, [popularity[number] for number in shelf], taken, shop)
        liking = [_liking(settings, truth, user, number, (time - _OPENING) / _DAY) for number in shown]
        number = shown[_draw(list(accumulate(liking)), own)]
        taken.add(number)
        yield time, number, shown


def _popularity(settings: MarketSettings) -> list[float]:
    ranks = list(range(1, settings.items + 1))
    stream(settings, "popularity").shuffle(ranks)
    return [rank**-settings.skew for rank in ranks]


def _shown(
    shelf: Sequence[int], popularity: Sequence[float], taken: Collection[int], draws: random.Random
) -> list[int]:
    """Different items of the shelf, in the order drawn, each in proportion to the popularity of those still left."""
    shown: dict[int, None] = {}
    cumulative = list(accumulate(popularity))
    for _ in range(_TRIES):
        number = shelf[_draw(cumulative, draws)]
        if number not in taken:
            shown.setdefault(number)
        if len(shown) == SHOWN:
            return list(shown)
    # The same law without rejection, for a user who has taken nearly all that is popular.
    left = {
        number: weight
        for number, weight in zip(shelf, popularity, strict=True)
        if number not in taken and number not in shown
    }
    while left and len(shown) < SHOWN:
        number = list(left)[_draw(list(accumulate(left.values())), draws)]
        shown[number] = None
        del left[number]
    return list(shown)


def _draw(cumulative: Sequence[float], draws: random.Random) -> int:
    """A place drawn by weights, given as their running sums."""
    return min(bisect_right(cumulative, draws.random() * cumulative[-1]), len(cumulative) - 1)


def _liking(settings: MarketSettings, truth: Truth, user: int, number: int, day: float) -> float:
    """How much a user likes an item on a day, in proportion to his taste; all alike on the null market."""
    if not settings.planted:
        return 1.0
    interest = interest_of(number, settings.interests)
    domain = domain_of(number, settings.interests, len(settings.sold))
    liking = float(truth.tastes[user, domain, interest])
    for fashion, followers in truth.fashions:
        here = fashion.domain in (None, truth.domains[domain])
        if here and user in followers and fashion.interest == truth.interests[interest]:
            liking *= _vogue(fashion, day)
    return liking


def _vogue(fashion: Fashion, day: float) -> float:
    """By what a fashion multiplies a liking: 1 before and after, its strength in the middle, rising and falling."""
    passed = (day - fashion.from_day) / fashion.days
    return fashion.strength ** math.sin(math.pi * passed) if 0 < passed < 1 else 1.0


def _times(count: int, draws: random.Random) -> Iterator[int]:
    """Times in seconds, increasing: a first visit within the first month, then a week apart on average."""
    time = _OPENING + int(draws.random() * 30 * _DAY)
    for _ in range(count):
        yield time
        time += 1 + int(-math.log(1 - draws.random()) * 7 * _DAY)
