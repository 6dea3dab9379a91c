"""An invented market: users with latent tastes take items that they are shown. A function of its settings."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence

from simengine.data.catalogue import domain_of, interest_of, make_items, shelves
from simengine.data.dataset import Dataset
from simengine.data.market_truth import Truth, market_truth, stream
from simengine.data.settings import Fashion, MarketSettings
from simengine.data.visits import Shelf, Visit, of_visits, visits, zipf


def make_market(settings: MarketSettings) -> Dataset:
    """The market of these settings, split leave-one-out; the candidates of a test are what was shown at that visit.

    At a visit a user is shown items of one domain, drawn by lot, that he has not taken yet, drawn by a Zipf law over a
    random ranking of all items, and takes one of them, drawn by how much he likes its interest in that domain at that
    time; on the null market by lot. So whatever was shown could have been the target, and what tells them apart is
    taste alone.
    """
    truth = market_truth(settings)
    streams = stream(settings, "catalogue"), stream(settings, "attributes")
    items = make_items(settings.items, settings.interests, settings.sold, *streams)
    popularity = zipf(settings.items, settings.skew, stream(settings, "popularity"))
    shown = [Shelf(shelf, popularity) for shelf in shelves(settings.items, settings.interests, len(settings.sold))]
    made = [tuple(_visits(settings, truth, shown, user)) for user in range(settings.users)]
    return of_visits(
        truth.users,
        items,
        made,
        clock=settings.clock,
        name="market",
        noun=settings.noun,
        digest=_digest(settings),
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


def _visits(settings: MarketSettings, truth: Truth, shown: Sequence[Shelf], user: int) -> Iterator[Visit]:
    """The visits of one user, in order."""
    wish = stream(settings, f"domain {user}")
    return visits(
        settings.interactions,
        lambda purpose: stream(settings, f"{purpose} {user}"),
        lambda: shown[wish.randrange(len(shown))],
        lambda number, day: _liking(settings, truth, user, number, day),
    )


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
