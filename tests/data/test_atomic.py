"""The reader of atomic files: what it keeps, what it accepts, and which line it names when it refuses."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.data import columns
from simengine.data.atomic import read_lines, read_table
from simengine.errors import InputError


def test_quotes_are_ordinary_characters(write):
    # Field case 30: five items, quotes kept as written, one row a line.
    folder = write({"x.item": 'item_id:token|title:token_seq\n1|"Crocodile\n2|Heat\n3|Alien\n4|"Big" Live\n5|Up\n'})
    table = read_table(folder / "x.item")
    assert table.texts("title") == ['"Crocodile', "Heat", "Alien", '"Big" Live', "Up"]
    assert len(table) == 5


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("user_id:token,item_id:token,timestamp:float\n1,2,3\n", "a comma"),
        ("user_id:token item_id:token timestamp:float\n1 2 3\n", "a blank"),
        ("user_id:token;item_id:token\n1;2\n", "a semicolon"),
        ("# user_id:token|item_id:token|timestamp:float\n1|2|3\n", "leading '#'"),
        ("1|2|3\n", "no header"),
        ("user_id:token|item_id:text\n", "token_seq"),
        ("", "empty"),
    ],
)
def test_a_wrong_header_names_line_and_likely_cause(write, content, hint):
    # Field case 28.
    path = write({"x.inter": content}) / "x.inter"
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert (caught.value.where["file"], caught.value.where["line"]) == (str(path), 1)
    assert hint in caught.value.remedy
    assert repr(content.partition("\n")[0].replace("|", "\t")) in caught.value.problem


def test_byte_order_mark_and_crlf_are_accepted(write):
    folder = write({"x.inter": b"\xef\xbb\xbfuser_id:token\titem_id:token\r\n1\t2\r\n3\t4"})
    table = read_table(folder / "x.inter")
    assert (table.texts("user_id"), table.texts("item_id")) == (["1", "3"], ["2", "4"])
    assert table.sha256 == hashlib.sha256((folder / "x.inter").read_bytes()).hexdigest()


def test_a_field_named_twice_is_an_error(write):
    with pytest.raises(InputError, match="twice"):
        read_table(write({"x.inter": "a:token|a:token\n"}) / "x.inter")


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        ("1|2|3\n4|5\n6|7|8|9\n", 3, "2 fields where the header names 3"),
        ("1|2|3\n4|5|6|7\n", 3, "4 fields where the header names 3"),
        ("1|2|3\n\n4|5|6\n", 3, "the line is empty"),
        ("1|2|3\n1|2|x\n", 3, "'x' is not a number"),
        ("1|2|1_000\n", 2, "'1_000' is not a number"),
        ("1|2|nan\n", 2, "'nan' is not a number"),
        ("1|2|1\n1|2|\n1|2|-inf\n", 4, "'-inf' is not a number"),
    ],
)
def test_a_wrong_line_is_named(write, rows, line, problem):
    path = write({"x.inter": "user_id:token|item_id:token|rating:float\n" + rows}) / "x.inter"
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert problem in caught.value.problem
    assert caught.value.where["line"] == line
    if "number" in problem:
        assert caught.value.where["field"] == "rating"
        assert repr(caught.value.where["value"]) in problem


def test_the_line_is_right_far_into_a_file(write):
    # Beyond several chunks: the 50,000th row is line 50,001 (the header is line 1).
    rows = [f"{number}|item" for number in range(60_000)]
    rows[49_999] = "only one field"
    with pytest.raises(InputError) as caught:
        read_table(write({"x.inter": "a:token|b:token\n" + "\n".join(rows)}) / "x.inter")
    assert caught.value.where["line"] == 50_001


def test_bytes_that_are_not_utf8_are_named(write):
    latin = "item_id:token\ttitle:token_seq\n1\tHeat\n2\tMisérables, Les\n".encode("latin-1")
    folder = write({"x.item": latin, "x.random": "1\tä\n".encode() + b"2\t\xe9\n"})
    for reader, name, line in ((read_table, "x.item", 3), (read_lines, "x.random", 2)):
        with pytest.raises(InputError, match="0xe9 is not UTF-8") as caught:
            reader(folder / name)
        assert caught.value.where["line"] == line


@pytest.mark.parametrize(
    ("written", "value", "dtype"),
    [
        (["1112484727", "1112484690"], [1112484727, 1112484690], np.int64),
        (["1.112484727E9", "1112484690"], [1112484727, 1112484690], np.int64),
        (["1588615855070", "1588615855071"], [1588615855070, 1588615855071], np.int64),
        (["4.0", "-5"], [4, -5], np.int64),
        (["881250949.25", "1"], [881250949.25, 1], np.float64),
        (["007", "0"], [7, 0], np.int64),
    ],
)
def test_numbers_keep_every_second_and_millisecond(write, written, value, dtype):
    # Field case 31.
    table = read_table(write({"x.inter": "t:float\n" + "\n".join(written)}) / "x.inter")
    assert table.numbers("t").tolist() == value
    assert table.numbers("t").dtype == dtype


def test_fields_that_are_missing_are_named(write):
    table = read_table(write({"x.inter": "user_id:token|rating:float\nu|4\n|\n"}) / "x.inter")
    with pytest.raises(InputError, match="no field timestamp; the fields are user_id, rating"):
        table.numbers("timestamp")
    for read, field in ((table.ids, "user_id"), (table.numbers, "rating")):
        with pytest.raises(InputError) as caught:
            read(field)
        assert (caught.value.where["line"], caught.value.where["field"]) == (3, field)
    with pytest.raises(InputError, match="holds text"):
        table.numbers("user_id")
    with pytest.raises(InputError, match="holds numbers"):
        table.texts("rating")


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "nothing.inter")


cell = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), max_size=6)
number = st.one_of(st.integers(0, 10**17).map(str), st.integers(-99, -1).map(str), st.floats(0, 1e9).map(repr))


@given(
    rows=st.lists(st.tuples(cell, number, cell), max_size=30),
    chunk=st.integers(1, 60),
)
def test_columns_are_those_of_a_plain_split(rows, chunk):
    # The reference splits each line on tabs and converts with float, one line after the other.
    body = "".join("\t".join(row) + "\n" for row in rows).encode()
    usual, columns._CHUNK = columns._CHUNK, chunk
    try:
        found = columns.read_columns(body, ["a", "n", "b"], [False, True, False], "x")
    finally:
        columns._CHUNK = usual
    assert found["a"] == [row[0] for row in rows]
    assert found["b"] == [row[2] for row in rows]
    assert found["n"].tolist() == [float(row[1]) for row in rows]


def test_real_items_are_those_of_the_csv_module(real_data: Path):
    path = real_data / "amazon2023-multidomain" / "amazon2023-multidomain.item"
    header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")), delimiter="\t", quoting=csv.QUOTE_NONE)
    table = read_table(path, numeric=False)
    assert [name.partition(":")[0] for name in header] == list(table.columns)
    assert [list(row) for row in zip(*table.columns.values(), strict=True)] == rows
    prices = read_table(path).columns["price"]
    assert np.isnan(prices).sum() == 897  # as the data's own description counts them
