"""An invented audience: users with latent tastes take items of a given table. A function of settings and table."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

from simengine.data.dataset import Dataset, Item
from simengine.data.settings import AudienceSettings
from simengine.data.sources import Watch, read_items
from simengine.data.visits import Shelf, of_visits, visits, zipf
from simengine.errors import InputError


def make_audience(settings: AudienceSettings, watch: Watch) -> Dataset:
    """The audience of these settings, split leave-one-out; the candidates of a test are what was shown at that visit.

    A user likes each category of the table so or so much, and an item as much as its categories in the mean; one of
    none as much as all of them. At a visit he is shown items that he has not taken yet, drawn by a Zipf law over a
    random ranking of the table, and takes one of them, drawn by how much he likes it. Raises :class:`InputError`.
    """
    items, sha256, notes = read_items(settings.items, settings.noun, watch)
    if len(items) <= settings.interactions:
        raise InputError(
            f"{len(items)} items do not suffice for {settings.interactions} interactions of a user and a negative",
            remedy="Lower data.interactions, or name a larger table under data.items.",
            file=str(settings.items.path),
        )
    categories = [categories_of(item) for item in items.values()]
    shelf = Shelf(range(len(items)), zipf(len(items), settings.skew, _stream(settings, "popularity")))
    users = tuple(f"u{number + 1}" for number in range(settings.users))
    made = [
        tuple(
            visits(
                settings.interactions,
                partial(_stream, settings, user=user),
                lambda: shelf,
                _liking(taste(settings, user, categories), categories),
            )
        )
        for user in users
    ]
    return of_visits(
        users,
        items,
        made,
        clock=settings.clock,
        name=settings.items.path.resolve().name,
        noun=settings.noun,
        digest=_digest(settings, sha256),
        notes=(*notes, *_notes(categories)),
    )


def categories_of(item: Item) -> tuple[str, ...]:
    """The categories of an item, which stand in its category with semicolons between them."""
    return tuple(filter(None, map(str.strip, item.category.split(";"))))


def taste(settings: AudienceSettings, user: str, categories: Sequence[Sequence[str]]) -> Mapping[str, float]:
    """How much a user likes each category: ``exp(sharpness (x - 1))`` of a uniform number x, so 1 at most."""
    draws = _stream(settings, "taste", user)
    known = sorted({one for some in categories for one in some})
    return {one: math.exp(settings.sharpness * (draws.random() - 1)) for one in known}


def _liking(likes: Mapping[str, float], categories: Sequence[Sequence[str]]) -> Callable[[int, float], float]:
    """How much a user likes the item of a number, the same on all days."""
    usual = fmean(likes.values()) if likes else 1.0
    return lambda number, _: fmean(map(likes.__getitem__, categories[number])) if categories[number] else usual


def _stream(settings: AudienceSettings, purpose: str, user: str = "") -> random.Random:
    """Random numbers for one purpose: what is drawn for one changes nothing for another."""
    return random.Random(f"audience {settings.seed} {purpose} {user}")


def _digest(settings: AudienceSettings, items: str) -> str:
    """The SHA-256 of the settings and of the item table, wherever it lies."""
    said = settings.model_dump(mode="json", exclude={"noun": True, "items": {"path"}})
    return hashlib.sha256(json.dumps([said, items], separators=(",", ":")).encode()).hexdigest()


def _notes(categories: Sequence[Sequence[str]]) -> list[str]:
    kinds = len({one for some in categories for one in some})
    if not kinds:
        return ["users, tastes and popularity are invented; no item has a category, so that all are liked alike"]
    return [f"users, their tastes for {kinds} categories and the popularity of items are invented, the items given"]
