"""Amazon reviews of 2018 and 2023: joined, cleaned by stated rules, the same by loading and by converting."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from publishers import content, lines, old_review, read_back, review

from simengine.data import AmazonSettings, load
from simengine.data.sources import convert
from simengine.data.sources.gather import Names
from simengine.data.sources.text import flat, price, prose
from simengine.errors import InputError

MAY_2020 = 1588615855070


def amazon(folder, **said):
    return AmazonSettings(format="amazon", path=folder, **said)


def meta(item, **said):
    return {"parent_asin": item, "title": f"Title {item}", **said}


@pytest.fixture
def shop(tmp_path):
    """Two domains, one plain and one gzipped, in the folders that the publisher has."""
    raw = tmp_path / "raw"
    lines(
        raw / "review_categories" / "Books.jsonl",
        [
            review("u2", "P1", MAY_2020, variant="B2"),
            review("u10", "P2", MAY_2020 + 1, 4.0),
            review("u10", "P1", MAY_2020, 3.0),
            review("u2", "P2", MAY_2020 + 9),
        ],
    )
    lines(
        raw / "review_categories" / "Video_Games.jsonl.gz",
        [review("u2", "G1", MAY_2020 - 5), review("u10", "G1", MAY_2020 + 3)],
    )
    lines(raw / "meta_categories" / "meta_Books.jsonl", [meta("P1", price=12.5), meta("P2"), meta("P3")])
    lines(raw / "meta_categories" / "meta_Video_Games.jsonl.gz", [meta("G1", categories=["Video Games", "PC"])])
    return raw


def test_domains_are_the_names_of_files_and_only_items_that_occur_are_kept(shop):
    dataset = load(amazon(shop))
    assert {item.id: item.domain for item in dataset.items.values()} == {
        "G1": "Video_Games",
        "P1": "Books",
        "P2": "Books",
    }
    assert (dataset.users, dataset.unit, dataset.name) == (("u2", "u10"), "ms", "raw")
    assert [(case.user, case.history, case.target) for case in dataset.cases] == [
        ("u2", ("G1", "P1"), "P2"),
        ("u10", ("P1", "P2"), "G1"),
    ]
    assert dataset.items["G1"].category == "Video Games; PC"
    assert "timestamps are read as milliseconds since 1970: 2020-05-04 to 2020-05-04 (UTC)" in dataset.notes


def test_files_of_other_domains_are_not_opened(shop, tmp_path):
    (shop / "review_categories" / "Video_Games.jsonl.gz").write_bytes(b"\x1f\x8bnothing")
    assert set(load(amazon(shop, domains=["Books"])).items) == {"P1", "P2"}
    with pytest.raises(InputError, match="damaged, or ends before its end"):
        load(amazon(shop))


def test_converted_files_are_the_same_data_set(shop, tmp_path):
    said = {"min_rating": 4.0, "clock": "time", "noun": "thing"}
    assert content(read_back(amazon(shop), tmp_path / "out", **said)) == content(load(amazon(shop, **said)))
    header, first, *_ = (tmp_path / "out" / "out.inter").read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == [
        "user_id:token",
        "item_id:token",
        "rating:float",
        "timestamp:float",
        "variant_id:token",
        "domain:token",
    ]
    # In order of users, then time; the variant's own id is kept beside that of the product.
    assert first.split("\t") == ["u2", "G1", "5", "1588615855065", "G1", "Video_Games"]


def test_the_files_of_2018(tmp_path):
    lines(
        tmp_path / "Digital_Music_5.json.gz",
        [old_review("A2", "B1", 1362096000), old_review("A2", "B2", 1362182400, 2.0)],
    )
    lines(
        tmp_path / "meta_Digital_Music.json.gz",
        [
            {
                "asin": "B1",
                "title": "One",
                "price": "$1,049.99",
                "category": ["CDs &amp; Vinyl", "Pop"],
                "brand": "X",
                "main_cat": '<img src="https://x/y.gif" alt="Digital Music"/>',
                "description": ["<b>Good</b>", ""],
            },
            {"asin": "B1", "title": "One again"},
            {
                "asin": "B2",
                "title": "var aPageStart = (new Date()).getTime();",
                "price": ".a-box-inner{a:1}",
                "feature": [],
            },
        ],
    )
    dataset = load(amazon(tmp_path, noun="CD"))
    one, two = dataset.items.values()
    assert (one.title, one.category, one.domain) == ("One", "CDs & Vinyl; Pop", "Digital_Music")
    assert one.extra == {"main_category": "", "price": "1049.99", "brand": "X", "description": "Good", "features": ""}
    assert (two.title, two.extra["price"]) == ("Untitled CD B2", "")
    assert dataset.unit == "s"
    assert {
        "1 rows of the item table repeat an item; the first of each counts",
        "1 prices cannot be read, and are left empty",
        "1 items have no readable title; they are called 'Untitled CD <id>'",
        "timestamps are read as seconds since 1970: 2013-03-01 to 2013-03-02 (UTC)",
    } <= set(dataset.notes)
    assert content(read_back(amazon(tmp_path), tmp_path / "out", noun="CD")) == content(dataset)


@pytest.mark.parametrize(
    ("value", "amount", "read"),
    [
        (9.99, "9.99", True),
        (None, "", True),
        ("", "", True),
        ("$9.99", "9.99", True),
        ("1,234.50", "1234.5", True),
        ("$4.99 - $12.99", "4.99", True),
        ("from 14.99", "14.99", True),
        ("\u2014", "", True),
        ("Free To Play", "0", True),
        (0, "0", True),
        (-1, "", True),
        (float("nan"), "", True),
        ("9,99", "", False),
        ("2 for $5", "", False),
        (".a-box{width:3px}", "", False),
        (True, "", True),
        ("$ 5", "5", True),
    ],
)
def test_prices(value, amount, read):
    assert price(value) == (amount, read)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ([], ""),
        ({}, ""),
        ([""], ""),
        (["a", "", "b"], "a; b"),
        ("a\tb\r\n c", "a b c"),
        ("\u2028x", "x"),
        (5, "5"),
    ],
)
def test_values_become_one_line(value, text):
    assert flat(value) == text


def test_prose_is_without_markup():
    assert prose(["<p>One &amp; <b>two</b></p>", "", "three"]) == "One & two three"


def test_a_repeated_review_is_left_out_and_one_at_another_time_is_kept(tmp_path):
    lines(
        tmp_path / "Books.jsonl",
        [
            review("u", "P1", MAY_2020, 5.0),
            review("u", "P2", MAY_2020 + 1),
            review("u", "P1", MAY_2020, 1.0, variant="B7"),
            review("u", "P1", MAY_2020 + 2, 2.0),
        ],
    )
    lines(tmp_path / "meta_Books.jsonl", [meta("P1"), meta("P2")])
    dataset = load(amazon(tmp_path))
    assert [(*case.history, case.target) for case in dataset.cases] == [("P1", "P2", "P1")]
    assert "1 reviews repeat one of the same user, item and time, and are left out" in dataset.notes
    made = convert(amazon(tmp_path), tmp_path / "out")
    assert (made.users, made.items, made.interactions) == (1, 2, 3)
    assert [line.split("\t")[2] for line in (tmp_path / "out" / "out.inter").read_text().splitlines()[1:]] == [
        "5",
        "5",
        "2",
    ]


def test_white_space_in_ids_becomes_blanks(tmp_path):
    names = Names()
    assert names.numbers(["a\tb", "c", "a b", " c ", "c"]).tolist() == [0, 1, 0, 1, 1]
    assert names.names == ["a b", "c"]


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        ([review("u", "P1", 1), {"user_id": "u", "parent_asin": "P1"}], 2, "missing required field `timestamp`"),
        ([review("u", "P1", 1), old_review("u", "P1", 1)], 2, "missing required field `user_id`"),
        ([review("u", "P1", 1), review(" ", "P1", 1)], 2, "the id of the user is empty"),
        ([review("u", "", 1)], 1, "the id of the item is empty"),
        ([review("u", "P1", "soon")], 1, "Expected `int | float`, got `str`"),
        ([review("u", "P1", 10**16)], 1, "neither seconds nor milliseconds"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, rows, line, problem):
    path = lines(tmp_path / "Books.jsonl", rows)
    lines(tmp_path / "meta_Books.jsonl", [meta("P1")])
    for read in (lambda: load(amazon(tmp_path)), lambda: convert(amazon(tmp_path), tmp_path / "out")):
        with pytest.raises(InputError, match=problem) as caught:
            read()
        assert (caught.value.where["file"], caught.value.where["line"]) == (str(path), line)
        assert not (tmp_path / "out").exists()


def test_a_torn_archive_is_named(tmp_path):
    whole = gzip.compress("".join(json.dumps(review("u", f"P{n}", n)) + "\n" for n in range(5000)).encode())
    (tmp_path / "Books.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    lines(tmp_path / "meta_Books.jsonl", [meta("P1")])
    with pytest.raises(InputError, match="damaged, or ends before its end") as caught:
        load(amazon(tmp_path))
    assert caught.value.where["line"] > 100


@pytest.mark.parametrize(
    ("files", "said", "problem", "remedy"),
    [
        ([], {}, "there are no files of Amazon reviews", "Books.jsonl"),
        (["Books.jsonl"], {}, "there is no file meta_Books.jsonl", "there are none"),
        (
            ["Books.jsonl", "meta_Books.jsonl"],
            {"domains": ["Book"]},
            "there is no file Book.jsonl",
            "Did you mean Books?",
        ),
        (
            ["Books.jsonl", "Books_5.json", "meta_Books.jsonl"],
            {},
            "several files are of Books: Books.jsonl, Books_5.json",
            "Keep",
        ),
    ],
)
def test_missing_files_are_named(tmp_path, files, said, problem, remedy):
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=problem) as caught:
        load(amazon(tmp_path, **said))
    assert remedy in caught.value.remedy


def test_an_empty_log_is_an_error(tmp_path):
    for name in ("Books.jsonl", "meta_Books.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="the log holds no interaction"):
        load(amazon(tmp_path))


def test_the_digest_is_of_the_bytes_read(shop):
    before = load(amazon(shop, domains=["Books"])).digest
    assert load(amazon(shop)).digest != before
    path = shop / "meta_categories" / "meta_Books.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")
    assert load(amazon(shop, domains=["Books"])).digest != before


def test_reading_is_told(shop, tmp_path):
    told = []
    convert(amazon(shop), tmp_path / "out", told.append)
    assert [(reading.rows, reading.done) for reading in told] == [(4, told[0].total), (2, told[1].total)]


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NAMES = st.sampled_from(["u1", "u10", "u2", "\u00e4 b", "a\tb"])
REVIEWS = st.lists(
    st.tuples(
        NAMES, st.sampled_from(["P1", "P2", "P10", "p x"]), st.integers(10**12, 10**12 + 3), st.sampled_from([1.0, 4.5])
    ),
    min_size=1,
    max_size=30,
)


@given(rows=REVIEWS, titles=st.lists(TEXT, min_size=4, max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_the_reviews_the_atomic_files_are_the_same_data(tmp_path_factory, rows, titles):
    folder = tmp_path_factory.mktemp("amazon")
    lines(folder / "Books.jsonl", [review(user, item, time, rating) for user, item, time, rating in rows])
    lines(
        folder / "meta_Books.jsonl",
        [
            {"parent_asin": item, "title": title, "description": [title, title], "categories": [title], "store": title}
            for item, title in zip(["P1", "P2", "P10", "p x"], titles, strict=True)
        ],
    )
    loaded = load(amazon(folder))
    assert content(read_back(amazon(folder), folder / "out")) == content(loaded)
    distinct = {(" ".join(user.split()), item, time) for user, item, time, _ in rows}
    assert sum(map(len, (loaded.train, loaded.history))) + len(loaded.cases) == len(distinct)
