"""The hot path of reading: the bytes of tab-separated lines to columns, in chunks, without a list per line.

Separators are found and checked with numpy. Columns of plain digits never become Python objects; equal texts share one
object. So the cost per line stays far below that of a reader that makes a list of strings of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simengine.errors import InputError

Numbers: TypeAlias = NDArray[np.int64 | np.float64]
Column: TypeAlias = list[str] | Numbers

_CHUNK = 1 << 16  # bytes; small enough that a chunk and its separators stay in the processor's cache
_TAB, _NEWLINE, _ZERO = 9, 10, 48
_EXACT_DIGITS = 15  # every integer of so many digits is exact in a float64 as well


def read_columns(body: bytes, fields: Sequence[str], numeric: Sequence[bool], file: str) -> dict[str, Column]:
    """Columns of ``body``, the lines after the header, each ended by a newline.

    A numeric column is int64 where every value is integral, else float64; an empty field in it is NaN.

    Raises :class:`InputError` with file and line for a wrong number of fields, for bytes that are not UTF-8, and (with
    field and value) for text in a numeric column.
    """
    which_texts = [index for index, number in enumerate(numeric) if not number]
    texts: dict[int, list[str]] = {index: [] for index in which_texts}
    shared: dict[int, dict[str, str]] = {index: {} for index in which_texts}
    numbers: dict[int, list[Numbers]] = {index: [] for index, number in enumerate(numeric) if number}
    for chunk in _chunks(body, fields, file):
        for index, column in zip(which_texts, chunk.texts(which_texts), strict=True):
            texts[index].extend(map(shared[index].setdefault, column, column))
        for index, parts in numbers.items():
            parts.append(chunk.numbers(index))
    columns: dict[int, Column] = {**texts, **{index: _joined(parts) for index, parts in numbers.items()}}
    return {field: columns[index] for index, field in enumerate(fields)}


def _chunks(body: bytes, fields: Sequence[str], file: str) -> Iterator[_Chunk]:
    start, line = 0, 2
    while start < len(body):
        end = body.find(b"\n", start + _CHUNK) + 1 or len(body)
        chunk = _Chunk(body[start:end], fields, file, line)
        yield chunk
        start, line = end, line + chunk.rows


class _Chunk:
    """Some whole lines, with the bounds of their fields."""

    def __init__(self, data: bytes, fields: Sequence[str], file: str, line: int) -> None:
        self._data, self._fields, self._file, self._line = data, fields, file, line
        decode(data, file, line)
        self._bytes = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero((self._bytes == _TAB) | (self._bytes == _NEWLINE))
        pattern = np.full(len(fields), _TAB, np.uint8)
        pattern[-1] = _NEWLINE
        if len(ends) % len(fields) or not np.all(self._bytes[ends].reshape(-1, len(fields)) == pattern):
            raise self._field_count_error()
        self._ends = ends.reshape(-1, len(fields))
        self._starts = np.concatenate(([0], ends[:-1] + 1)).reshape(-1, len(fields))
        self.rows = len(self._ends)

    def texts(self, wanted: Sequence[int]) -> list[list[str]]:
        """The wanted columns as texts: the other columns' bytes are dropped, then everything is split once."""
        keep = np.zeros(len(self._fields), bool)
        keep[list(wanted)] = True
        lengths = (self._ends - self._starts + 1).ravel()
        kept = self._bytes[np.repeat(np.tile(keep, self.rows), lengths)].tobytes()
        flat = kept.decode().replace("\n", "\t").split("\t")
        del flat[-1]
        return [flat[position :: len(wanted)] for position in range(len(wanted))]

    def numbers(self, index: int) -> Numbers:
        """One column as numbers."""
        digits = self._digits(self._starts[:, index], self._ends[:, index])
        return self._floats(index) if digits is None else digits

    def _digits(self, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> NDArray[np.int64] | None:
        """The column's value where every field is one to fifteen digits, else ``None``."""
        widths = ends - starts
        widest = int(widths.max())
        if widest > _EXACT_DIGITS or not widths.min():
            return None
        places = ends[:, None] + np.arange(-widest, 0)
        inside = places >= starts[:, None]
        digits = np.where(inside, self._bytes[np.maximum(places, 0)] - np.uint8(_ZERO), np.uint8(0))
        if np.any(digits > 9):
            return None
        return digits @ 10 ** np.arange(widest - 1, -1, -1, dtype=np.int64)

    def _floats(self, index: int) -> NDArray[np.float64]:
        (texts,) = self.texts([index])
        values, wrong = parse_numbers(texts)
        if wrong is not None:
            raise InputError(
                f"{texts[wrong]!r} is not a number",
                remedy="A field of type float holds a finite number, or nothing where the value is missing.",
                file=self._file,
                line=self._line + wrong,
                field=self._fields[index],
                value=texts[wrong],
            )
        return values

    def _field_count_error(self) -> InputError:
        count = len(self._fields)
        lines = self._data.split(b"\n")
        row = next(row for row, line in enumerate(lines) if line.count(b"\t") + 1 != count)
        found = lines[row].count(b"\t") + 1
        return InputError(
            f"{found} fields where the header names {count}" if lines[row] else "the line is empty",
            remedy="Fields are separated by single tabs; an empty field still has its tab.",
            file=self._file,
            line=self._line + row,
        )


def decode(data: bytes, file: str, line: int = 1) -> str:
    """``data``, which begins with that line of the file, as text. Bytes that are not UTF-8 are an error."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {data[error.start]:#04x} is not UTF-8",
            remedy="Convert the file to UTF-8 (iconv -f latin1 -t utf8, if it is Latin-1).",
            file=file,
            line=line + data.count(b"\n", 0, error.start),
        ) from None


def parse_numbers(texts: Sequence[str]) -> tuple[NDArray[np.float64], int | None]:
    """The numbers that the texts spell, NaN for an empty text; and the place of the first text that spells none."""
    try:
        values = np.fromiter((float(text or "nan") for text in texts), np.float64, len(texts))
    except ValueError:
        values = np.full(len(texts), np.nan)
    if np.all(np.isfinite(values)) and "_" not in "".join(texts):
        return values, None
    return values, next((row for row, text in enumerate(texts) if text and not _is_number(text)), None)


def whole(values: Numbers) -> Numbers:
    """The same numbers, as int64 where all are integral and exact."""
    if values.dtype == np.float64 and np.all(values == np.rint(values)) and np.all(np.abs(values) < 10**_EXACT_DIGITS):
        return values.astype(np.int64)
    return values


def _joined(parts: list[Numbers]) -> Numbers:
    return whole(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _is_number(text: str) -> bool:
    """A finite number without the underscores that Python alone would allow."""
    try:
        return "_" not in text and bool(np.isfinite(float(text)))
    except ValueError:
        return False
