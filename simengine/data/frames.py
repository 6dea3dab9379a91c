"""Reading tables in memory: of any data frame whose columns numpy can take, and of Parquet files through pyarrow."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data.columns import Column, Numbers, whole
from simengine.data.table import Table, Wanted, read_bytes, to_numbers
from simengine.errors import InputError

_FLOAT32_EXACT = 1 << 24  # beyond this, numbers of 32 bits skip integers


def read_frame(frame: Any, name: str, wanted: Wanted, sha256: str | None = None) -> Table:
    """The wanted columns of a data frame: ``frame[column]`` is anything that :func:`numpy.asarray` takes.

    So frames of pandas, polars and pyarrow will do, and a mapping of names to lists. Rows count from 0. Missing values
    are empty texts, lists are texts joined by ``; ``, dates are texts as ``2015-03-27``. In numeric columns dates are
    milliseconds since 1970 (UTC where they name no zone). Errors name ``name``, row and column. Where no digest is
    given it is that of the columns as read.
    """
    chosen = wanted.choose(_names(frame), name)
    arrays = {column: _array(frame[column]) for column in chosen}
    lengths = {column: len(array) for column, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"the columns differ in length: {', '.join(f'{column} {length}' for column, length in lengths.items())}",
            remedy="Give one value a row in every column.",
            file=name,
        )
    rows = np.arange(next(iter(lengths.values())))
    columns: dict[str, Column] = {}
    table = Table(name, columns, "", rows, "row")
    datetimes = set()
    for column, array in arrays.items():
        if column not in wanted.named.values() and _binary(array) is not None:
            continue  # a picture, perhaps: what nobody asked for by name is no reason to refuse the rest
        if column not in wanted.numeric:
            columns[column] = _texts(array, table, column)
        elif (moments := _moments(array)) is not None:
            columns[column] = moments
            datetimes.add(column)
        else:
            columns[column] = _numbers(array, table, column)
    return replace(table, sha256=sha256 or _digest(columns), datetimes=frozenset(datetimes))


def read_parquet(path: Path, wanted: Wanted) -> Table:
    """The wanted columns of a Parquet file, as :func:`read_frame` gives them, with the digest of the file's bytes."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "reading Parquet needs pyarrow, which is not installed",
            remedy='Install it: pip install "simengine[parquet]"',
            file=str(path),
        ) from None
    data, sha256 = read_bytes(path)
    try:
        file = pyarrow.parquet.ParquetFile(io.BytesIO(data))
        frame = file.read(wanted.choose(file.schema_arrow.names, str(path)))
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"this is no Parquet file that pyarrow can read: {str(error).partition('. ')[0]}",
            remedy="Check that it is complete, and that data.format says what it is.",
            file=str(path),
        ) from None
    return read_frame(frame, str(path), wanted, sha256)


def _names(frame: Any) -> list[str]:
    """The names of a frame's columns. pyarrow has them as ``column_names``, pandas and polars as ``columns``."""
    for attribute in ("column_names", "columns"):
        if hasattr(frame, attribute):
            return list(map(str, getattr(frame, attribute)))
    if isinstance(frame, Mapping):
        return list(map(str, frame))
    raise InputError(
        f"a {type(frame).__name__} is no data frame",
        remedy="Give a frame of pandas, polars or pyarrow, or a mapping of column names to lists.",
    )


def _array(column: Any) -> NDArray[Any]:
    """A column as one dimension; lists stay objects, so that lists within them do not become a second one."""
    if isinstance(column, list | tuple):
        return np.fromiter(column, object, len(column))
    return np.asarray(column)


def _numbers(array: NDArray[Any], table: Table, field: str) -> Numbers:
    """A column as numbers, NaN where a value is missing; truth values as 1 and 0."""
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        return to_numbers(_texts(array, table, field), table, field)
    wrong = np.isinf(array)
    if array.itemsize < 8 and np.any(np.abs(array) > _FLOAT32_EXACT):
        raise table.error(
            f"the column has lost precision: as {array.dtype} it cannot tell {array[np.nanargmax(np.abs(array))]:.0f} "
            "from the next number",
            "Read it from its origin as int64 or float64.",
            field=field,
        )
    if np.any(wrong):
        raise table.error("the number is not finite", "Give a finite one.", row=int(np.argmax(wrong)), field=field)
    return whole(array.astype(np.float64))


def _moments(array: NDArray[Any]) -> Numbers | None:
    """A column of dates as milliseconds since 1970 (a fraction where there are microseconds), else ``None``."""
    if array.dtype.kind == "O":
        values = [None if _is_missing(value) else value for value in array]
        present = [value for value in values if value is not None]
        if not present or not all(isinstance(value, date) for value in present):
            return None
        array = np.array(list(map(_in_utc, values)), "datetime64[us]")
    if array.dtype.kind != "M":
        return None
    milliseconds = array.astype("datetime64[us]").astype(np.int64) / 1000
    milliseconds[np.isnat(array)] = np.nan
    return whole(milliseconds)


def _in_utc(value: date | None) -> date | None:
    """The same moment without a zone, as numpy wants it."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _texts(array: NDArray[Any], table: Table, field: str) -> list[str]:
    """A column as texts; equal texts share one object."""
    values = (array.astype("datetime64[us]") if array.dtype.kind == "M" else array).tolist()
    binary = _binary(array)
    if binary is not None:
        raise table.error(
            "the column holds bytes where text is needed",
            "Decode it first, as pandas does with .str.decode('utf-8').",
            row=binary,
            field=field,
        )
    texts = list(map(_text, values))
    shared: dict[str, str] = {}
    return list(map(shared.setdefault, texts, texts))


def _binary(array: NDArray[Any]) -> int | None:
    """The first row of a column that holds bytes, if there is one."""
    return next((row for row, value in enumerate(array.tolist()) if isinstance(value, bytes)), None)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return "; ".join(map(_text, value))
    if _is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a column of whole numbers becomes one of floats where a value is missing
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")  # a date without time, where a frame has only moments
    return str(value)


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, or pandas's NA, which has no truth value."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _digest(columns: Mapping[str, Column]) -> str:
    sha256 = hashlib.sha256()
    for name, column in columns.items():
        sha256.update(msgspec.json.encode([name, column if isinstance(column, list) else column.tolist()]))
    return sha256.hexdigest()
