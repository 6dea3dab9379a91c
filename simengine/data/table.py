"""A table as every reader gives it: named columns of texts or numbers, and where each row stands in its source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process, utils

from simengine.data.columns import Column, Numbers, parse_numbers, whole
from simengine.errors import InputError

FIRST_LINE = 2  # the line number of a file's first row, below the header


@dataclass(frozen=True, eq=False)
class Table:
    """One source as columns of equal length.

    ``file`` names the source, ``sha256`` is that of its bytes. Row ``i`` stands in line ``lines[i]``, by default
    ``i + 2``; ``counted`` tells whether these are lines of a text or rows of a frame (the first is row 0).
    ``datetimes`` are the fields that came as dates with time and are milliseconds since 1970 (UTC) here.
    """

    file: str
    columns: Mapping[str, Column]
    sha256: str
    lines: NDArray[np.int64] | None = None
    counted: Literal["line", "row"] = "line"
    datetimes: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __contains__(self, field: str) -> bool:
        return field in self.columns

    def line_numbers(self) -> NDArray[np.int64]:
        """Where each row stands."""
        return np.arange(FIRST_LINE, len(self) + FIRST_LINE) if self.lines is None else self.lines

    def error(self, problem: str, remedy: str, *, row: int | None = None, **where: Any) -> InputError:
        """An error that names this source, and the line (or row) where ``row`` stands."""
        if row is not None:
            where = {self.counted: int(self.line_numbers()[row]), **where}
        return InputError(problem, remedy=remedy, file=self.file, **where)

    def texts(self, field: str) -> list[str]:
        """A column of texts. A field that is not there, or is numeric, is an error that names it."""
        column = self._column(field)
        if not isinstance(column, list):
            remedy = f"Declare it as {field}:token in the header."
            raise self.error("the field holds numbers where text is needed", remedy, line=1, field=field)
        return column

    def ids(self, field: str) -> list[str]:
        """A column of texts none of which is empty."""
        column = self.texts(field)
        if "" in column:
            remedy = f"Give the id, or leave the {self.counted} out."
            raise self.error("the id is empty", remedy, row=column.index(""), field=field)
        return column

    def numbers(self, field: str) -> Numbers:
        """A column of numbers, int64 where all are integral. A missing value is an error, as is a missing field."""
        column = self._column(field)
        if isinstance(column, list):
            remedy = f"Declare it as {field}:float in the header."
            raise self.error("the field holds text where numbers are needed", remedy, line=1, field=field)
        missing = (column != column).nonzero()[0]
        if len(missing):
            remedy = f"Give the value, or leave the {self.counted} out."
            raise self.error("the value is missing", remedy, row=int(missing[0]), field=field)
        return column

    def _column(self, field: str) -> Column:
        if field not in self.columns:
            near = nearest(field, self.columns)
            raise self.error(
                f"there is no field {field}; the fields are {', '.join(self.columns)}",
                f"Did you mean {near}? Rename the field in the header."
                if near
                else "Add the field, or change the settings that ask for it.",
                line=1,
                field=field,
            )
        return self.columns[field]


@dataclass(frozen=True)
class Wanted:
    """What to read of a source whose columns have names of the user's own.

    ``named`` gives the column that each setting names, as ``data.columns.user: userId``; ``numeric`` are the columns to
    read as numbers. Other columns are not read, unless ``others``: then all of a name of their own are, as texts.
    """

    named: Mapping[str, str]
    numeric: frozenset[str] = frozenset()
    others: bool = False

    def choose(self, names: Sequence[str], file: str, line: int | None = None, remedy: str = "") -> list[str]:
        """Those of ``names`` that are to be read, in order. A column that is not there or there twice is an error.

        ``remedy`` goes before the error's own where a column is missing.
        """
        for setting, column in self.named.items():
            if column not in names:
                near = nearest(column, names)
                hint = remedy or (f"Did you mean `{near}`?" if near else "Name a column that is there.")
                raise InputError(
                    f"there is no column `{column}`; the columns are {', '.join(names) or 'none'}",
                    remedy=f"{hint} The name is given by {setting}.",
                    file=file,
                    line=line,
                )
        named = set(self.named.values())
        chosen = [name for name in names if name in named or (self.others and name and names.count(name) == 1)]
        for name in chosen:
            if names.count(name) > 1:
                raise InputError(
                    f"two columns have the name `{name}`", remedy="Rename one of the two.", file=file, line=line
                )
        return chosen


def read_bytes(path: Path) -> tuple[bytes, str]:
    """A file's bytes and their SHA-256."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", remedy="Check the path and its permissions.", file=str(path)
        ) from None
    return data, hashlib.sha256(data).hexdigest()


def to_numbers(texts: list[str], table: Table, field: str) -> Numbers:
    """Texts as numbers, NaN where one is empty; nothing but ``true`` and ``false`` as 1 and 0.

    A text that is neither is an error, which names its line in ``table`` and the field.
    """
    values, wrong = parse_numbers(texts)
    if wrong is not None and {text.lower() for text in dict.fromkeys(texts)} <= {"true", "false", ""}:
        values, wrong = parse_numbers([text and str(int(text.lower() == "true")) for text in texts])
    if wrong is not None:
        raise table.error(
            f"{texts[wrong]!r} is not a number",
            "Give a finite number; a time is one of seconds or milliseconds since 1970 (UTC).",
            row=wrong,
            field=field,
        )
    return whole(values)


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that is spelled most like ``word``; ``None`` where none is near enough to be meant."""
    match = process.extractOne(word, list(choices), scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=60)
    return str(match[0]) if match else None


def digest(parts: Mapping[str, str]) -> str:
    """One SHA-256 over the roles and digests of all sources of a data set."""
    text = "".join(f"{role} {sha256}\n" for role, sha256 in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()
