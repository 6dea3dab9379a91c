"""A small invented market: users with latent interests take albums of an invented catalogue. A function of its seed."""

from __future__ import annotations

import hashlib
import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from types import MappingProxyType

import numpy as np

from simengine.data.assemble import Rows, assemble, leave_one_out
from simengine.data.catalogue import STYLES, title
from simengine.data.dataset import Dataset, Item
from simengine.data.negatives import with_drawn_candidates
from simengine.data.settings import MarketSettings

NEGATIVES = 9
"""Candidates beside the target of a test case."""

_OPENING = 1_700_000_000  # second of 1970 at which a market with timestamps opens
_DAY = 86_400


def make_market(settings: MarketSettings) -> Dataset:
    """The market of these settings: leave-one-out, each test case with up to nine drawn negatives.

    An item belongs to one interest; its popularity follows a Zipf law over a random ranking of the items. A user's
    chance to take an item is its popularity times his liking of its interest, and he takes nothing twice.
    """
    items = _make_items(settings)
    rows = _make_rows(settings)
    parameters = settings.model_dump_json(exclude={"noun"})
    digest = hashlib.sha256(parameters.encode()).hexdigest()
    dataset = assemble(rows, items, name="market", noun=settings.noun, digest=digest)
    return with_drawn_candidates(dataset, NEGATIVES, settings.seed)


def _stream(settings: MarketSettings, name: str) -> random.Random:
    return random.Random(f"market {settings.seed} {name}")


def _interest(settings: MarketSettings, item: int) -> int:
    """The interest that an item belongs to; items are dealt out in turn, so that each interest has its share."""
    return item % settings.interests


def _make_items(settings: MarketSettings) -> Mapping[str, Item]:
    stream = _stream(settings, "catalogue")
    items = {}
    for number in range(settings.items):
        style, attributes = STYLES[_interest(settings, number)]
        chosen = "; ".join(stream.sample(attributes, 2))
        name = title(number)
        items[f"i{number + 1}"] = Item(f"i{number + 1}", name, f"{style}; {chosen}", name)
    return MappingProxyType(items)


def _make_rows(settings: MarketSettings) -> Rows:
    popularity = _popularity(settings)
    user = np.repeat(np.arange(settings.users, dtype=np.int32), settings.interactions)
    taken: list[int] = []
    times: list[int] = []
    for number in range(settings.users):
        stream = _stream(settings, f"user {number}")
        likings = _likings(settings, stream)
        weights = [weight * likings[_interest(settings, item)] for item, weight in enumerate(popularity)]
        taken.extend(_take(weights, settings.interactions, stream))
        times.extend(_visits(settings.interactions, stream))
    order = np.arange(len(user))
    place, part = leave_one_out(user, order)
    return Rows(
        users=tuple(f"u{number + 1}" for number in range(settings.users)),
        user=user,
        item=np.array(taken, np.int32),
        time=place if settings.clock == "step" else np.array(times, np.int64),
        line=order + 1,
        part=part,
        unit="step" if settings.clock == "step" else "s",
    )


def _popularity(settings: MarketSettings) -> list[float]:
    ranks = list(range(1, settings.items + 1))
    _stream(settings, "popularity").shuffle(ranks)
    return [rank**-settings.skew for rank in ranks]


def _likings(settings: MarketSettings, stream: random.Random) -> list[float]:
    """How much a user likes each interest: exp(sharpness x a uniform draw), so that zero makes all alike."""
    return [math.exp(settings.sharpness * (stream.random() - 1)) for _ in range(settings.interests)]


def _take(weights: list[float], count: int, stream: random.Random) -> Iterator[int]:
    """``count`` different items, each drawn in proportion to the weights of those still left."""
    left = list(range(len(weights)))
    for _ in range(count):
        cumulative = list(accumulate(weights[item] for item in left))
        place = min(bisect_right(cumulative, stream.random() * cumulative[-1]), len(left) - 1)
        yield left.pop(place)


def _visits(count: int, stream: random.Random) -> Iterator[int]:
    """Times in seconds, increasing: a first visit within the first month, then a week apart on average."""
    time = _OPENING + int(stream.random() * 30 * _DAY)
    for _ in range(count):
        yield time
        time += 1 + int(-math.log(1 - stream.random()) * 7 * _DAY)
