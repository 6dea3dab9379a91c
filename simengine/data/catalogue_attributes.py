"""What the invented catalogue tells of an item beside its category: date, price, makers, a description. All made up.

Drawn by lot, alike for all interests, so that none of it tells who would like an item. A description names the item's
own style and features, and no others.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType

FIRST_DATE = date(1998, 1, 1)
LAST_DATE = date(2023, 10, 31)
"""Items came out from the first to the last date, which is before the first visit of any user; recent ones are more."""

_PRICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "album": ("4.99", "7.99", "9.99", "9.99", "11.99", "14.99", "19.99"),
        "film": ("3.99", "5.99", "7.99", "9.99", "9.99", "14.99", "19.99"),
        "book": ("2.99", "4.99", "7.99", "9.99", "12.99", "16.99", "24.99"),
        "game": ("0", "0", "2.99", "4.99", "9.99", "9.99", "14.99", "19.99", "19.99", "29.99", "39.99", "59.99"),
    }
)
"""By domain the prices that there are, those listed twice twice as often; a game may be free."""

_SYLLABLES = (
    ("Bram", "Cor", "Dask", "Elm", "Fen", "Garr", "Hult", "Jost", "Kest", "Lumm", "Marr", "Nim"),
    ("bel", "dric", "fold", "mont", "nova", "quist", "ridge", "sted", "vane", "wick", "yard"),
)
_MAKERS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "album": {"brand": ("Records", "Sound", "Tapes")},
        "film": {"brand": ("Pictures", "Films", "Features")},
        "book": {"publisher": ("Press", "Books", "House")},
        "game": {"developer": ("Works", "Studio", "Interactive"), "publisher": ("Entertainment", "Publishing")},
    }
)
"""By domain which columns of makers there are, and the second words of the names in each."""

_OPENINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "album": ("An album of", "A record in the manner of", "A collection that keeps to"),
        "film": ("A film in the vein of", "A feature of the kind called", "A picture that leans on"),
        "book": ("A book in the tradition of", "A volume of", "A title for readers of"),
        "game": ("A game in the style of", "A take on", "A journey into"),
    }
)
_ENDINGS = (
    "Easy to begin with and hard to put aside.",
    "Made by a small team over many years.",
    "For those who know its kind, and for newcomers.",
    "Short, dense and full of surprises.",
    "It takes its time and rewards patience.",
    "Praised for its attention to detail.",
)


def attributes(domain: str, style: str, features: Sequence[str], draws: random.Random) -> Mapping[str, str]:
    """The item's further columns by name, texts as an item table has them: ``release_date`` (ISO), ``price`` (plain
    number), makers, ``description``."""
    days = (LAST_DATE - FIRST_DATE).days
    released = FIRST_DATE + timedelta(days=int(draws.triangular(0, days, days)))
    price = draws.choice(_PRICES[domain])
    makers = {column: f"{_name(draws)} {draws.choice(words)}" for column, words in _MAKERS[domain].items()}
    opening, ending = draws.choice(_OPENINGS[domain]), draws.choice(_ENDINGS)
    description = f"{opening} {style}, with {' and '.join(features)}. {ending}"
    return MappingProxyType(
        {"release_date": released.isoformat(), "price": price, **makers, "description": description}
    )


def _name(draws: random.Random) -> str:
    return "".join(draws.choice(part) for part in _SYLLABLES)
