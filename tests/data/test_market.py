"""The invented market: a function of its settings, with tastes and popularity as strong as they ask for."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import combinations

import pytest
from pydantic import TypeAdapter, ValidationError

from simengine.data import DataSettings, MarketSettings, load
from simengine.data.catalogue import INTERESTS, phrases, title
from simengine.data.catalogue_words import DOMAINS, STYLES


def market(**settings):
    return load(MarketSettings(format="market", **settings))


def snapshot(dataset):
    return list(dataset.train), list(dataset.history), dataset.cases, list(dataset.items.values()), dataset.digest


def test_equal_settings_make_equal_markets():
    assert snapshot(market(seed=5)) == snapshot(market(seed=5))
    assert snapshot(market(seed=5))[:3] != snapshot(market(seed=6))[:3]
    assert market(seed=5).digest != market(seed=6).digest
    assert market(noun="disc").digest == market().digest


def test_shape_and_candidates():
    dataset = market(users=30, items=60, interactions=7)
    assert (len(dataset.users), len(dataset.items), len(dataset.cases)) == (30, 60, 30)
    assert (len(dataset.train), len(dataset.history)) == (30 * 4, 30 * 2)
    for case in dataset.cases:
        assert len(case.candidates) == len(set(case.candidates)) == 10
        assert set(case.candidates) & dataset.own[case.user] == {case.target}
        assert len(set(case.history)) == 6
    assert dataset.notes == ()


def test_titles_never_repeat():
    assert len({title(number) for number in range(5000)}) == 5000
    titles = [item.title for item in market(items=2000).items.values()]
    assert len(set(titles)) == 2000


def test_a_tiny_market_says_how_little_it_can_show():
    dataset = market(users=3, items=6, interactions=5)
    assert all(case.target in case.candidates for case in dataset.cases)
    assert {len(case.candidates) for case in dataset.cases} == {2}
    assert dataset.notes == ("only 2 items are left to be shown at the last visit",)


def test_what_is_hardly_ever_shown_is_still_shown_when_nothing_else_is_left():
    # By the Zipf law the last items have a chance of 40 ** -9 each, which no number of attempts would meet.
    dataset = market(users=2, items=40, interactions=35, skew=9)
    assert all(len(items) == 35 for items in dataset.own.values())


def share_of_favourite(dataset) -> float:
    """Mean over users of the share of their items that belong to their most frequent style."""
    shares = []
    for items in dataset.own.values():
        styles = Counter(dataset.items[item].category.split(";")[0] for item in items)
        shares.append(max(styles.values()) / len(items))
    return sum(shares) / len(shares)


def top_share(dataset) -> float:
    """Share of all interactions that the ten most frequent items have."""
    counts = Counter(item for items in dataset.own.values() for item in items)
    return sum(count for _, count in counts.most_common(10)) / sum(counts.values())


def test_sharpness_and_skew_do_what_they_say():
    size = {"users": 200, "items": 120, "interests": 6}
    flat, sharp = (share_of_favourite(market(sharpness=value, skew=0, **size)) for value in (0, 12))
    assert flat < 0.45 < 0.6 < sharp
    even, skewed = (top_share(market(skew=value, sharpness=0, **size)) for value in (0, 1.2))
    assert even < 0.15 < 0.3 < skewed


def place_of_target(dataset) -> float:
    """Mean over the test cases of the target's place among the candidates in order of popularity, 0 to 1."""
    counts = Counter(row.item for row in dataset.training_part)
    places = []
    for case in dataset.cases:
        others = [counts[item] for item in case.candidates if item != case.target]
        below = sum((count < counts[case.target]) + (count == counts[case.target]) / 2 for count in others)
        places.append(below / len(others))
    return sum(places) / len(places)


def test_on_the_null_market_any_candidate_could_have_been_the_target():
    # The mean of n uniform places has the standard deviation 1 / sqrt(12 n): 0.0065 for 2,000 users.
    dataset = market(users=2000, planted=False, skew=1.2)
    assert abs(place_of_target(dataset) - 0.5) < 0.02
    assert share_of_favourite(dataset) == pytest.approx(share_of_favourite(market(users=2000, sharpness=0)), abs=0.02)


def test_the_null_market_has_the_sizes_and_words_of_the_planted_one():
    planted, null = market(), market(planted=False)
    assert list(planted.items.values()) == list(null.items.values())
    assert planted.users == null.users
    assert [len(part) for part in (planted.train, planted.history)] == [
        len(part) for part in (null.train, null.history)
    ]
    assert planted.digest != null.digest


