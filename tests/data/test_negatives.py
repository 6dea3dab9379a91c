"""Negatives: never known of the user, never twice, in proportion to popularity; or exactly those of a file."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from simengine.data import (
    AtomicSettings,
    Dataset,
    Interaction,
    MarketSettings,
    PopularityNegatives,
    RecordedNegatives,
    load,
    with_drawn_candidates,
)
from simengine.errors import InputError


def market_of(write, log: list[tuple[str, str]], items: int, **settings: object) -> Dataset:
    """A data set from (user, item) pairs in order of time."""
    folder = write(
        {
            "x.inter": "user_id:token|item_id:token\n" + "".join(f"{user}|{item}\n" for user, item in log),
            "x.item": "item_id:token|title:token_seq\n" + "".join(f"{item}|Title {item}\n" for item in range(items)),
        }
    )
    return load(AtomicSettings(format="atomic", path=folder, **settings))


def with_popular(items: int) -> list[tuple[str, str]]:
    """User ``me`` takes items 0-4; others see to it that each item is in someone's training part."""
    mine = [("me", str(item)) for item in range(5)]
    return mine + [(f"other{item}", str(item)) for item in range(items)]


def test_negatives_are_distinct_and_never_known_of_the_user(write):
    # Field case 40: a catalogue of 30, a user with 5, 19 negatives asked for.
    table = PopularityNegatives(market_of(write, with_popular(30), 30))
    for seed in range(50):
        drawn = table.draw("me", random.Random(seed), 19)
        assert len(drawn) == len(set(drawn)) == 19
        assert not set(drawn) & {"0", "1", "2", "3", "4"}


def test_too_few_available_gives_fewer(write):
    # Field case 40: a catalogue of 10, a user with 5, 19 negatives asked for: only 5 can be.
    dataset = market_of(write, with_popular(10), 10)
    assert sorted(PopularityNegatives(dataset).draw("me", random.Random(0), 19)) == ["5", "6", "7", "8", "9"]
    filled = with_drawn_candidates(dataset, 19, seed=0)
    assert filled.cases[0].candidates == ("4", "5", "6", "7", "8", "9")
    assert "1 test cases have fewer than 19 negatives to draw" in filled.notes


def test_nothing_to_draw_gives_nothing(write):
    table = PopularityNegatives(market_of(write, [("me", "0"), ("me", "1")], 5))
    assert table.draw("me", random.Random(0)) == ()


def test_draws_are_in_proportion_to_popularity_in_training_parts(write):
    # Item 1 is in three training parts, 2 in two, 3 in one. Item 4 is only tested on, so it is never drawn. The chance
    # of (1, 2) as first two draws is 3/6 * 2/3 = 1/3, of 1 first 1/2.
    log = [("me", "0"), ("me", "9")]
    log += [(f"u{number}", item) for number, item in enumerate("111223")]
    log += [(f"u{number}", "4") for number in range(6)]
    table = PopularityNegatives(market_of(write, log, 10))
    stream = random.Random(11)
    draws = Counter(table.draw("me", stream, 2) for _ in range(6000))
    assert set("".join("".join(pair) for pair in draws)) == set("123")
    first = Counter(pair[0] for pair in draws.elements())
    assert first["1"] / 6000 == pytest.approx(3 / 6, abs=0.03)  # four and a half standard deviations
    assert first["2"] / 6000 == pytest.approx(2 / 6, abs=0.03)
    assert draws["1", "2"] / 6000 == pytest.approx(1 / 3, abs=0.03)


def test_the_fallback_keeps_the_law(write):
    # Item 0 is known and makes up 600 of 606 weights, so rejection nearly always gives up: the law must be the same.
    log = [("me", "0"), ("me", "9")]
    log += [(f"v{number}", "0") for number in range(600)]
    log += [(f"u{number}", item) for number, item in enumerate("111223")]
    table = PopularityNegatives(market_of(write, log, 10))
    stream = random.Random(13)
    first = Counter(table.draw("me", stream)[0] for _ in range(6000))
    assert set(first) == set("123")
    assert first["1"] / 6000 == pytest.approx(3 / 6, abs=0.03)


