"""AgentCF++'s construction: what each step keeps, the sample, what is written; and rows dealt out in bounded parts."""

from __future__ import annotations

import random
from datetime import date

import pytest
from publishers import lines, review
from ruamel.yaml import YAML

from simengine.data import AtomicSettings, load
from simengine.data.sources import Construction, cross_domain, gather
from simengine.errors import InputError

OCTOBER = 1_633_046_400_000  # 2021-10-01, midnight UTC
APRIL = 1_648_771_200_000  # 2022-04-01, midnight UTC


@pytest.fixture
def shop(tmp_path):
    """Users of two domains, each named after what the construction does with her."""
    books, games = [], []
    for user, (of_books, of_games) in {
        "kept": (8, 4),
        "just": (9, 1),
        "few": (5, 4),
        "one-domain": (15, 0),
        "more": (6, 6),
        "again": (9, 0),
    }.items():
        books += [review(user, f"b{place}", OCTOBER + place * 1000) for place in range(of_books)]
        games += [review(user, f"g{place}", OCTOBER + place * 1000 + 500) for place in range(of_games)]
    games.append(review("again", "g0", OCTOBER))
    games.append(review("again", "g0", OCTOBER))  # a repeat: it makes no tenth interaction twice
    books.append(review("few", "b20", OCTOBER, 3.0))  # rated too low
    books.append(review("few", "b21", OCTOBER - 1))  # too early
    games.append(review("few", "g21", APRIL))  # too late
    games.append(review("just", "g22", APRIL - 1, 3.0))
    music = [review("one-domain", "m0", OCTOBER), review("few", "m1", OCTOBER)]
    for name, rows in (("Books", books), ("Games", games), ("Music", music)):
        lines(tmp_path / "raw" / f"{name}.jsonl.gz", rows)
        items = sorted({row["parent_asin"] for row in rows})
        lines(
            tmp_path / "raw" / f"meta_{name}.jsonl", [{"parent_asin": item, "title": f"Title {item}"} for item in items]
        )
    return tmp_path / "raw"


def test_what_each_step_keeps(shop, tmp_path):
    report, notes = cross_domain(shop, tmp_path / "out", Construction(domains=("Books", "Games")))
    assert [(one.users, one.interactions) for one in report] == [
        (
            6,
            68 + 4,
        ),  # 67 of the table above and one of `again` (its repeat left out); two of low rating, two of other times
        (6, 68 + 4),
        (6, 68 + 2),
        (6, 68),
        (5, 68 - 15),
        (4, 68 - 15 - 9),
        (4, 68 - 15 - 9),
    ]
    assert [one.step for one in report][1:4] == [
        "in the domains Books, Games",
        "rated 4 or higher",
        "from 2021-10-01 to 2022-03-31 (UTC)",
    ]
    assert "1 reviews repeat one of the same user, item and time, and are left out" in notes
    assert "100 users are asked for, 4 are left and all taken" in notes


def test_what_is_written_is_loaded_as_it_says(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cross_domain(shop, tmp_path / "out", Construction(domains=("Books", "Games")))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md",
        "data.yaml",
        "out.inter",
        "out.item",
    ]
    said = YAML(typ="safe").load((tmp_path / "out" / "data.yaml").read_text())["data"]
    dataset = load(AtomicSettings.model_validate(said))
    assert dataset.users == ("again", "just", "kept", "more")
    assert {item.domain for item in dataset.items.values()} == {"Books", "Games"}
    assert set(dataset.items) == {item for items in dataset.own.values() for item in items}
    # Ten interactions of `just` are eight for training, one to validate, one for the test; in time g0 is the second.
    (case,) = (case for case in dataset.cases if case.user == "just")
    assert (case.target, case.history) == ("b8", ("b0", "g0", *(f"b{place}" for place in range(1, 8))))
    account = (tmp_path / "out" / "README.md").read_text()
    assert "| of users with 10 interactions or more | 4 | 15 | 44 |" in account
    options = "--domains Books,Games --min-rating 4 --since 2021-10-01 --until 2022-03-31 --min-domains 2"
    more = "--min-interactions 10 --users 100 --seed 0 --ratio 0.8:0.1:0.1 --split-by user"
    assert f"Options: `{options} {more}`" in account
    assert "log Books.jsonl.gz: " in account


def test_the_sample_is_a_function_of_the_seed(shop, tmp_path):
    def drawn(name, **said):
        settings = Construction(domains=("Books", "Games"), users=2, **said)
        (*_, last), _ = cross_domain(shop, tmp_path / name, settings)
        assert last.users == 2
        return (tmp_path / name / f"{name}.inter").read_bytes().replace(name.encode(), b"")

    assert drawn("one") == drawn("two")
    assert len({drawn(f"seed{seed}", seed=seed) for seed in range(8)}) > 1


