"""The invented catalogue: items with titles that never repeat, each of one interest and one domain."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType

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


def phrases(interest: int, domains: int) -> tuple[str, ...]:
    """All styles and features of an interest in the first so many domains: who names one, names the interest."""
    return tuple(phrase for style, features in STYLES[INTERESTS[interest]][:domains] for phrase in (style, *features))


def make_items(items: int, interests: int, domains: int, stream: random.Random) -> Mapping[str, Item]:
    """So many items by id. A category is a style and some of its features, behind the domain where there are several.

    The domain stands in ``extra``.
    """
    made = {}
    for number in range(items):
        domain = domain_of(number, interests, domains)
        style, features = STYLES[INTERESTS[interest_of(number, interests)]][domain]
        parts = [DOMAINS[domain]] * (domains > 1) + [style, *stream.sample(features, FEATURES)]
        name, ident = title(number), f"i{number + 1}"
        made[ident] = Item(ident, name, "; ".join(parts), name, MappingProxyType({"domain": DOMAINS[domain]}))
    return MappingProxyType(made)