def test_clocks():
    steps, times = market(clock="step"), market(clock="time")
    assert (steps.unit, times.unit) == ("step", "s")
    assert {row.time for row in steps.train} == {2, 3, 4, 5, 6}
    assert list(times.train.time) == sorted(times.train.time)
    assert {case.user: case.history for case in steps.cases} == {case.user: case.history for case in times.cases}


def test_all_styles_can_be_used():
    items = market(items=200, interests=12, domains=4).items.values()
    assert {item.category.split("; ")[1] for item in items} == {
        style for styles in STYLES.values() for style, _ in styles
    }


def test_no_phrase_of_an_interest_can_be_found_in_one_of_another():
    owned = [
        (interest, phrase)
        for interest in range(len(INTERESTS))
        for domain in DOMAINS
        for phrase in phrases(interest, domain)
    ]
    assert len(owned) == 12 * (1 + 6 + 3 * (1 + 4))
    for interest, phrase in owned:
        found = re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE)
        assert {other for other, text in owned if found.search(text)} == {interest}


def test_domains_share_out_the_items_of_each_interest():
    dataset = market(items=48, interests=3, domains=4)
    counts = Counter((item.domain, item.category.split("; ")[1]) for item in dataset.items.values())
    assert len(counts) == 12 and set(counts.values()) == {4}
    assert all(item.category.startswith(f"{item.domain}; ") for item in dataset.items.values())
    assert dataset.noun == "item"
    assert market().noun == "album"


def test_domains_can_be_named():
    named, counted = market(domains=["album", "film"]), market(domains=2)
    assert list(named.items.values()) == list(counted.items.values())
    assert list(named.train) == list(counted.train)
    assert {item.domain for item in market(domains=["game", "book"]).items.values()} == {"game", "book"}


def test_words_do_not_cross_domains():
    # A stem of five letters stands for a word, so that `romance` and `romances` count as one.
    little = {"of", "and", "the", "on", "no", "under"}
    for styles in STYLES.values():
        stems = [
            {word[:5] for word in re.findall(r"[a-z]+", f"{style} {' '.join(features)}".lower())} - little
            for style, features in styles
        ]
        for one, other in combinations(stems, 2):
            assert not one & other


def test_all_that_is_shown_at_a_visit_is_of_one_domain():
    dataset = market(users=30, items=96, domains=3)
    for case in dataset.cases:
        assert {dataset.items[item].domain for item in case.candidates} == {dataset.items[case.target].domain}
    taken = Counter(dataset.items[item].domain for items in dataset.own.values() for item in items)
    # 240 visits, each to one of three domains by lot: 80 each, with a standard deviation of 7.3.
    assert len(taken) == 3 and all(58 < count < 102 for count in taken.values())


def test_a_market_of_one_domain_is_what_it_was():
    # Computed before markets had shelves, named domains and fashions of a domain.
    velvet = {"interest": "Velvet", "share": 0.3, "from_day": 20, "days": 80}
    old = market(users=100, items=150, interactions=12, seed=1, fashions=[velvet])
    assert old.digest.startswith("871efdd9a6d4")
    told = (list(old.train), list(old.history), old.cases, [(i.id, i.title, i.category) for i in old.items.values()])
    text = repr(told).replace(", number=1)", ")")  # cases had no number then
    assert hashlib.sha256(text.encode()).hexdigest().startswith("3b45389e276d4b92")


def test_settings_are_strict():
    adapter = TypeAdapter(DataSettings)
    assert adapter.validate_python({"format": "market", "users": 3}).users == 3
    assert adapter.validate_python({"format": "atomic", "path": "data/x"}).clock is None
    for wrong in ({"format": "market", "user": 3}, {"format": "market", "items": 8, "interactions": 8}, {"path": "x"}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
    with pytest.raises(ValidationError, match="Opera is not among the interests of this market, which are Harbour, G"):
        market(interests=2, fashions=[{"interest": "Opera", "share": 0.5, "from_day": 0, "days": 9}])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"fashions": [{"interest": "Glass", "domain": "film"}]}, "film is not among the domains of this market"),
        ({"fashions": [{"interest": "Glass", "among": "Opera"}]}, "Opera is not among the interests of this market"),
        ({"domains": ["album", "opera"]}, "the domains of a market are some of album, film, book, game"),
        ({"domains": ["film", "film"]}, "each named once"),
        ({"domains": 4, "items": 40}, "a domain has only 6 of the 40 items"),
    ],
)
def test_what_a_market_does_not_know_is_an_error(said, message):
    said["fashions"] = [{"share": 0.5, "from_day": 0, "days": 9, **fashion} for fashion in said.get("fashions", ())]
    with pytest.raises(ValidationError, match=message):
        market(**said)
