"""Steam: reviews as JSON or Python literals, games from JSON or CSV; labels that never vary; keys that differ."""

from __future__ import annotations

import json

import pytest
from publishers import content, lines, read_back

from simengine.data import SteamSettings, load
from simengine.errors import InputError

GAMES = [
    {
        "id": "10",
        "app_name": "Counter-Strike",
        "genres": ["Action"],
        "tags": ["FPS", "Team"],
        "price": 9.99,
        "developer": "Valve",
        "publisher": "Valve",
        "release_date": "2000-11-01",
    },
    {"id": "20", "title": "Amélie", "genres": [], "price": "Free To Play"},
    {"app_name": "No id"},
]


def steam(folder, **said):
    return SteamSettings(format="steam", path=folder, **said)


def reviews(count=6, label=True, user="username"):
    return [
        {user: f"u{n % 2}", "product_id": f"{n % 3 + 1}0", "date": f"2017-12-{n + 1:02}", "recommended": label}
        for n in range(count)
    ]


def test_json_lines_and_python_literals_are_the_same(tmp_path):
    lines(tmp_path / "json" / "steam_reviews.json.gz", reviews())
    lines(tmp_path / "json" / "steam_games.json", GAMES)
    literal = tmp_path / "literal"
    literal.mkdir()
    for name, rows in (("steam_reviews.json", reviews()), ("steam_games.json", GAMES)):
        (literal / name).write_text("".join(f"{row!r}\n" for row in rows), encoding="utf-8")
    dataset = load(steam(tmp_path / "json", noun="game"))
    assert content(load(steam(literal, noun="game"))) == content(dataset)
    assert content(read_back(steam(literal), tmp_path / "out", noun="game")) == content(dataset)
    strike, amelie, missing = dataset.items.values()
    assert (strike.title, strike.category, strike.extra["tags"], strike.extra["price"]) == (
        "Counter-Strike",
        "Action",
        "FPS; Team",
        "9.99",
    )
    assert (amelie.title, amelie.extra["price"], missing.title) == ("Amélie", "0", "Untitled game 30")
    assert {
        "1 rows of the item table have no id, and are left out",
        "1 items that occur are not in the item table; they have no title",
        "timestamps are read as seconds since 1970: 2017-12-01 to 2017-12-06 (UTC)",
    } <= set(dataset.notes)
    assert [(case.user, case.history, case.target) for case in dataset.cases] == [
        ("u0", ("10", "30"), "20"),
        ("u1", ("20", "10"), "30"),
    ]


def test_reviews_without_a_label_have_no_rating(tmp_path):
    rows = [{key: value for key, value in row.items() if key != "recommended"} for row in reviews()]
    lines(tmp_path / "reviews.json", rows)
    lines(tmp_path / "games.json", GAMES)
    assert content(read_back(steam(tmp_path), tmp_path / "out")) == content(load(steam(tmp_path)))
    assert (tmp_path / "out" / "out.inter").read_text().startswith("user_id:token\titem_id:token\ttimestamp:float\n")
    with pytest.raises(InputError, match="there is no field rating"):
        load(steam(tmp_path, min_rating=1))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"username": "u", "product_id": "10", "date": "Posted May 5", "recommended": True}, "does not match format"),
        ({"username": "u", "product_id": "10", "recommended": True}, "'date'"),
        ("[1]", "neither a JSON object nor a Python literal"),
        ("__import__('os').getcwd()", "neither a JSON object nor a Python literal"),
    ],
)
def test_a_wrong_review_is_named(tmp_path, row, problem):
    text = row if isinstance(row, str) else json.dumps(row)
    path = lines(tmp_path / "steam_reviews.json", reviews(1))
    path.write_text(path.read_text() + text + "\n")
    lines(tmp_path / "steam_games.json", GAMES)
    with pytest.raises(InputError, match=problem) as caught:
        load(steam(tmp_path))
    assert (caught.value.where["file"], caught.value.where["line"]) == (str(path), 2)


def test_reviews_without_a_user_are_refused(tmp_path):
    lines(tmp_path / "steam_reviews.json", reviews(user="nickname"))
    lines(tmp_path / "steam_games.json", GAMES)
    with pytest.raises(InputError, match="there is no field for the user; the fields are nickname, product_id"):
        load(steam(tmp_path))


def test_files_are_found_by_their_names(tmp_path):
    lines(tmp_path / "a_games.json", GAMES)
    lines(tmp_path / "b_games.json", GAMES)
    with pytest.raises(InputError, match=r"one file of games is wanted, here is a_games.json, b_games.json"):
        load(steam(tmp_path))


def test_the_real_item_table(real_data, tmp_path):
    (tmp_path / "steam_games.csv").write_bytes((real_data / "steam-items" / "steam_games.csv").read_bytes())
    lines(
        tmp_path / "steam_reviews.jsonl",
        [
            {"user_id": user, "app_id": item, "timestamp_created": 1_500_000_000 + item, "voted_up": item != 30}
            for user in ("a", "b")
            for item in (10, 20, 30)
        ],
    )
    dataset = load(steam(tmp_path, noun="game"))
    strike = dataset.items["10"]
    assert len(dataset.items) == 4000
    assert (strike.title, strike.category, strike.extra["price"]) == ("Counter-Strike", "Action", "9.99")
    assert strike.extra["tags"].startswith("Multi-player; Valve Anti-Cheat enabled; Online PvP")
    assert sum(item.extra["price"] == "0" for item in dataset.items.values()) == 649
    assert sum(not item.title.isascii() for item in dataset.items.values()) == 37
    assert content(read_back(steam(tmp_path), tmp_path / "out", noun="game")) == content(dataset)
