"""Questions of the kind "cheap games from 2015 with this tag" on item tables of real data sets and of the invented one.

What is right is counted in the files themselves, or in the data set, without the item table.
"""

from __future__ import annotations

import csv
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from simengine.data import AtomicSettings, AudienceSettings, Dataset, MarketSettings, load
from simengine.methods.interec.bus import Candidates
from simengine.methods.interec.sql import Fence
from simengine.methods.interec.table import ItemTable, build
from simengine.methods.interec.tools import HardFilter, Shop, hard_filter

BEAUTY = ("All_Beauty", "Beauty_and_Personal_Care")


def _none(*_: object) -> np.ndarray:
    return np.zeros(0)


def _filtered(table: ItemTable, where: str) -> set[str]:
    """The ids, in the data set, that a hard filter leaves."""
    shop = Shop(table, Fence(table), _none, _none)
    query = HardFilter(sql=f"SELECT id FROM candidates WHERE {where}")
    _, at = hard_filter(query, Candidates(), shop, random.Random(0))
    return {table.items[it - 1] for it in at.among(len(table))}


def _column(table: ItemTable, name: str) -> list[object]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(table.image)
        return [row[0] for row in connection.execute(f"SELECT {name} FROM items ORDER BY id")]


def _steam(real_data: Path) -> Dataset:
    items = {"format": "steam", "path": real_data / "steam-items"}
    return load(AudienceSettings(format="audience", items=items, users=5, noun="game"))


@pytest.fixture(scope="module")
def steam(real_data: Path) -> ItemTable:
    return build(_steam(real_data))


@pytest.fixture(scope="module")
def published(real_data: Path) -> Sequence[dict[str, str]]:
    with (real_data / "steam-items" / "steam_games.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _is_cheap_indie_of_2015(row: dict[str, str]) -> bool:
    year = next(part for part in row["Release_Date"].split("/") if len(part) == 4)
    return float(row["Price_USD"]) < 10 and year == "2015" and "Indie" in row["Genre"].split(", ")


@pytest.mark.parametrize(
    "where",
    [
        "price < 10 AND release_date LIKE '2015%' AND tags LIKE '%|Indie|%'",
        "Price_USD < 10 AND release_date >= '2015' AND release_date < '2016' AND genre = 'indie'",
        "cost < 10 AND substr(release_date, 1, 4) = '2015' AND tags LIKE '%Indie%'",
    ],
)
def test_cheap_games_from_2015_with_a_tag(steam: ItemTable, published: Sequence[dict[str, str]], where: str) -> None:
    right = {row["AppID"] for row in published if _is_cheap_indie_of_2015(row)}
    assert len(right) > 50
    assert _filtered(steam, where) == right


def test_steam_has_prices_as_numbers_dates_as_iso_and_tags_between_bars(
    steam: ItemTable, published: Sequence[dict[str, str]]
) -> None:
    by_id = {row["AppID"]: row for row in published}
    assert _column(steam, "price") == [float(by_id[item]["Price_USD"]) for item in steam.items]
    dates = dict(zip(steam.items, _column(steam, "release_date"), strict=True))
    assert dates["10"] == "2000-11-01"  # 11/1/2000, month first
    assert {len(str(date)) for date in dates.values()} == {7, 10}  # 2010/07 tells no day
    tags = dict(zip(steam.items, _column(steam, "tags"), strict=True))
    assert tags["30"] == "|Action|Multi-player|Valve Anti-Cheat enabled|"
    assert steam.kind("developer") == "text" and by_id["10"]["Developer"] in steam.words["developer"]


def test_tags_of_several_words_are_shown_where_the_request_names_them(steam: ItemTable) -> None:
    request = "a shooter with Valve Anti-Cheat enabled and shared/split screen pvp, please"
    near = next(it.near for it in steam.describe(request) if it.name == "tags")
    assert {"Valve Anti-Cheat enabled", "Shared/Split Screen PvP"} <= set(near)


def test_the_invented_games_can_be_asked_for_alike() -> None:
    data = load(MarketSettings(format="market", domains=["game"], noun="game", items=1500))
    right = {
        item.id
        for item in data.items.values()
        if float(item.extra["price"]) < 10
        and item.extra["release_date"].startswith("2015")
        and "Port Tycoon" in item.category.split("; ")
    }
    assert right
    table = build(data)
    assert _filtered(table, "price < 10 AND release_date LIKE '2015%' AND tags LIKE '%|Port Tycoon|%'") == right
    assert [it.name for it in table.columns] == [
        "id", "title", "release_date", "tags", "price", "developer", "publisher", "description", "domain", "visits",
    ]  # fmt: skip
    maker = next(iter(data.items.values())).extra["developer"]
    made = {item.id for item in data.items.values() if item.extra["developer"] == maker}
    assert _filtered(table, f"developer = '{maker.lower()}'") == made


def test_films_of_a_year_and_a_kind(real_data: Path) -> None:
    data = load(AtomicSettings(format="atomic", path=real_data / "ml-100k", noun="film", core=5))
    right = {
        item.id
        for item in data.items.values()
        if item.extra["release_year"] == "1995" and {"Comedy", "Romance"} <= set(item.category.split())
    }
    assert right
    where = "release_date LIKE '1995%' AND genre = 'Comedy' AND class LIKE '%Romance%'"
    assert _filtered(build(data), where) == right


def test_beauty_products_by_price(real_data: Path) -> None:
    path = real_data / "amazon2023-multidomain"
    data = load(AtomicSettings(format="atomic", path=path, domains=BEAUTY, noun="beauty product"))
    priced = {item.id: float(item.extra["price"]) for item in data.items.values() if item.extra["price"]}
    assert len(data.items) == 290 and 0 < len(priced) < 290
    table = build(data)
    assert _filtered(table, "price <= 10") == {item for item, price in priced.items() if price <= 10}
    assert _column(table, "price").count(None) == 290 - len(priced)
    assert "brand" not in {it.name for it in table.columns}  # empty in all rows
