"""An invented audience: it takes the items of a given table, by its tastes, and depends on settings and table alone."""

from __future__ import annotations

import math
import shutil
from collections import Counter

import pytest
from pydantic import TypeAdapter, ValidationError

from simengine.data import AudienceSettings, DataSettings, load
from simengine.data.audience import categories_of, taste
from simengine.errors import InputError

TABLE = "item_id:token|title:token_seq|category:token_seq|price:float\n" + "".join(
    f"{number}|Title {number}|{('Red', 'Blue', 'Red; Blue', '')[number % 4]}|{number}.50\n" for number in range(1, 41)
)
GAMES = (
    "AppID,Name,Developer,Genre,Categories,Price_USD,Release_Date\n"
    '1,"One, Two",Dev & Co,"Action, Indie","Single-player, Co-op",9.99,11/1/2000\n'
    "2,b,,Indie,,0,2010/07\n"
    "3,<b>Bold</b> &amp; Free,Dev,,,Free to Play,\n"
)


def settings(path, form="atomic", **said):
    return AudienceSettings(format="audience", items={"format": form, "path": path}, **said)


@pytest.fixture
def folder(write):
    return write({"shop.item": TABLE})


def test_an_audience_has_the_items_of_the_table_and_the_sizes_of_the_settings(folder):
    dataset = load(settings(folder, users=7, interactions=6, noun="thing"))
    assert (len(dataset.users), len(dataset.items), len(dataset.cases)) == (7, 40, 7)
    assert dataset.items["2"].title == "Title 2" and dataset.items["2"].extra["price"] == "2.50"
    assert (len(dataset.train), len(dataset.history)) == (7 * 3, 7 * 2)
    assert (dataset.noun, dataset.unit) == ("thing", "step")
    for case in dataset.cases:
        assert len(set(case.candidates)) == 10 and len(set(case.history)) == 5
        assert set(case.candidates) & dataset.own[case.user] == {case.target}
    assert dataset.notes == (
        "users, their tastes for 2 categories and the popularity of items are invented, the items given",
    )


def test_it_is_a_function_of_the_settings_and_the_bytes_of_the_table(folder, tmp_path):
    def told(**said):
        found = load(settings(folder, **said))
        return list(found.train), found.cases

    assert told(seed=3) == told(seed=3) != told(seed=4)
    digest = load(settings(folder, seed=3)).digest
    other = tmp_path / "elsewhere"
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns("elsewhere"))
    assert load(settings(other, seed=3, noun="thing")).digest == digest
    assert load(settings(folder, seed=4)).digest != digest
    (other / "shop.item").write_text((other / "shop.item").read_text(encoding="utf-8").replace("40.50", "41"))
    assert load(settings(other, seed=3)).digest != digest


def test_users_take_what_they_like(folder):
    # By chance a quarter of the items are red alone and a quarter blue alone. With so sharp a taste, who likes red e**9
    # times better takes hardly anything that is blue alone.
    said = settings(folder, users=200, sharpness=30, skew=0)
    dataset = load(said)
    categories = [categories_of(item) for item in dataset.items.values()]
    taken: Counter[bool] = Counter()
    for user in dataset.users:
        likes = taste(said, user, categories)
        if abs(math.log(likes["Red"] / likes["Blue"])) > 9:
            better = max(likes, key=likes.__getitem__)
            alone = [it for it in dataset.own[user] if len(categories_of(dataset.items[it])) == 1]
            taken.update(categories_of(dataset.items[it]) == (better,) for it in alone)
    assert taken[True] > 100 and taken[False] < 0.05 * taken[True]


def test_without_a_taste_items_are_taken_by_popularity_alone(folder):
    dataset = load(settings(folder, users=400, sharpness=0, skew=0, interactions=4))
    taken = Counter(categories_of(dataset.items[item]) for own in dataset.own.values() for item in own)
    # 1,600 interactions over four equally many kinds: 400 each, with a standard deviation of 17 at most.
    assert len(taken) == 4 and all(330 < count < 470 for count in taken.values())


def test_a_table_without_categories_is_said_to_be_so(write):
    rows = "item_id:token|title:token_seq\n" + "".join(f"{number}|T{number}\n" for number in range(20))
    dataset = load(settings(write({"x.item": rows})))
    assert dataset.notes == (
        "users, tastes and popularity are invented; no item has a category, so that all are liked alike",
    )


def test_the_games_of_steam_are_read_as_those_beside_reviews_are(tmp_path):
    (tmp_path / "steam_games.csv").write_text(GAMES, encoding="utf-8")
    dataset = load(settings(tmp_path, "steam", users=2, interactions=2, noun="game"))
    one, two, three = dataset.items.values()
    assert (one.title, one.category, one.extra["tags"]) == ("One, Two", "Action; Indie", "Single-player; Co-op")
    assert (one.extra["developer"], one.extra["price"], one.extra["release_date"]) == ("Dev & Co", "9.99", "11/1/2000")
    assert (two.title, two.extra["price"]) == ("b", "0")
    assert (three.title, three.category, three.extra["price"]) == ("Bold & Free", "", "0")


def test_what_is_missing_is_named(tmp_path, folder):
    with pytest.raises(InputError, match="there is no such folder") as caught:
        load(settings(tmp_path / "nowhere"))
    assert "data.items.path" in caught.value.remedy
    with pytest.raises(InputError, match="one file of games is wanted, here is none"):
        load(settings(folder, "steam"))
    with pytest.raises(InputError, match="40 items do not suffice for 40 interactions") as caught:
        load(settings(folder, interactions=40))
    assert "data.interactions" in caught.value.remedy


def test_settings_are_strict(tmp_path):
    check = TypeAdapter(DataSettings).validate_python
    assert check({"format": "audience", "items": {"format": "steam", "path": "x"}}).users == 40
    for wrong in ({"format": "audience"}, {"format": "audience", "items": {"format": "csv", "path": "x"}}):
        with pytest.raises(ValidationError):
            check(wrong)


def test_real_games(real_data):
    dataset = load(settings(real_data / "steam-items", "steam", users=50, noun="game"))
    assert len(dataset.items) == 4000
    assert "users, their tastes for 27 categories and the popularity of items are invented" in dataset.notes[0]
