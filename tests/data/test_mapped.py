"""CSV, Parquet and data frames with columns of the user's own: what is read, and that all give the same data set."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.data import AtomicSettings, CsvSettings, Dataset, ParquetSettings, from_frame, load
from simengine.data.csvfile import read_csv
from simengine.data.table import Wanted
from simengine.errors import InputError

COLUMNS = {"user": "userId", "item": "movieId", "time": "timestamp"}
NAMES = {"user": "u", "item": "i", "time": "t"}
HEADER = "userId,movieId,timestamp\n"
NO_TABLE = "there is no item table: the title of an item is its id"


def read(folder: Path, log: str | bytes, movies: str | bytes | None = None, **settings: Any) -> Dataset:
    """The data set of these texts as CSV files."""
    for name, text in {"log.csv": log, "movies.csv": movies or ""}.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    if movies:
        settings["items"] = {"path": "movies.csv", "id": "movieId", "title": "title", **settings.get("items", {})}
    return load(
        CsvSettings.model_validate({"format": "csv", "path": folder / "log.csv", "columns": COLUMNS, **settings})
    )


def content(dataset: Dataset) -> list[Any]:
    """Everything but names, digests, notes and source lines."""
    tables = (dataset.train, dataset.history, dataset.training_part, dataset.cases)
    return [dataset.users, *map(tuple, tables), dict(dataset.own), dataset.unit, dict(dataset.items)]


def test_a_log_without_an_item_table(tmp_path):
    dataset = read(tmp_path, HEADER + "10,b,3\n2,a,1\n10,a,1\n10,c,2\n2,c,5\n")
    assert dataset.users == ("2", "10")
    assert [(case.user, case.target, case.history, case.time) for case in dataset.cases] == [
        ("2", "c", ("a",), 5),
        ("10", "b", ("a", "c"), 3),
    ]
    assert [(item.id, item.title, item.category) for item in dataset.items.values()] == [
        ("a", "a", ""), ("b", "b", ""), ("c", "c", ""),
    ]  # fmt: skip
    assert NO_TABLE in dataset.notes
    assert (dataset.name, dataset.train.line.tolist(), dataset.history.line.tolist()) == ("log", [], [3, 4, 5])


def test_titles_and_categories_of_an_item_table(tmp_path):
    # Field cases 32 and 33: commas and `::` survive, genres split on the bar, HTML is decoded, no title is said.
    movies = (
        "movieId,title,genres\n"
        '73,"Misérables, Les (1995)",Drama|Musical\n'
        "5,Alien :: Special,Horror\n"
        '1,"Tom &amp; Jerry <span id=""x"">&#39;92</span>",\n'
        "2,,(no genres listed)\n"
    )
    log = HEADER + "u,73,1\nu,5,2\nu,1,3\n"
    dataset = read(tmp_path, log, movies, items={"category": "genres"}, noun="movie")
    assert [(item.id, item.title, item.category) for item in dataset.items.values()] == [
        ("1", "Tom & Jerry '92", ""),
        ("2", "Untitled movie 2", "(no genres listed)"),
        ("5", "Alien :: Special", "Horror"),
        ("73", "Misérables, Les (1995)", "Drama; Musical"),
    ]
    assert "1 items have no readable title; they are called 'Untitled movie <id>'" in dataset.notes
    latin = read(
        tmp_path, log, movies.encode("latin-1"), items={"category": "genres"}, encoding="latin-1", noun="movie"
    )
    assert content(latin) == content(dataset)


def test_quotes_as_rfc_4180_has_them(tmp_path):
    # Field case 30, well quoted: one item a row, quotes within as meant, a quote in the middle as written.
    movies = 'movieId,title\n1,"""Crocodile"\n2,Heat\n3,"Two\nLines"\n4,"""Big"" Live"\n5,7" Singles\n'
    log = HEADER + "u,1,1\nu,2,2\nu,3,3\nu,4,4\nu,5,5\n"
    dataset = read(tmp_path, log, movies)
    titles = [item.raw_title for item in dataset.items.values()]
    assert titles == ['"Crocodile', "Heat", "Two\nLines", '"Big" Live', '7" Singles']
    assert f"{tmp_path / 'movies.csv'}: 1 rows hold line breaks within quotes, the first in line 4" in dataset.notes