def test_atomic_files_are_a_source_too(shop, tmp_path):
    settings = Construction(domains=("Books", "Games"), min_interactions=5)
    first, _ = cross_domain(shop, tmp_path / "out", settings)
    again, _ = cross_domain(tmp_path / "out", tmp_path / "again", settings)
    assert {(one.users, one.items, one.interactions) for one in again} == {
        (first[-1].users, first[-1].items, first[-1].interactions)
    }
    names = {"inter": "user_id", "item": "item_id"}
    for kind in names:
        one, other = ((tmp_path / name / f"{name}.{kind}").read_text().splitlines() for name in ("out", "again"))
        assert sorted(one) == sorted(other)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"domains": ("Books", "Game")}, "there is no file Game.jsonl"),
        ({"min_interactions": 99}, "nobody is left: interactions .*; 0 of users with 99 interactions or more"),
        ({"since": date(2001, 1, 1), "until": date(2001, 1, 2)}, "nobody is left"),
    ],
)
def test_what_cannot_be_made_is_said_and_leaves_nothing(shop, tmp_path, said, problem):
    with pytest.raises(InputError, match=problem):
        cross_domain(shop, tmp_path / "out", Construction(**said))
    assert not (tmp_path / "out").exists()


def test_a_domain_of_which_nobody_who_is_left_took_anything(shop, tmp_path):
    found = set()
    for seed in range(8):
        name = f"one{seed}"
        report, _ = cross_domain(shop, tmp_path / name, Construction(users=1, seed=seed))
        assert (report[1].step, report[-2].users, report[-1].users) == ("in all 3 domains", 6, 1)
        table = (tmp_path / name / f"{name}.item").read_text().splitlines()[1:]
        found.add(tuple(sorted({line.split("\t")[-1] for line in table})))
    assert ("Books", "Games") in found  # drawn without a user of Music, whose metadata do belong to the reviews


def test_nothing_is_overwritten(shop, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(InputError, match="this exists already, and nothing is overwritten"):
        cross_domain(shop, tmp_path / "out", Construction())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("header", "row", "problem", "line"),
    [
        ("user_id:token|item_id:token|rating:float", "u|a|5", "there is no field timestamp", 1),
        ("user_id:token|item_id:token|timestamp:float", "u|a|5", "the log has no ratings", None),
        ("user_id:token|item_id:token|rating:float|timestamp:float", "u|a|5", "3 fields where the header names 4", 2),
        (
            "user_id:token|item_id:token|rating:float|timestamp:float",
            "u|x|5|9",
            "item 'x' is not in the item table",
            None,
        ),
    ],
)
def test_atomic_files_that_will_not_do(write, tmp_path, header, row, problem, line):
    folder = write({"x.inter": f"{header}\n{row}\n", "x.item": "item_id:token|title:token_seq|domain:token\na|A|X\n"})
    with pytest.raises(InputError, match=problem) as caught:
        cross_domain(folder, tmp_path / "out", Construction())
    assert caught.value.where.get("line") == line


def test_rows_are_dealt_out_in_parts_of_whole_users(tmp_path, monkeypatch):
    draws = random.Random(2)
    rows = [(f"u{draws.randrange(30)}", f"i{draws.randrange(5)}", draws.randrange(6)) for _ in range(1000)]
    log = gather.LogFile(
        lines(tmp_path / "log", ({} for _ in rows)),
        lambda found: ((number, *rows[number - 1][:2], "", 1.0, rows[number - 1][2]) for number, _ in found),
    )
    monkeypatch.setattr(gather, "_PART", 64)
    with gather.gather([log], lambda _: None) as found:
        blocks = list(found.in_order())
        told = [
            (found.users.names[row["user"]], found.items.names[row["item"]], int(row["time"]))
            for block in blocks
            for row in block
        ]
    assert len(blocks) > 10 and max(map(len, blocks)) < 64 + 60
    assert told == sorted(set(rows), key=lambda row: (int(row[0][1:]), row[2], row[1]))
    assert found.repeats == 1000 - len(set(rows))
    first_lines = {row: number for number, row in reversed(list(enumerate(rows, 1)))}
    assert [int(row["line"]) for block in blocks for row in block] == [first_lines[row] for row in told]


def test_the_real_multidomain_data(real_data, tmp_path):
    # The numbers of rows, users and windows are those that were counted when the set was made.
    source = real_data / "amazon2023-multidomain"
    wide = Construction(since=date(1996, 1, 1), until=date(2023, 12, 31))
    report, _ = cross_domain(source, tmp_path / "wide", wide)
    assert [one.users for one in report] == [354, 354, 352, 352, 120, 86, 86]
    report, _ = cross_domain(source, tmp_path / "paper", Construction())
    assert (report[3].interactions, report[-1].users) == (327, 6)
    chosen = Construction(domains=("CDs_and_Vinyl", "Movies_and_TV", "Video_Games", "Kindle_Store"))
    with pytest.raises(InputError, match="nobody is left"):
        cross_domain(source, tmp_path / "four", chosen)
    report, _ = cross_domain(
        source, tmp_path / "four", chosen.model_copy(update=dict(wide) | {"domains": chosen.domains})
    )
    assert (report[1].interactions, report[1].users, report[-1].users) == (600, 103, 9)