def test_equal_streams_draw_equally():
    table = PopularityNegatives(load(MarketSettings(format="market", seed=3)))
    draws = [[table.draw(user, random.Random(1), 3) for user in ("u1", "u2")] for _ in range(2)]
    assert draws[0] == draws[1]


def recorded(folder: Path, rows: list[dict[str, object]], **settings: object) -> Dataset:
    (folder / "negatives.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return load(AtomicSettings(format="atomic", path=folder, negatives="negatives.jsonl", **settings))


def row(user: str, item: str, *negatives: str) -> dict[str, object]:
    return {"user_id": user, "pos_item_id": item, "neg_item_ids": list(negatives), "step": 0}


LOG = [("u", "0"), ("u", "1"), ("u", "2"), ("u", "1"), ("u", "3"), ("u", "4"), ("v", "0")]


def test_recorded_negatives_are_used_as_given_and_repeats_in_order(write, tmp_path):
    market_of(write, LOG, 10)
    dataset = recorded(tmp_path, [row("u", "1", "7"), row("u", "2", "8", "9"), row("u", "1", "4"), row("v", "0", "1")])
    negatives = RecordedNegatives(dataset)
    assert [negatives.of(each) for each in dataset.train] == ["7", "8", "4"]
    assert "1 recorded negatives are items of the user's own; they are used as given" in dataset.notes
    assert "1 recorded negatives belong to no interaction that is re-enacted" in dataset.notes


@pytest.mark.parametrize(
    ("rows", "where", "problem"),
    [
        ([row("u", "1", "7"), row("u", "2", "8")], {"user": "u", "item": "1", "time": 4}, "no negative is recorded"),
        ([row("u", "1", "77")], {"line": 1, "field": "neg_item_ids"}, "negative '77' is not in the item table"),
        ([row("u", "1", "7"), row("u", "2")], {"line": 2, "field": "neg_item_ids"}, "the row names no negative"),
        ([{"user_id": "u"}], {"line": 1}, "this is no row of recorded negatives"),
    ],
)
def test_a_wrong_record_is_named(write, tmp_path, rows, where, problem):
    market_of(write, LOG, 10)
    with pytest.raises(InputError) as caught:
        recorded(tmp_path, rows)
    assert problem in caught.value.problem
    assert caught.value.where == {"file": str(tmp_path / "negatives.jsonl"), **where}


def test_recorded_negatives_must_have_been_asked_for(write):
    with pytest.raises(InputError, match="no recorded negatives"):
        RecordedNegatives(market_of(write, LOG, 10))


@pytest.mark.parametrize(("name", "own"), [("dense", 24), ("sparse", 7)])
def test_real_selections(real_data: Path, name, own):
    # 500 recorded steps; so many negatives are the user's own, as the data's description counts them.
    path = real_data / f"agentcf-cds-{name}"
    dataset = load(AtomicSettings(format="atomic", path=path, negatives="recorded/selections.jsonl"))
    rows = [json.loads(line) for line in (path / "recorded" / "selections.jsonl").read_text("utf-8").splitlines()]
    expected = {(each["user_id"], each["pos_item_id"], each["step"] + 2): each["neg_item_ids"][0] for each in rows}
    found = {(each.user, each.item, each.time): negative for each, negative in dataset.recorded_negatives.items()}
    assert found == expected
    assert len(found) == 500
    assert f"{own} recorded negatives are items of the user's own; they are used as given" in dataset.notes
    trial = load(AtomicSettings(format="atomic", path=path, negatives="recorded/selections.jsonl", users=20))
    assert list(trial.recorded_negatives) == list(trial.train)
    assert isinstance(next(iter(trial.recorded_negatives)), Interaction)