def test_a_quote_that_swallows_rows_is_told(tmp_path):
    # Field case 30: by the letter of RFC 4180 this is one item with a long title; only the note can tell.
    dataset = read(tmp_path, HEADER + "u,1,1\nu,1,2\n", 'movieId,title\n1,"Crocodile\n2,Heat\n4,Live"\n')
    assert f"{tmp_path / 'movies.csv'}: 1 rows hold line breaks within quotes, the first in line 2" in dataset.notes


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.removesuffix("\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace(",", '","').replace("\n", '"\n"').removesuffix('"').replace("u", '"u', 1).encode(),
    ],
    ids=["crlf", "no-last-line-end", "byte-order-mark", "all-quoted"],
)
def test_the_same_table_in_other_dresses(tmp_path, change):
    text = HEADER + "u,a,3\nu,b,2\nv,c,1\nv,a,4\n"
    expected = content(read(tmp_path, text))
    assert content(read(tmp_path, change(text))) == expected


def test_separator_and_other_columns(tmp_path):
    text = "n;timestamp;movieId;userId\n1;3;a;u\n2;2;b;u\n"
    dataset = read(tmp_path, text, separator=";")
    assert dataset.cases[0].history == ("b",)
    assert content(read(tmp_path, text.replace(";", "\t"), separator="\t")) == content(dataset)


@pytest.mark.parametrize("first", ["1112484727", "1.112484727E9"])
def test_seconds_keep_their_order(tmp_path, first):
    # Field case 31.
    dataset = read(tmp_path, HEADER + f"u,a,{first}\nu,b,1112484700\nu,c,1112484690\n")
    (case,) = dataset.cases
    assert ((*case.history, case.target), case.time, dataset.unit) == (("c", "b", "a"), 1112484727, "s")


def test_without_times_the_order_of_rows_counts(tmp_path):
    dataset = read(tmp_path, HEADER + "u,b,3\nu,a,2\nu,c,1\n", columns={"user": "userId", "item": "movieId"})
    assert (dataset.cases[0].history, dataset.cases[0].target, dataset.unit) == (("b", "a"), "c", "step")
    assert "there are no timestamps: the order of rows is taken for that of time" in dataset.notes


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        # Field case 37: in the Steam dump every flag is True.
        (["True"] * 4, True),
        (["1"] * 4, True),
        (["True", "True", "False", "True"], False),
        (["5", "5", "4", "5"], False),
    ],
)
def test_a_label_that_never_varies_is_told(tmp_path, labels, note):
    text = "userId,movieId,timestamp,recommend\n" + "".join(f"u,{n},{n},{label}\n" for n, label in enumerate(labels))
    dataset = read(tmp_path, text, columns={**COLUMNS, "rating": "recommend"})
    said = "every recommend is 1: it tells nothing apart, and none counts as a dislike"
    assert (said in dataset.notes) == note


def test_truth_values_are_ratings(tmp_path):
    text = "userId,movieId,timestamp,recommend\nu,a,1,true\nu,b,2,FALSE\nu,c,3,True\n"
    dataset = read(tmp_path, text, columns={**COLUMNS, "rating": "recommend"}, min_rating=1)
    assert dataset.own == {"u": frozenset("ac")}


def test_repeated_rows_are_kept_and_counted(tmp_path):
    dataset = read(tmp_path, HEADER + "u,a,1\nu,a,1\nu,a,1\nu,a,2\n")
    assert [(row.time, row.occurrence) for row in (*dataset.train, *dataset.history)] == [(1, 1), (1, 0), (1, 2)]
    assert "2 interactions repeat one of the same user, item and time; they are kept" in dataset.notes


