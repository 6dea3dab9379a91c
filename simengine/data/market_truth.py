"""What an invented market has planted and no agent may see: who likes what, which item is what, and the fashions."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simengine.data.catalogue import INTERESTS, domain_of, interest_of, phrases
from simengine.data.settings import Fashion, MarketSettings


@dataclass(frozen=True, eq=False)
class Truth:
    """The ground truth of a market, recomputed from its settings; a data set holds nothing of it.

    interests, domains: names, in the order of the axes below.
    users: ids, in the order of the first axis.
    tastes: users x domains x interests; how much a user likes each interest, adding up to 1 in each domain.
    carried: users x interests; whether the user likes the interest the same in all domains, by one number.
    item_interest, item_domain: positions by item id.
    phrases: by interest, the words of the catalogue that belong to it and to no other, in all domains.
    domain_phrases: interests x domains; the same for each domain, which has no word in common with another.
    fashions: each with the positions of the users who follow it.
    planted: whether anything of this had a part in what users took.
    """

    interests: tuple[str, ...]
    domains: tuple[str, ...]
    users: tuple[str, ...]
    tastes: NDArray[np.float64]
    carried: NDArray[np.bool_]
    item_interest: Mapping[str, int]
    item_domain: Mapping[str, int]
    domain_phrases: tuple[tuple[tuple[str, ...], ...], ...]
    fashions: tuple[tuple[Fashion, frozenset[int]], ...]
    planted: bool

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each user."""
        return MappingProxyType({user: place for place, user in enumerate(self.users)})

    @cached_property
    def phrases(self) -> tuple[tuple[str, ...], ...]:
        """See above."""
        return tuple(tuple(phrase for one in each for phrase in one) for each in self.domain_phrases)

    def taste(self, user: str) -> NDArray[np.float64]:
        """How much a user likes each interest, as the mean over the domains."""
        mean: NDArray[np.float64] = self.tastes[self.position[user]].mean(axis=0)
        return mean


def market_truth(settings: MarketSettings) -> Truth:
    """The truth of the market of these settings; a null market (``planted: false``) has the same, to no effect."""
    users, interests, domains = settings.users, settings.interests, len(settings.sold)
    numbers = {f"i{number + 1}": number for number in range(settings.items)}
    drawn = [_tastes(settings, user) for user in range(users)]
    tastes, carried = np.array([one for one, _ in drawn]), np.array([one for _, one in drawn])
    for array in (tastes, carried):
        array.setflags(write=False)
    return Truth(
        interests=INTERESTS[:interests],
        domains=settings.sold,
        users=tuple(f"u{number + 1}" for number in range(users)),
        tastes=tastes,
        carried=carried,
        item_interest=MappingProxyType({item: interest_of(number, interests) for item, number in numbers.items()}),
        item_domain=MappingProxyType({item: domain_of(number, interests, domains) for item, number in numbers.items()}),
        domain_phrases=tuple(
            tuple(phrases(interest, domain) for domain in settings.sold) for interest in range(interests)
        ),
        fashions=tuple(
            (fashion, _followers(settings, place, fashion, tastes)) for place, fashion in enumerate(settings.fashions)
        ),
        planted=settings.planted,
    )


def stream(settings: MarketSettings, name: str) -> random.Random:
    """The market's own random numbers for one purpose: what is drawn for one changes nothing for another."""
    return random.Random(f"market {settings.seed} {name}")


def _tastes(settings: MarketSettings, user: int) -> tuple[list[list[float]], list[bool]]:
    """The user's taste in each domain, a softmax of ``sharpness`` times uniform numbers; and what it carries over.

    With the chance ``carry`` an interest has one number for all domains, else one for each.
    """
    draws, domains = stream(settings, f"taste {user}"), len(settings.sold)
    numbers, carries = [], []
    for _ in range(settings.interests):
        carried, common = draws.random() < settings.carry, draws.random()
        own = [draws.random() for _ in range(domains)]
        numbers.append([common] * domains if carried else own)
        carries.append(carried)
    tastes = []
    for liked in zip(*numbers, strict=True):
        weights = [math.exp(settings.sharpness * (number - 1)) for number in liked]
        tastes.append([weight / math.fsum(weights) for weight in weights])
    return tastes, carries


def _followers(settings: MarketSettings, place: int, fashion: Fashion, tastes: NDArray[np.float64]) -> frozenset[int]:
    count = round(fashion.share * settings.users)
    if fashion.among is None:
        return frozenset(stream(settings, f"fashion {place}").sample(range(settings.users), count))
    liking = tastes[:, :, INTERESTS.index(fashion.among)].mean(axis=1)
    return frozenset(np.argsort(-liking, kind="stable")[:count].tolist())
