"""The invented catalogue: items with titles that never repeat, each of one interest and one domain."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from simengine.data.catalogue_attributes import attributes
from simengine.data.catalogue_words import DOMAINS, STYLES
from simengine.data.dataset import Item

INTERESTS = tuple(STYLES)
"""The names of all interests; an invented market uses the first so many."""

FEATURES = 2
"""How many of its style's features an item has."""

_FIRST = (
    "Amber", "Borrowed", "Crooked", "Distant", "Early", "Fallen", "Gentle", "Hollow", "Idle", "Jagged", "Kindred",
    "Lonely", "Midnight", "Northern", "Open", "Painted", "Quiet", "Restless", "Silver", "Tangled", "Unwritten",
    "Vanishing", "Wandering", "Yellow", "Zigzag",
)  # fmt: skip
_SECOND = (
    "Almanac", "Bridge", "Carousel", "Doorway", "Engine", "Ferry", "Garden", "Hotel", "Island", "Journey", "Kingdom",
    "Letter", "Mirror", "Needle", "Ocean", "Parade", "Quarry", "River", "Signal", "Theatre", "Umbrella", "Valley",
    "Window", "Yard", "Zenith", "Anchor", "Compass", "Feather", "Lighthouse",
)  # fmt: skip


def title(number: int) -> str:
    """The title of this number (from 0): two words, all pairs before any comes back as ``Vol. 2``, ``Vol. 3`` ..."""
    volume, pair = divmod(number, len(_FIRST) * len(_SECOND))
    # The lengths 25 and 29 have no common factor, so the two remainders together are different for every pair.
    words = f"{_FIRST[pair % len(_FIRST)]} {_SECOND[pair % len(_SECOND)]}"
    return words if volume == 0 else f"{words}, Vol. {volume + 1}"


def interest_of(number: int, interests: int) -> int:
    """The interest of the item of this number; items are dealt out in turn, so that each interest has its share."""
    return number % interests


def domain_of(number: int, interests: int, domains: int) -> int:
    """The domain of the item of this number; each interest's items are dealt out over the domains in turn."""
    return number // interests % domains


def shelves(items: int, interests: int, domains: int) -> list[list[int]]:
    """The numbers of the items of each domain."""
    return [
        [number for number in range(items) if domain_of(number, interests, domains) == domain]
        for domain in range(domains)
    ]


def phrases(interest: int, domain: str) -> tuple[str, ...]:
    """The style and the features of an interest in a domain: who names one, names the interest."""
    style, features = STYLES[INTERESTS[interest]][DOMAINS.index(domain)]
    return style, *features


def make_items(
    items: int, interests: int, domains: Sequence[str], stream: random.Random, details: random.Random
) -> Mapping[str, Item]:
    """So many items by id. A category is a style and some of its features, behind the domain if there are several.

    What else there is to tell of an item (``extra``) comes from the stream of ``details``.
    """
    made = {}
    for number in range(items):
        domain = domains[domain_of(number, interests, len(domains))]
        style, *features = phrases(interest_of(number, interests), domain)
        own = stream.sample(features, FEATURES)
        parts = [domain] * (len(domains) > 1) + [style, *own]
        name, ident = title(number), f"i{number + 1}"
        extra = attributes(domain, style, own, details)
        made[ident] = Item(ident, name, "; ".join(parts), name, extra, domain)
    return MappingProxyType(made)
