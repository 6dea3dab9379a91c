"""Wrong data files, each with the whole message that its user sees: file, line, field, and what to do about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from simengine.data import DataSettings, from_frame, load
from simengine.errors import InputError

LOG = "user_id:token|item_id:token|timestamp:float\n"
ITEM = "item_id:token|title:token_seq\na|A\nb|B\n"
SPLIT = "user_id:token|item_id_list:token_seq|item_id:token\nu|a|b\n"
NO_HEADER = "this is no header of tab-separated name:type fields: "
NO_NUMBER = "Give a finite number; a time is one of seconds or milliseconds since 1970 (UTC)."
LATIN = "Misérables, Les".encode("latin-1")
RATIO = {"split": {"ratio": [0.8, 0.1, 0.1]}}

# For each case the files (`|` stands for a tab), the settings, and the message, its remedy in a line of its own.
ATOMIC: dict[str, tuple[dict[str, str | bytes], dict[str, Any], str]] = {
    "commas": (
        {"x.inter": "user_id:token,item_id:token\nu,a\n", "x.item": ITEM},
        {},
        f"x.inter:1: {NO_HEADER}'user_id:token,item_id:token'\n"
        "The separator seems to be a comma; write the file with tabs.",
    ),
    "hash-before-header": (
        {"x.inter": "# user_id:token|item_id:token\nu|a\n", "x.item": ITEM},
        {},
        f"x.inter:1: {NO_HEADER}'# user_id:token\\titem_id:token'\n"
        "Remove the leading '#': the header is a line of data, not a comment.",
    ),
    "no-header": (
        {"x.inter": "u|a|1\n", "x.item": ITEM},
        {},
        f"x.inter:1: {NO_HEADER}'u\\ta\\t1'\n"
        "The file seems to have no header; put one first, as in user_id:token<TAB>item_id:token.",
    ),
    "empty-file": (
        {"x.inter": "", "x.item": ITEM},
        {},
        f"x.inter:1: {NO_HEADER}''\n"
        "The first line is empty; it must name the fields, as in user_id:token<TAB>item_id:token.",
    ),
    "only-a-header": (
        {"x.inter": LOG, "x.item": ITEM},
        {},
        "x.inter: the log holds no interaction\nGive one row an interaction.",
    ),
    "missing-column": (
        {"x.inter": "user_id:token|item_id:token\nu|a\n", "x.item": ITEM},
        {"clock": "time"},
        "x.inter:1, field timestamp: there is no field timestamp; the fields are user_id, item_id\n"
        "Add the field, or change the settings that ask for it.",
    ),
    "misspelt-column": (
        {"x.inter": "user:token|item_id:token\nu|a\n", "x.item": ITEM},
        {},
        "x.inter:1, field user_id: there is no field user_id; the fields are user, item_id\n"
        "Did you mean user? Rename the field in the header.",
    ),
    "too-few-fields": (
        {"x.inter": LOG + "u|a|1\nu|b\n", "x.item": ITEM},
        {},
        "x.inter:3: 2 fields where the header names 3\n"
        "Fields are separated by single tabs; an empty field still has its tab.",
    ),
    "too-many-fields": (
        {"x.inter": LOG + "u|a|1|2\n", "x.item": ITEM},
        {},
        "x.inter:2: 4 fields where the header names 3\n"
        "Fields are separated by single tabs; an empty field still has its tab.",
    ),
    "time-in-words": (
        {"x.inter": LOG + "u|a|1\nu|b|yesterday\n", "x.item": ITEM},
        {},
        "x.inter:3, field timestamp, value yesterday: 'yesterday' is not a number\n"
        "A field of type float holds a finite number, or nothing where the value is missing.",
    ),
    "no-time": (
        {"x.inter": LOG + "u|a|1\nu|b|\n", "x.item": ITEM},
        {},
        "x.inter:3, field timestamp: the value is missing\nGive the value, or leave the line out.",
    ),
    "mixed-units": (
        {"x.inter": LOG + "u|a|881250949\nu|b|1588615855070\n", "x.item": ITEM},
        {},
        "x.inter:3, field timestamp: "
        "timestamp 1588615855070 looks like milliseconds, 881250949 in line 2 like seconds\n"
        "Use one unit in the whole file.",
    ),
    "empty-id": (
        {"x.inter": LOG + "u|a|1\n|b|2\n", "x.item": ITEM},
        {},
        "x.inter:3, field user_id: the id is empty\nGive the id, or leave the line out.",
    ),
    "unknown-item": (
        {"x.inter": LOG + "u|a|1\nu|z|2\n", "x.item": ITEM},
        {},
        "x.inter:3, field item_id: item 'z' is not in the item table\nAdd it to the item table, or leave the line out.",
    ),
    "latin-1": (
        {"x.inter": LOG + "u|a|1\n", "x.item": b"item_id:token\ttitle:token_seq\na\t" + LATIN + b"\n"},
        {},
        "x.item:2: byte 0xe9 is not UTF-8\nConvert the file to UTF-8 (iconv -f latin1 -t utf8, if it is Latin-1).",
    ),
    "item-twice": (
        {"x.inter": LOG + "u|a|1\n", "x.item": ITEM + "a|C\n"},
        {},
        "x.item:4: item a is listed twice\nKeep one line an item.",
    ),
    "no-title": (
        {"x.inter": LOG + "u|a|1\n", "x.item": "item_id:token|titel:token_seq\na|A\n"},
        {},
        "x.item:1, field title: there is no field title; the fields are item_id, titel\n"
        "Did you mean titel? Rename the field in the header.",
    ),
    "split-of-split-files": (
        {"x.test.inter": SPLIT, "x.item": ITEM},
        RATIO,
        "x.test.inter: split files are used as given, so data.split cannot be\n"
        "Leave out split, or give the whole log as one .inter file.",
    ),
    "min-interactions-of-split-files": (
        {"x.test.inter": SPLIT, "x.item": ITEM},
        {"min_interactions": 5},
        "x.test.inter: split files are used as given, so data.min_interactions cannot be\n"
        "Leave out min_interactions, or give the whole log as one .inter file.",
    ),
    "split-files-without-rows": (
        {"x.test.inter": SPLIT.partition("\n")[0] + "\n", "x.item": ITEM},
        {},
        ".: no interaction is left\nThe split files have no rows.",
    ),
}

CSV = "userId,movieId,rating,timestamp\n"
ROW = "1,2,3,4\n"
COLUMNS = {"user": "userId", "item": "movieId", "rating": "rating", "time": "timestamp"}
MOVIES = {"items": {"path": "movies.csv", "id": "movieId", "title": "title"}}
QUOTES = 'Close every quote; a field that begins with a quote is written as in """Big"" Live".'

