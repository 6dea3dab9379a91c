"""The invented market: a function of its settings, with tastes and popularity as strong as they ask for."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import TypeAdapter, ValidationError

from simengine.data import DataSettings, MarketSettings, load
from simengine.data.catalogue import STYLES, title


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


def test_a_tiny_market_reports_missing_negatives():
    dataset = market(users=3, items=6, interactions=5)
    assert all(case.target in case.candidates for case in dataset.cases)
    assert [note for note in dataset.notes if note.endswith("test cases have fewer than 9 negatives to draw")]


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


def test_clocks():
    steps, times = market(clock="step"), market(clock="time")
    assert (steps.unit, times.unit) == ("step", "s")
    assert {row.time for row in steps.train} == {2, 3, 4, 5, 6}
    assert list(times.train.time) == sorted(times.train.time)
    assert {case.user: case.history for case in steps.cases} == {case.user: case.history for case in times.cases}


def test_all_styles_can_be_used():
    categories = {item.category.split(";")[0] for item in market(interests=12).items.values()}
    assert categories == {style for style, _ in STYLES}


def test_settings_are_strict():
    adapter = TypeAdapter(DataSettings)
    assert adapter.validate_python({"format": "market", "users": 3}).users == 3
    assert adapter.validate_python({"format": "atomic", "path": "data/x"}).clock is None
    for wrong in ({"format": "market", "user": 3}, {"format": "market", "items": 8, "interactions": 8}, {"path": "x"}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
