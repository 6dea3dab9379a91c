"""The commands under data: what they print and write, where progress goes, and what a wrong option says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from console import Command

from simengine.data import AtomicSettings, load

OPENING = 1_640_000_000_000  # 2021-12-20, in milliseconds


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Three users with six interactions each in two domains, and one with a single one."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for domain in ("Books", "Games"):
        rows = [
            {
                "user_id": user,
                "parent_asin": f"{domain}-{user}{place}",
                "asin": "v",
                "rating": 5.0,
                "timestamp": OPENING + place,
            }
            for user in ("ann", "bea", "cid")
            for place in range(3)
        ]
        rows += [{**rows[0], "user_id": "dan"}] * (domain == "Books")
        (folder / f"{domain}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        meta = [{"parent_asin": row["parent_asin"], "title": row["parent_asin"], "price": "?1"} for row in rows[:9]]
        (folder / f"meta_{domain}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in meta), encoding="utf-8")
    return folder


def test_convert_writes_atomic_files_and_says_what_is_in_them(command: Command, shop: Path) -> None:
    status, out, err = command("data", "convert", "amazon", shop, "--out", "books", "--domains", "Books")
    assert status == 0
    assert out.splitlines() == [
        "4 users, 9 items, 10 interactions",
        "note: timestamps are read as milliseconds since 1970: 2021-12-20 to 2021-12-20 (UTC)",
        "note: every rating is 5: it tells nothing apart, and none counts as a dislike",
        "note: 9 prices cannot be read, and are left empty",
        "data: {format: atomic, path: books}",
    ]
    assert "Books.jsonl" in err and "10 rows" in err and "Games" not in err
    assert load(AtomicSettings(format="atomic", path=Path("books"))).users == ("ann", "bea", "cid", "dan")

    status, out, err = command("data", "convert", "amazon", shop, "--out", "books")
    assert (status, out) == (2, "")
    assert "books: this exists already, and nothing is overwritten" in err


def test_one_of_a_kind_is_no_plural(command: Command, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    row = {"user_id": "ann", "parent_asin": "b1", "asin": "v", "rating": 5.0, "timestamp": OPENING}
    (tmp_path / "one" / "Books.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    meta = json.dumps({"parent_asin": "b1", "title": "A book"})
    (tmp_path / "one" / "meta_Books.jsonl").write_text(meta + "\n", encoding="utf-8")
    status, out, _ = command("data", "convert", "amazon", "one", "--out", "converted")
    assert (status, out.splitlines()[0]) == (0, "1 user, 1 item, 1 interaction")


def test_cross_domain_shows_what_each_step_kept(command: Command, shop: Path, tmp_path: Path) -> None:
    arguments = (
        "data",
        "cross-domain",
        shop,
        "--min-interactions",
        "6",
        "--users",
        "2",
        "--seed",
        "4",
        "--ratio",
        "4:1:1",
    )
    status, out, err = command(*arguments, "--out", "cross")
    assert status == 0
    rows = [" ".join(line.split()) for line in out.splitlines()]
    for row in (
        "all reviews 4 18 19",
        "from 2021-10-01 to 2022-03-31 (UTC) 4 18 19",
        "of users in 2 domains or more 3 18 18",
        "of users with 6 interactions or more 3 18 18",
        "of 2 users, drawn by lot with the seed 4 2 12 12",
    ):
        assert row in rows
    assert rows[-1] == "written: cross; a scenario can say `extends: cross/data.yaml`"
    assert "Games.jsonl" in err

    scenario = tmp_path / "one.yaml"
    scenario.write_text(
        "extends: cross/data.yaml\nname: one\nmethod: {kind: agentcf}\nstages: [{optimize: {}}, {rank: {}}]\n"
    )
    status, out, err = command("check", scenario)
    assert (status, err) == (0, "")
    assert "one: 2 users, 12 items, 6 interactions to re-enact" in out
    assert "drawn uniformly from what is not known of the user in the domain of the target" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("convert", "steam", "raw", "--out", "o"), "one file of games is wanted, here is Games.jsonl, meta_Games"),
        (("convert", "movielens", "nowhere", "--out", "o"), "nowhere: there is no such folder"),
        (("convert", "movielens", "raw", "--out", "o", "--domains", "Books"), "movielens data have no domains"),
        (("cross-domain", "raw", "--out", "o", "--ratio", "8-1-1"), "option --ratio, value 8-1-1: this is no ratio"),
        (
            ("cross-domain", "raw", "--out", "o", "--ratio", "8:1"),
            "option --ratio: the shares are those of training",
        ),
        (
            ("cross-domain", "raw", "--out", "o", "--since", "soon"),
            "option --since, value soon: expected a date such as",
        ),
        (
            ("cross-domain", "raw", "--out", "o", "--min-domains", "0"),
            "option --min-domains, value 0: expected a value more than 0",
        ),
        (
            ("cross-domain", "raw", "--out", "o", "--since", "2022-02-02", "--until", "2022-02-01"),
            "option --until: the last day, 2022-02-01, is before the first, 2022-02-02",
        ),
        (
            ("cross-domain", "raw", "--out", "o", "--split-by", "item"),
            "option --split-by, value item: expected 'timeline' or 'user'",
        ),
    ],
)
def test_what_is_wrong_is_said(command: Command, shop: Path, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = command("data", *arguments)
    assert (status, out) == (2, "")
    assert message in err and "Traceback" not in err
    assert not Path("o").exists()