MAPPED: dict[str, tuple[dict[str, str | bytes], dict[str, Any], str]] = {
    "no-file": ({}, {}, "x.csv: cannot be read: No such file or directory\nCheck the path and its permissions."),
    "empty-file": ({"x.csv": ""}, {}, "x.csv: the file is empty\nGive a header and one row an interaction."),
    "only-a-header": ({"x.csv": CSV}, {}, "x.csv: the log holds no interaction\nGive one row an interaction."),
    "semicolons": (
        {"x.csv": (CSV + ROW).replace(",", ";")},
        {},
        "x.csv:1: there is no column `userId`; the columns are userId;movieId;rating;timestamp\n"
        'The separator seems to be a semicolon: say `separator: ";"` under data. '
        "The name is given by data.columns.user.",
    ),
    "tabs": (
        {"x.csv": (CSV + ROW).replace(",", "\t")},
        {},
        "x.csv:1: there is no column `userId`; the columns are userId\tmovieId\trating\ttimestamp\n"
        'The separator seems to be a tab: say `separator: "\\t"` under data. The name is given by data.columns.user.',
    ),
    "no-header": (
        {"x.csv": ROW},
        {},
        "x.csv:1: there is no column `userId`; the columns are 1, 2, 3, 4\n"
        "The file seems to have no header; put one first. The name is given by data.columns.user.",
    ),
    "misspelt-column": (
        {"x.csv": "userId,movie_id,rating,timestamp\n" + ROW},
        {},
        "x.csv:1: there is no column `movieId`; the columns are userId, movie_id, rating, timestamp\n"
        "Did you mean `movie_id`? The name is given by data.columns.item.",
    ),
    "missing-column": (
        {"x.csv": "userId,movieId,rating\n1,2,3\n"},
        {},
        "x.csv:1: there is no column `timestamp`; the columns are userId, movieId, rating\n"
        "Name a column that is there. The name is given by data.columns.time.",
    ),
    "column-twice": (
        {"x.csv": "userId,movieId,rating,timestamp,rating\n1,2,3,4,5\n"},
        {},
        "x.csv:1: two columns have the name `rating`\nRename one of the two.",
    ),
    "too-few-fields": (
        {"x.csv": CSV + ROW + "1,2,3\n"},
        {},
        "x.csv:3: 3 fields where the header names 4\n"
        "A field that holds the separator or a line break is written in quotes.",
    ),
    "too-many-fields": (
        {"x.csv": CSV + ROW, "movies.csv": "movieId,title\n2,Misérables, Les\n"},
        MOVIES,
        "movies.csv:2: 3 fields where the header names 2\n"
        "A field that holds the separator or a line break is written in quotes.",
    ),
    "empty-line": ({"x.csv": CSV + ROW + "\n" + ROW}, {}, "x.csv:3: the line is empty\nTake the line out."),
    "quote-never-closed": (
        {"x.csv": CSV + ROW + '1,"Crocodile,3,4\n' + ROW + ROW},
        {},
        f"x.csv:3: the row that begins here is not well quoted: unexpected end of data\n{QUOTES}",
    ),
    "text-behind-a-quote": (
        {"x.csv": CSV + ROW + '1,"Big" Live,3,4\n'},
        {},
        f"x.csv:3: the row that begins here is not well quoted: ',' expected after '\"'\n{QUOTES}",
    ),
    "latin-1": (
        {"x.csv": CSV + ROW, "movies.csv": b'movieId,title\n1,Heat\n2,"' + LATIN + b'"\n'},
        MOVIES,
        "movies.csv:3: byte 0xe9 is not utf-8\n"
        "Say `encoding: latin-1` under data if that is what the file is in, or convert it to UTF-8.",
    ),
    "utf-16": (
        {"x.csv": b"\xff\xfe" + CSV.encode("utf-16-le")},
        {},
        "x.csv:1: byte 0xff is not utf-8\n"
        "Say `encoding: utf-16` under data if that is what the file is in, or convert it to UTF-8.",
    ),
    "time-in-words": (
        {"x.csv": CSV + ROW + "1,2,3,2014-07-01\n"},
        {},
        f"x.csv:3, field timestamp: '2014-07-01' is not a number\n{NO_NUMBER}",
    ),
    "no-time": (
        {"x.csv": CSV + ROW + "1,2,3,\n"},
        {},
        "x.csv:3, field timestamp: the value is missing\nGive the value, or leave the line out.",
    ),
    "mixed-units": (
        # The first row takes two lines, so the second begins in line 4.
        {"x.csv": CSV + '1,"2\n3",3,881250949\n1,2,3,1588615855070\n'},
        {},
        "x.csv:4, field timestamp: "
        "timestamp 1588615855070 looks like milliseconds, 881250949 in line 2 like seconds\n"
        "Use one unit in the whole file.",
    ),
    "microseconds": (
        {"x.csv": CSV + "1,2,3,1588615855070123\n"},
        {},
        "x.csv:2, field timestamp: timestamp 1588615855070123 is neither seconds nor milliseconds since 1970\n"
        "Divide the timestamps down to milliseconds.",
    ),
    "rating-in-words": (
        {"x.csv": CSV + "1,2,good,4\n"},
        {},
        f"x.csv:2, field rating: 'good' is not a number\n{NO_NUMBER}",
    ),
    "no-rating": (
        {"x.csv": CSV + "1,2,,4\n"},
        {"min_rating": 4},
        "x.csv:2, field rating: the value is missing\nGive the value, or leave the line out.",
    ),
    "empty-id": (
        {"x.csv": CSV + ",2,3,4\n"},
        {},
        "x.csv:2, field userId: the id is empty\nGive the id, or leave the line out.",
    ),
    "unknown-item": (
        {"x.csv": CSV + ROW + "1,7,3,5\n", "movies.csv": "movieId,title\n2,B\n"},
        MOVIES,
        "x.csv:3, field movieId: item '7' is not in the item table\nAdd it to the item table, or leave the line out.",
    ),
    "keys-that-do-not-join": (
        {"x.csv": CSV + "1,B2,3,4\n1,B3,3,5\n", "movies.csv": "movieId,title\nP1,B\n"},
        MOVIES,
        "x.csv, field movieId: "
        "none of the 2 items of the log is in the item table: the log has 'B2', 'B3', the table 'P1'\n"
        "Name the columns that hold the same ids in both.",
    ),
    "item-twice": (
        {"x.csv": CSV + ROW, "movies.csv": "movieId,title\n2,B\n2,C\n"},
        MOVIES,
        "movies.csv:3: item 2 is listed twice\nKeep one line an item.",
    ),
    "misspelt-title": (
        {"x.csv": CSV + ROW, "movies.csv": "movieId,Titel\n2,B\n"},
        MOVIES,
        "movies.csv:1: there is no column `title`; the columns are movieId, Titel\n"
        "Did you mean `Titel`? The name is given by data.items.title.",
    ),
    "none-rated-so-high": (
        {"x.csv": CSV + ROW},
        {"min_rating": 6},
        "x.csv: no interaction is left: none is rated 6 or higher\nLower data.min_rating.",
    ),
    "nobody-has-so-many": (
        {"x.csv": CSV + ROW},
        {"min_interactions": 5},
        "x.csv: no interaction is left: no user has 5 of them\nLower data.min_interactions.",
    ),
    "all-at-one-time": (
        {"x.csv": CSV + ROW + "1,3,3,4\n"},
        RATIO,
        "x.csv: nobody has a test case: split on the global time line, interactions of one time together: "
        "training 2 (1970-01-01 to 1970-01-01), validation 0, test 0\n"
        "Give the test period a larger share, or say `split: leave_one_out`.",
    ),
}

