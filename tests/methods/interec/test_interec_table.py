from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from interec_games import GAMES, shop_data

from simengine.data import AtomicSettings, Item, load
from simengine.methods.interec.table import build
from simengine.methods.interec.vocabulary import Titles


def _rows(image: bytes, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(image)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_items_have_dense_ids_from_one_and_columns_that_have_values() -> None:
    table = build(shop_data())
    assert [column.name for column in table.columns] == ["id", "title", "release_date", "tags", "price", "visits"]
    rows = _rows(table.image, "SELECT * FROM items ORDER BY id")
    assert [row[0] for row in rows] == list(range(1, len(GAMES) + 1))
    assert rows[1] == (2, "Portal 2", "2011-04-18", "|Puzzle|Co-op|", 9.99, 3)
    assert rows[2][2] == "1998"
    assert rows[7][2] == "2015-05-18"
    assert rows[9][2:5] == (None, "|Puzzle Platformer|", None)
    assert table.visits[3] == 3


@pytest.mark.parametrize(
    ("category", "tags"),
    [
        (["Action Sci-Fi", "Sci-Fi", "Action", "Action War", "War Sci-Fi"], ["Action", "Sci-Fi"]),
        (["Action; Sci-Fi", "Sci-Fi"], ["Action", "Sci-Fi"]),
        (["Movies & TV", "All Beauty"], ["Movies & TV"]),
    ],
)
def test_tags_are_parted_as_the_data_part_them(category: list[str], tags: list[str]) -> None:
    table = build(shop_data([Item(f"g{at}", f"T{at}", it) for at, it in enumerate(category)], {"u": ("g0",)}))
    assert _rows(table.image, "SELECT tags FROM items WHERE id = 1") == [(f"|{'|'.join(tags)}|",)]


def test_a_year_behind_the_title_is_the_release_date() -> None:
    items = [Item("a", "The Matrix (1999)"), Item("b", "Blade (1998)", extra={"release_year": "2004"})]
    table = build(shop_data(items, {"u": ("a",)}))
    assert table.titles == ("The Matrix", "Blade (1998)")
    assert _rows(table.image, "SELECT release_date FROM items") == [("1999",), ("2004",)]


def test_the_planner_is_shown_ranges_and_values_near_the_request() -> None:
    described = {it.name: it for it in build(shop_data()).describe("some rpgs in an open-world please")}
    assert described["tags"].near == ("Open World", "RPG")
    assert described["tags"].others[0] == "Action"
    assert (described["price"].low, described["price"].high) == (0.0, 39.99)
    assert described["release_date"].low == "1998"
    assert "near your request: Open World, RPG; others: " in str(described["tags"])


def test_nothing_is_near_an_empty_request() -> None:
    assert all(not it.near for it in build(shop_data()).describe(" \n"))


TITLES = [title for _, title, *_ in GAMES]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("b", ["b"]),
        ("B", ["b"]),
        ("a", []),
        ("Portal", ["Portal"]),
        ("portal 2", ["Portal 2"]),
        ("Portal II", []),
        ("Portal 3", []),
        ("Portal: Prelude", []),
        ("I liked Portal 2 a lot", []),
        ("half life", ["Half-Life"]),
        ("Half-Life 2", ["Half-Life 2"]),
        ("Half-Life 3", []),
        ("Half-Life: Alyx", []),
        ("原神", ["原神"]),
        ("原", []),
        ("Мор. Утопия", ["Мор. Утопия"]),
        ("мор утопия", ["Мор. Утопия"]),
        ("Мор", []),
        ("The Witcher 3: Wild Hunt", ["The Witcher 3: Wild Hunt"]),
        ("Witcher 3: Wild Hunt", ["The Witcher 3: Wild Hunt"]),
        ("The Witcher 3", []),
        ("Counter-Strike", ["Counter-Strike"]),
        ("Counter-Strike: Source", ["Counter-Strike: Source"]),
        ("Counter-Strike: Sorce", ["Counter-Strike: Source"]),
        ("Football Tactics and Glory", ["Football, Tactics & Glory"]),
        ("Pоrtal", []),  # with a Cyrillic letter
        ("", []),
    ],
)
def test_a_title_means_the_right_item_or_none(asked: str, meant: list[str]) -> None:
    assert [TITLES[at] for at in Titles(TITLES).find(asked).named] == meant


def test_a_title_of_two_items_is_ambiguous() -> None:
    found = Titles(TITLES).find("Twins")
    assert (found.at, found.reason, found.named) == (None, "ambiguous", (10, 11))


def test_a_subtitle_is_not_left_out_where_the_bare_title_is_missing() -> None:
    titles = Titles(["Portal: Prelude", "Angela's Ashes [DVD]"])
    assert titles.find("Portal").reason == "unmatched"
    assert titles.find("Angela's Ashes").at == 1


def test_every_title_of_movielens_means_its_film_or_is_ambiguous(real_data: Path) -> None:
    data = load(AtomicSettings(format="atomic", path=real_data / "ml-100k", noun="film"))
    table = build(data)
    assert len(table) == 1682
    assert len(table.words["tags"]) == 19
    wrong = [at for at, title in enumerate(table.titles) if at not in table.by_title.find(title).named]
    assert wrong == []
    assert sum(table.by_title.find(title).at is None for title in table.titles) < 60  # 22 titles occur twice
