"""Faults of data files that users of other programs have met, each as a small file: what must come of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from publishers import content, lines, old_review, read_back, review

from simengine.data import AmazonSettings, AtomicSettings, MovieLensSettings, SteamSettings, load
from simengine.data.sources import convert
from simengine.errors import InputError

ITEM = "item_id:token|title:token_seq\na|A\nb|B\nc|C\n"


def atomic(folder, **said):
    return load(AtomicSettings(format="atomic", path=folder, **said))


@pytest.mark.parametrize(
    ("header", "cause"),
    [
        ("user_id:token,item_id:token,timestamp:float", "The separator seems to be a comma"),
        ("user_id:token item_id:token timestamp:float", "The separator seems to be a blank"),
        ("# user_id:token|item_id:token|timestamp:float", "Remove the leading '#'"),
    ],
)
def test_case_28_a_header_with_the_wrong_separator(write, header, cause):
    folder = write({"x.inter": f"{header}\n", "x.item": ITEM})
    with pytest.raises(InputError, match="this is no header of tab-separated") as caught:
        atomic(folder)
    assert (caught.value.where["file"], caught.value.where["line"]) == (str(folder / "x.inter"), 1)
    assert cause in caught.value.remedy


def test_case_28_a_byte_order_mark_and_a_missing_timestamp(write):
    folder = write({"x.inter": "\ufeffuser_id:token|item_id:token\nu|a\nu|b\n", "x.item": ITEM})
    assert atomic(folder).cases[0].target == "b"
    with pytest.raises(InputError, match="there is no field timestamp") as caught:
        atomic(folder, clock="time")
    assert caught.value.where["field"] == "timestamp"


def test_case_30_a_quote_swallows_no_rows(write):
    titles = ['"Crocodile', "Heat", "Alien", '"Big" Live', "Up"]
    table = "".join(f"{place}|{title}\n" for place, title in enumerate(titles, 1))
    log = "user_id:token|item_id:token\nu|1\nu|2\n"
    dataset = atomic(write({"x.inter": log, "x.item": f"item_id:token|title:token_seq\n{table}"}))
    assert [item.title for item in dataset.items.values()] == titles


@pytest.mark.parametrize("first", ["1112484727", "1.112484727E9"])
def test_case_31_times_keep_their_order(write, tmp_path, first):
    log = f"user_id:token|item_id:token|timestamp:float\nu|a|{first}\nu|b|1112484700\nu|c|1112484690\n"
    (case,) = atomic(write({"x.inter": log, "x.item": ITEM})).cases
    assert (*case.history, case.target) == ("c", "b", "a")


@pytest.mark.parametrize("base", [1112484690, 1588615855070])
def test_case_31_sources_keep_every_second_and_millisecond(tmp_path, base):
    lines(tmp_path / "Books.jsonl", [review("u", name, base + 2 - place) for place, name in enumerate("abc")])
    lines(tmp_path / "meta_Books.jsonl", [{"parent_asin": name, "title": name} for name in "abc"])
    for dataset in (
        load(AmazonSettings(format="amazon", path=tmp_path)),
        read_back(AmazonSettings(format="amazon", path=tmp_path), tmp_path / "out", clock="time"),
    ):
        (case,) = dataset.cases
        assert ((*case.history, case.target), case.time) == (("c", "b", "a"), base + 2)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_case_32_movies_in_either_encoding(tmp_path, encoding):
    (tmp_path / "ratings.dat").write_text("1::73::5::978300760\n1::5::4::978300761\n")
    (tmp_path / "movies.dat").write_bytes(
        "73::Misérables, Les (1995)::Drama|Musical\n5::A :: B, C::X\n".encode(encoding)
    )
    items = load(MovieLensSettings(format="movielens", path=tmp_path)).items
    assert (items["73"].title, items["73"].category) == ("Les Misérables (1995)", "Drama; Musical")
    assert items["5"].title == "A :: B, C"


def test_case_32_nothing_is_read_or_written_in_the_encoding_of_the_locale(tmp_path):
    lines(tmp_path / "Books.jsonl", [review("Zoë", "P1", 1), review("Zoë", "P2", 2)])
    lines(tmp_path / "meta_Books.jsonl", [{"parent_asin": item, "title": "Amélie"} for item in ("P1", "P2")])
    program = (
        "import warnings; warnings.filterwarnings('error', category=EncodingWarning, module='simengine')\n"
        "from pathlib import Path\nfrom simengine.data import *\nfrom simengine.data.sources import convert\n"
        "convert(AmazonSettings(format='amazon', path=Path('.')), Path('out'))\n"
        "titles = [item.title for item in load(AtomicSettings(format='atomic', path=Path('out'))).items.values()]\n"
        "assert titles == ['Am\\xe9lie'] * 2, titles\n"
    )
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Amélie" in (tmp_path / "out" / "out.item").read_text(encoding="utf-8")


def test_case_33_metadata_of_2023(tmp_path):
    lines(tmp_path / "Books.jsonl", [review("u", "P1", 1, variant="B2"), review("u", "P2", 2, variant="B3")])
    title = 'Tom &amp; Jerry <span id="x">&#39;92</span>'
    lines(
        tmp_path / "meta_Books.jsonl",
        [
            {"parent_asin": "P1", "title": title, "description": [], "features": ["a", "b"]},
            {"parent_asin": "P2", "description": []},
        ],
    )
    settings = AmazonSettings(format="amazon", path=tmp_path, noun="book")
    for dataset in (load(settings), read_back(settings, tmp_path / "out", noun="book")):
        first, second = dataset.items.values()
        assert (first.title, first.extra["description"], first.extra["features"]) == ("Tom & Jerry '92", "", "a; b")
        assert second.title == "Untitled book P2"
        assert "1 items have no readable title; they are called 'Untitled book <id>'" in dataset.notes
    header, row, _ = (tmp_path / "out" / "out.inter").read_text().splitlines()
    place = header.split("\t").index("variant_id:token")
    assert (row.split("\t")[1], row.split("\t")[place]) == ("P1", "B2")


@pytest.mark.parametrize(
    ("stamp", "unit", "day"),
    [
        (881250949, "seconds", "1997-12-04"),
        (978300760, "seconds", "2000-12-31"),
        (1362096000, "seconds", "2013-03-01"),
        (1588615855070, "milliseconds", "2020-05-04"),
    ],
)
def test_case_34_seconds_or_milliseconds(tmp_path, stamp, unit, day):
    lines(tmp_path / "Books.json", [old_review("u", "a", stamp), old_review("u", "b", stamp)])
    lines(tmp_path / "meta_Books.json", [{"asin": name, "title": name} for name in "ab"])
    settings = AmazonSettings(format="amazon", path=tmp_path)
    note = f"timestamps are read as {unit} since 1970: {day} to {day} (UTC)"
    assert note in load(settings).notes
    assert note in convert(settings, tmp_path / "out").notes


def test_case_34_a_mixture_of_units_is_an_error_even_between_files(tmp_path):
    lines(tmp_path / "Books.json", [old_review("u", "a", 881250949)] * 2)
    other = lines(tmp_path / "Music.jsonl", [review("u", "b", 1588615855070)])
    lines(tmp_path / "meta_Books.json", [{"asin": "a", "title": "A"}])
    lines(tmp_path / "meta_Music.json", [{"asin": "b", "title": "B"}])
    with pytest.raises(
        InputError, match=r"1588615855070 looks like milliseconds, 881250949 in .*Books.json:1 like seconds"
    ) as caught:
        convert(AmazonSettings(format="amazon", path=tmp_path), tmp_path / "out")
    assert (caught.value.where["file"], caught.value.where["line"]) == (str(other), 1)


def steam(folder, games):
    rows = [
        {"username": f"user{n % 7}", "product_id": f"{n % 9}", "date": f"2017-{n % 12 + 1:02}-01", "recommend": True}
        for n in range(100)
    ]
    lines(folder / "steam_reviews.json", rows)
    lines(folder / "steam_games.json", [{"id": game, "app_name": f"Game {game}"} for game in games])
    return SteamSettings(format="steam", path=folder)


def test_case_37_a_label_that_never_varies_is_told(tmp_path):
    settings = steam(tmp_path, map(str, range(9)))
    note = "every rating is 1: it tells nothing apart, and none counts as a dislike"
    assert note in load(settings).notes
    assert note in convert(settings, tmp_path / "out").notes


def test_case_37_keys_that_do_not_join_are_an_error_that_shows_some(tmp_path):
    settings = steam(tmp_path, ["app/7", "app/8"])
    shown = "the reviews have '0', '1', '2', the table 'app/7', 'app/8'"
    for read in (lambda: load(settings), lambda: convert(settings, tmp_path / "out")):
        with pytest.raises(InputError, match=shown):
            read()


def test_both_ways_agree(tmp_path):
    settings = steam(tmp_path, map(str, range(9)))
    assert content(read_back(settings, tmp_path / "out")) == content(load(settings))
