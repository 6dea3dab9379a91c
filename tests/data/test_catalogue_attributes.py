"""Dates, prices, makers and descriptions of the invented catalogue: drawn by lot, and telling no taste."""

from __future__ import annotations

import re
from datetime import date

import pytest

from simengine.data import MarketSettings, load
from simengine.data.catalogue import INTERESTS, phrases
from simengine.data.catalogue_attributes import FIRST_DATE, LAST_DATE
from simengine.data.catalogue_words import DOMAINS

MAKERS = {"album": {"brand"}, "film": {"brand"}, "book": {"publisher"}, "game": {"developer", "publisher"}}


def market(**said):
    return load(MarketSettings(format="market", **said))


@pytest.fixture(scope="module")
def everything():
    return market(items=2400, interests=12, domains=4)


def test_every_item_has_a_date_a_price_makers_and_a_description(everything):
    for item in everything.items.values():
        assert set(item.extra) == {"release_date", "price", "description", *MAKERS[item.domain]}
        assert FIRST_DATE <= date.fromisoformat(item.extra["release_date"]) <= LAST_DATE
        assert re.fullmatch(r"\d+(\.\d\d)?", item.extra["price"])
        assert all(item.extra.values())


def test_they_vary_and_recent_items_are_more():
    games = market(items=2000, domains=["game"], noun="game").items.values()
    years = [int(item.extra["release_date"][:4]) for item in games]
    # The density rises from nothing, so that three quarters came out in the later half of the 25.8 years, with a
    # standard deviation of 1 %.
    assert sum(item.extra["release_date"] > "2010-12-01" for item in games) / 2000 == pytest.approx(0.75, abs=0.04)
    assert set(range(2002, 2024)) <= set(years)
    prices = [item.extra["price"] for item in games]
    assert prices.count("0") / 2000 == pytest.approx(2 / 12, abs=0.04) and len(set(prices)) == 9
    assert 200 < len({item.extra["developer"] for item in games}) < 396


def test_a_description_names_the_phrases_of_its_own_item_alone(everything):
    known = {phrase for interest in range(len(INTERESTS)) for domain in DOMAINS for phrase in phrases(interest, domain)}
    patterns = {phrase: re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE) for phrase in known}
    for item in list(everything.items.values())[:200]:
        _, *own = item.category.split("; ")
        told = " ".join(item.extra.values())
        assert {phrase for phrase in known if patterns[phrase].search(told)} == set(own)


def test_they_come_from_the_seed_and_change_nothing_else():
    assert [dict(item.extra) for item in market(seed=2).items.values()] == [
        dict(item.extra) for item in market(seed=2, users=3, planted=False, skew=2).items.values()
    ]
    one, other = market(seed=2), market(seed=3)
    assert [dict(item.extra) for item in one.items.values()] != [dict(item.extra) for item in other.items.values()]
