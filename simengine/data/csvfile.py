"""Reading CSV as RFC 4180 describes it: a header, and quoted fields that may hold separators and line breaks."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simengine.data.columns import Column, parse_numbers
from simengine.data.table import Table, Wanted, read_bytes, to_numbers
from simengine.errors import InputError

_BATCH = 256  # rows; so few stay in the processor's cache, which makes it more than twice as fast
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def read_csv(
    path: Path, wanted: Wanted, separator: str = ",", encoding: str = "utf-8"
) -> tuple[Table, tuple[str, ...]]:
    """The wanted columns of a CSV file, and notes. Text is kept exactly as written, blanks round it included.

    An empty field in a numeric column is NaN, and one of nothing but ``true`` and ``false`` becomes 1 and 0. Raises
    :class:`InputError` with file and line for broken quotes, a wrong number of fields, a column that is not there, text
    in a numeric column, and bytes of another encoding.
    """
    file = str(path)
    data, sha256 = read_bytes(path)
    ends: list[int] = []
    rows = _rows(_decode(data, file, encoding), separator, file, ends)
    header = next(rows, [])
    if not header:
        raise InputError("the file is empty", remedy="Give a header and one row an interaction.", file=file)
    chosen = wanted.choose(header, file, 1, _likely_cause(header, wanted))
    places = [header.index(name) for name in chosen]
    texts: list[list[str]] = [[] for _ in chosen]
    # Equal texts share one object, since in a long log they are most of the memory; numbers are not kept as texts.
    shared: list[dict[str, str] | None] = [None if name in wanted.numeric else {} for name in chosen]
    while batch := list(islice(rows, _BATCH)):
        parts = list(zip(*batch, strict=True))
        for place, column, known in zip(places, texts, shared, strict=True):
            part = parts[place]
            column.extend(part if known is None else map(known.setdefault, part, part))
    lines = np.array(ends[:-1], np.int64) + 1
    columns: dict[str, Column] = {}
    table = Table(file, columns, sha256, lines)
    for name, column in zip(chosen, texts, strict=True):
        columns[name] = to_numbers(column, table, name) if name in wanted.numeric else column
    return table, tuple(_notes(lines, np.array(ends[1:], np.int64), file))


def _decode(data: bytes, file: str, encoding: str) -> str:
    """The text of the file without byte-order mark."""
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise InputError(
            f"byte {data[error.start]:#04x} is not {encoding}",
            remedy=f"Say `encoding: {'utf-16' if utf16 else 'latin-1'}` under data if that is what the file is in, or "
            "convert it to UTF-8.",
            file=file,
            line=1 + data.count(b"\n", 0, error.start),
        ) from None


def _rows(text: str, separator: str, file: str, ends: list[int]) -> Iterator[list[str]]:
    """Each row, the header first; all have as many fields as the header. The line that it ends in goes to ``ends``."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    start, width = 1, 0
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"the row that begins here is not well quoted: {error}",
                remedy='Close every quote; a field that begins with a quote is written as in """Big"" Live".',
                file=file,
                line=start,
            ) from None
        if row is None:
            return
        width = width or len(row)
        if len(row) != width or not row:
            raise InputError(
                f"{len(row)} fields where the header names {width}" if row else "the line is empty",
                remedy="A field that holds the separator or a line break is written in quotes."
                if row
                else "Take the line out.",
                file=file,
                line=start,
            )
        ends.append(reader.line_num)
        yield row
        start = reader.line_num + 1


def _likely_cause(header: Sequence[str], wanted: Wanted) -> str:
    """What is probably wrong with a header in which a wanted column is missing; empty where nothing is known."""
    if len(header) == 1:
        for mark, name in _SEPARATORS.items():
            if set(wanted.named.values()) <= set(next(csv.reader(header, delimiter=mark))):
                return f"The separator seems to be {name}: say `separator: {json.dumps(mark)}` under data."
    if any(field and parse_numbers([field])[1] is None for field in header):
        return "The file seems to have no header; put one first."
    return ""


def _notes(starts: NDArray[np.int64], ends: NDArray[np.int64], file: str) -> Iterator[str]:
    """Rows over several lines are well-formed, but an unbalanced quote looks just the same."""
    broken = starts[starts != ends]
    if len(broken):
        yield f"{file}: {len(broken)} rows hold line breaks within quotes, the first in line {broken[0]}"