NAMES = {"user": "u", "item": "i", "time": "t"}
FRAME: dict[str, Any] = {"u": ["1", "1"], "i": ["a", "b"], "t": [1, 2]}

FRAMES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no-frame": (
        [1, 2],
        {},
        "a list is no data frame\nGive a frame of pandas, polars or pyarrow, or a mapping of column names to lists.",
    ),
    "unknown-role": (
        FRAME,
        {"columns": {"usr": "u"}},
        "field columns.usr: the key is not known here\nDid you mean `user`?",
    ),
    "missing-role": (
        FRAME,
        {"columns": {"user": "u"}},
        "field columns.item: the key is required\nAdd it, as in {'item': COLUMN}.",
    ),
    "one-column-for-two": (
        FRAME,
        {"columns": {"user": "u", "item": "u"}},
        "field columns: the column u cannot be both user and item\nCorrect this argument of from_frame.",
    ),
    "clock-without-time": (
        FRAME,
        {"columns": {"user": "u", "item": "i"}, "clock": "time"},
        "clock: time needs a column: say which under columns, as in `time: NAME`\nCorrect this argument of from_frame.",
    ),
    "shares-of-more-than-all": (
        FRAME,
        {"split": {"ratio": [0.8, 0.1, 0.2]}},
        "field split: the shares are those of training, validation and test; they add up to 1, and only that of "
        "validation may be 0, as in [0.8, 0.1, 0.1]\nCorrect this argument of from_frame.",
    ),
    "items-without-columns": (
        FRAME,
        {"items": FRAME},
        "items and item_columns belong together\n"
        "Give the frame of the item table as items, and item_columns={'id': ..., 'title': ...}.",
    ),
    "misspelt-column": (
        FRAME | {"time": [1, 2]},
        {"columns": {"user": "u", "item": "i", "time": "times"}},
        "log: there is no column `times`; the columns are u, i, t, time\n"
        "Did you mean `time`? The name is given by columns.time.",
    ),
    "unequal-lengths": (
        FRAME | {"t": [1]},
        {},
        "log: the columns differ in length: u 2, i 2, t 1\nGive one value a row in every column.",
    ),
    "float32-times": (
        # Field case 31: 1112484727 and 1112484700 are the same number in 32 bits.
        FRAME | {"t": np.array([1112484727, 1112484700], np.float32)},
        {},
        "log, field t: the column has lost precision: as float32 it cannot tell 1112484736 from the next number\n"
        "Read it from its origin as int64 or float64.",
    ),
    "mixed-units": (
        FRAME | {"t": np.array([881250949, 1588615855070])},
        {},
        "log, row 1, field t: timestamp 1588615855070 looks like milliseconds, 881250949 in row 0 like seconds\n"
        "Use one unit in the whole column.",
    ),
    "infinite-time": (
        FRAME | {"t": np.array([1, np.inf])},
        {},
        "log, row 1, field t: the number is not finite\nGive a finite one.",
    ),
    "no-user": (
        FRAME | {"u": ["1", None]},
        {},
        "log, row 1, field u: the id is empty\nGive the id, or leave the row out.",
    ),
    "bytes": (
        FRAME | {"i": ["a", b"b"]},
        {},
        "log, row 1, field i: the column holds bytes where text is needed\n"
        "Decode it first, as pandas does with .str.decode('utf-8').",
    ),
    "no-rows": ({"u": [], "i": [], "t": []}, {}, "log: the log holds no interaction\nGive one row an interaction."),
}


