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
from simengine.data.catalogue_words import DOMAINS
from simengine.data.settings import Fashion, MarketSettings


@dataclass(frozen=True, eq=False)
class Truth:
    """The ground truth of a market, recomputed from its settings; a data set holds nothing of it.

    interests, domains: names, in the order of the axes below.
    users: ids, in the order of the first axis.
    tastes: users x domains x interests; how much a user likes each interest, adding up to 1 in each domain.
    item_interest, item_domain: positions by item id.
    phrases: by interest, the words of the catalogue that belong to it and to no other.
    fashions: each with the positions of the users who follow it.
    planted: whether anything of this had a part in what users took.
    """

    interests: tuple[str, ...]
    domains: tuple[str, ...]
    users: tuple[str, ...]
    tastes: NDArray[np.float64]
    item_interest: Mapping[str, int]
    item_domain: Mapping[str, int]
    phrases: tuple[tuple[str, ...], ...]
    fashions: tuple[tuple[Fashion, frozenset[int]], ...]
    planted: bool

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each user."""
        return MappingProxyType({user: place for place, user in enumerate(self.users)})

    def taste(self, user: str) -> NDArray[np.float64]:
        """How much a user likes each interest, as the mean over the domains."""
        mean: NDArray[np.float64] = self.tastes[self.position[user]].mean(axis=0)
        return mean


def market_truth(settings: MarketSettings) -> Truth:
    """The truth of the market of these settings; a null market (``planted: false``) has the same, to no effect."""
    users, interests, domains = settings.users, settings.interests, settings.domains
    numbers = {f"i{number + 1}": number for number in range(settings.items)}
    tastes = np.array([_tastes(settings, user) for user in range(users)])
    tastes.setflags(write=False)
    return Truth(
        interests=INTERESTS[:interests],
        domains=DOMAINS[:domains],
        users=tuple(f"u{number + 1}" for number in range(users)),
        tastes=tastes,
        item_interest=MappingProxyType({item: interest_of(number, interests) for item, number in numbers.items()}),
        item_domain=MappingProxyType({item: domain_of(number, interests, domains) for item, number in numbers.items()}),
        phrases=tuple(phrases(interest, domains) for interest in range(interests)),
        fashions=tuple(
            (fashion, _followers(settings, place, fashion)) for place, fashion in enumerate(settings.fashions)
        ),
        planted=settings.planted,
    )


def stream(settings: MarketSettings, name: str) -> random.Random:
    """The market's own random numbers for one purpose: what is drawn for one changes nothing for another."""
    return random.Random(f"market {settings.seed} {name}")


def _tastes(settings: MarketSettings, user: int) -> list[list[float]]:
    """The user's taste in each domain: a softmax of ``sharpness`` times uniform numbers.

    With the chance ``carry`` an interest has one number for all domains, else one for each.
    """
    draws = stream(settings, f"taste {user}")
    numbers = []
    for _ in range(settings.interests):
        carried, common = draws.random() < settings.carry, draws.random()
        own = [draws.random() for _ in range(settings.domains)]
        numbers.append([common] * settings.domains if carried else own)
    tastes = []
    for liked in zip(*numbers, strict=True):
        weights = [math.exp(settings.sharpness * (number - 1)) for number in liked]
        tastes.append([weight / math.fsum(weights) for weight in weights])
    return tastes


def _followers(settings: MarketSettings, place: int, fashion: Fashion) -> frozenset[int]:
    draws = stream(settings, f"fashion {place}")
    return frozenset(draws.sample(range(settings.users), round(fashion.share * settings.users)))