def test_the_digest_is_of_bytes_not_of_paths(tmp_path):
    text, movies = HEADER + "u,a,1\nu,b,2\n", "movieId,title\na,A\nb,B\n"
    (tmp_path / "elsewhere").mkdir()
    digest = read(tmp_path, text, movies).digest
    assert read(tmp_path / "elsewhere", text, movies).digest == digest
    assert (
        len({digest, read(tmp_path, text + "u,a,3\n", movies).digest, read(tmp_path, text, movies + "c,C\n").digest})
        == 3
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(rows=st.lists(st.tuples(texts, texts), max_size=20))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    path.write_bytes(buffer.getvalue().encode())
    table, _ = read_csv(path, Wanted({"first": "a", "second": "b"}))
    assert list(zip(table.texts("a"), table.texts("b"), strict=True)) == rows


def test_other_columns_of_an_item_table_are_kept_and_those_of_a_log_are_not(tmp_path):
    """All but one without a name and two of one name, which nobody could tell apart."""
    movies = "movieId,title,cost,,twice,twice\na,A,2.50,x,y,z\nb,B,,x,y,z\n"
    dataset = read(tmp_path, "userId,movieId,timestamp,cost,cost\nu,a,1,9,9\nu,b,2,9,9\n", movies)
    assert {item.id: dict(item.extra) for item in dataset.items.values()} == {"a": {"cost": "2.50"}, "b": {"cost": ""}}


# Data frames: one user-item-time log as each library holds it.

PLAIN = {"u": [2, 2, 10, 2, 10], "i": ["a", "b", "a", "c", "b"], "t": [5, 6, 6, 7, 9]}
MOVIES = {"key": ["a", "b", "c"], "name": ["A", "B", None], "kinds": [["Drama", "War"], ["Drama"], []]}
ITEM_COLUMNS = {"id": "key", "title": "name", "category": "kinds"}


def framed(frame: Any, **arguments: Any) -> Dataset:
    return from_frame(frame, columns=NAMES, **arguments)


def test_a_mapping_of_lists_is_a_frame(tmp_path):
    dataset = framed(PLAIN, items=MOVIES, item_columns=ITEM_COLUMNS, noun="movie")
    assert [(case.user, case.target, case.time) for case in dataset.cases] == [("2", "c", 7), ("10", "b", 9)]
    assert dataset.history.line.tolist() == [0, 1, 2]
    assert [(item.title, item.category) for item in dataset.items.values()] == [
        ("A", "Drama; War"),
        ("B", "Drama"),
        ("Untitled movie c", ""),
    ]
    rows = "".join(f"{user},{item},{time}\n" for user, item, time in zip(*PLAIN.values(), strict=True))
    assert content(framed(PLAIN)) == content(read(tmp_path, HEADER + rows))


def test_other_columns_of_an_item_frame_are_texts():
    """Dates as they are written in tables; a column of bytes is left out, unless it is named."""
    more = {
        "price": [9.99, 10.0, None],
        "released": np.array(["2015-03-27", "NaT", "2016-01-01"], "datetime64[ns]"),
        "patched": [date(2015, 3, 27), datetime(2015, 3, 27, 12, 30), None],
        "cover": [b"a", b"b", None],
    }
    dataset = framed(PLAIN, items=MOVIES | more, item_columns=ITEM_COLUMNS)
    assert [dict(item.extra) for item in dataset.items.values()] == [
        {"price": "9.99", "released": "2015-03-27", "patched": "2015-03-27"},
        {"price": "10", "released": "", "patched": "2015-03-27 12:30:00"},
        {"price": "", "released": "2016-01-01", "patched": ""},
    ]
    with pytest.raises(InputError, match="bytes"):
        framed(PLAIN, items=MOVIES | more, item_columns=ITEM_COLUMNS | {"domain": "cover"})


def test_frames_of_pandas_and_pyarrow_are_alike():
    pandas = pytest.importorskip("pandas", reason="pandas is not needed otherwise")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: pip install '.[parquet]'")
    expected = framed(PLAIN, items=MOVIES, item_columns=ITEM_COLUMNS)
    for make in (pandas.DataFrame, pyarrow.table):
        found = framed(make(PLAIN), items=make(MOVIES), item_columns=ITEM_COLUMNS)
        assert content(found) == content(expected)
        assert found.digest == expected.digest
    missing = pandas.DataFrame(PLAIN | {"u": pandas.array([2, 2, 10, 2, 10], "Int64")})
    assert content(framed(missing)) == content(framed(PLAIN))


def test_a_frame_is_neither_changed_nor_kept():
    times = np.array(PLAIN["t"])
    dataset = framed(PLAIN | {"t": times})
    before = content(dataset)
    times[:] = 0
    assert content(dataset) == before


MOMENT = datetime(1972, 5, 4, 18, 10, 55, 70_000)  # before 1973, where the size of a number would say seconds


@pytest.mark.parametrize(
    "moment",
    [
        MOMENT,
        MOMENT.replace(tzinfo=UTC),
        MOMENT.replace(tzinfo=timezone(timedelta(hours=2))) + timedelta(hours=2),
        np.datetime64(MOMENT, "ns"),
    ],
    ids=["naive", "utc", "zone", "numpy"],
)
def test_dates_are_milliseconds(moment):
    column = (
        np.array([moment, moment + np.timedelta64(1, "ms")])
        if isinstance(moment, np.datetime64)
        else [
            moment,
            moment + timedelta(milliseconds=1),
        ]
    )
    dataset = framed({"u": ["u", "u"], "i": ["a", "b"], "t": column})
    assert (dataset.unit, dataset.cases[0].time) == ("ms", 73_851_055_071)
    assert "timestamps are read as milliseconds since 1970: 1972-05-04 to 1972-05-04 (UTC)" in dataset.notes


def test_dates_keep_microseconds_and_days():
    late = [datetime(2020, 1, 1, microsecond=micro) for micro in (3, 2, 1)]
    assert framed({"u": ["u"] * 3, "i": ["a", "b", "c"], "t": late}).cases[0].history == ("c", "b")
    days = framed({"u": ["u"] * 2, "i": ["a", "b"], "t": [date(2020, 1, 2), date(2020, 1, 1)]})
    assert (days.cases[0].target, days.cases[0].time) == ("a", 1_577_923_200_000)


def test_pandas_dates_with_and_without_zone():
    pandas = pytest.importorskip("pandas", reason="pandas is not needed otherwise")
    plain = framed(PLAIN | {"t": [datetime.fromtimestamp(time, UTC) for time in PLAIN["t"]]})
    for zone in (None, "UTC", "Europe/Berlin"):
        times = pandas.to_datetime(PLAIN["t"], unit="s", utc=True)
        times = times.tz_localize(None) if zone is None else times.tz_convert(zone)
        assert content(framed(pandas.DataFrame(PLAIN).assign(t=times))) == content(plain)


def test_parquet_is_read_like_a_frame(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: pip install '.[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table(PLAIN | {"more": [None] * 5})
    parquet.write_table(table, tmp_path / "log.parquet")
    parquet.write_table(pyarrow.table(MOVIES), tmp_path / "movies.parquet")
    settings = ParquetSettings.model_validate(
        {
            "format": "parquet",
            "path": tmp_path / "log.parquet",
            "columns": NAMES,
            "items": {"path": "movies.parquet", **ITEM_COLUMNS},
        }
    )
    dataset = load(settings)
    assert content(dataset) == content(framed(PLAIN, items=MOVIES, item_columns=ITEM_COLUMNS))
    assert dataset.name == "log"
    assert dataset.digest != framed(PLAIN).digest


def test_real_movielens_as_csv_is_the_atomic_data_set(real_data: Path, tmp_path: Path):
    source = real_data / "ml-100k"
    for end, name in (("inter", "log.csv"), ("item", "movies.csv")):
        header, *lines = (source / f"ml-100k.{end}").read_text("utf-8").splitlines()
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(field.partition(":")[0] for field in header.split("\t"))
            writer.writerows(line.split("\t") for line in lines)
    settings = CsvSettings.model_validate(
        {
            "format": "csv",
            "path": tmp_path / "log.csv",
            "columns": {"user": "user_id", "item": "item_id", "time": "timestamp", "rating": "rating"},
            "items": {"path": "movies.csv", "id": "item_id", "title": "movie_title", "category": "class"},
        }
    )
    ours, atomic = content(load(settings)), content(load(AtomicSettings(format="atomic", path=source)))
    assert ours[:-1] == atomic[:-1]
    assert [(item.title, item.category) for item in ours[-1].values()] == [
        (item.title, item.category) for item in atomic[-1].values()
    ]