def told(error: InputError, folder: Path) -> str:
    """The message with paths as seen from the folder, and without the indent of its remedy."""
    return str(error).replace(f"{folder}/", "").replace(str(folder), ".").replace("\n  ", "\n")


def refused(settings: dict[str, Any]) -> InputError:
    with pytest.raises(InputError) as caught:
        load(TypeAdapter(DataSettings).validate_python(settings))
    return caught.value


@pytest.mark.parametrize(("files", "settings", "message"), ATOMIC.values(), ids=ATOMIC)
def test_atomic(write, files, settings, message):
    folder = write(files)
    assert told(refused({"format": "atomic", "path": folder, **settings}), folder) == message


@pytest.mark.parametrize(("files", "settings", "message"), MAPPED.values(), ids=MAPPED)
def test_csv(tmp_path, files, settings, message):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refused({"format": "csv", "path": tmp_path / "x.csv", "columns": COLUMNS, **settings})
    assert told(error, tmp_path) == message


@pytest.mark.parametrize(("frame", "arguments", "message"), FRAMES.values(), ids=FRAMES)
def test_frames(frame, arguments, message):
    with pytest.raises(InputError) as caught:
        from_frame(frame, **{"columns": NAMES, "name": "log", **arguments})
    assert str(caught.value).replace("\n  ", "\n") == message


def test_a_file_that_is_no_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: pip install '.[parquet]'")
    (tmp_path / "x.parquet").write_text(CSV + ROW)
    error = refused({"format": "parquet", "path": tmp_path / "x.parquet", "columns": COLUMNS})
    # What follows are the words of pyarrow.
    assert told(error, tmp_path).startswith("x.parquet: this is no Parquet file that pyarrow can read: ")
    assert error.remedy == "Check that it is complete, and that data.format says what it is."


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    error = refused({"format": "parquet", "path": tmp_path / "x.parquet", "columns": COLUMNS})
    assert told(error, tmp_path) == (
        'x.parquet: reading Parquet needs pyarrow, which is not installed\nInstall it: pip install "simengine[parquet]"'
    )
