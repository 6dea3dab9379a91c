"""Reading RecBole atomic files: tab-separated text under one header line of ``name:type`` fields, never quoted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simengine.data.columns import Column, Numbers, decode, read_columns
from simengine.errors import InputError

TYPES = ("token", "token_seq", "float", "float_seq")
FIRST_LINE = 2  # the line number of a table's first row, below the header

_FIELD = re.compile(rf"[^:\s,]+:({'|'.join(TYPES)})")
_SEPARATORS = {",": "a comma", ";": "a semicolon", "|": "a bar", " ": "a blank"}


@dataclass(frozen=True, eq=False)
class Table:
    """One file as columns of equal length; row ``i`` is line ``i + 2``. ``sha256`` is that of the file's bytes."""

    file: str
    columns: Mapping[str, Column]
    sha256: str

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __contains__(self, field: str) -> bool:
        return field in self.columns

    def texts(self, field: str) -> list[str]:
        """A column of texts. A field that is not there, or is numeric, is an error that names it."""
        column = self._column(field)
        if not isinstance(column, list):
            raise InputError(
                "the field holds numbers where text is needed",
                remedy=f"Declare it as {field}:token in the header.",
                file=self.file,
                line=1,
                field=field,
            )
        return column

    def ids(self, field: str) -> list[str]:
        """A column of texts none of which is empty."""
        column = self.texts(field)
        if "" in column:
            raise InputError(
                "the id is empty",
                remedy="Give the id, or leave the line out.",
                file=self.file,
                line=column.index("") + FIRST_LINE,
                field=field,
            )
        return column

    def numbers(self, field: str) -> Numbers:
        """A column of numbers, int64 where all are integral. A missing value is an error, as is a missing field."""
        column = self._column(field)
        if isinstance(column, list):
            raise InputError(
                "the field holds text where numbers are needed",
                remedy=f"Declare it as {field}:float in the header.",
                file=self.file,
                line=1,
                field=field,
            )
        missing = (column != column).nonzero()[0]
        if len(missing):
            raise InputError(
                "the value is missing",
                remedy="Give the value, or leave the line out.",
                file=self.file,
                line=int(missing[0]) + FIRST_LINE,
                field=field,
            )
        return column

    def _column(self, field: str) -> Column:
        if field not in self.columns:
            raise InputError(
                f"there is no field {field}; the fields are {', '.join(self.columns)}",
                remedy="Add the field, or change the settings that ask for it.",
                file=self.file,
                line=1,
                field=field,
            )
        return self.columns[field]


def read_table(path: Path, *, numeric: bool = True) -> Table:
    """Read an atomic file. Text is kept exactly as written: split on tabs only, never stripped, never unquoted.

    Columns of type ``float`` become numbers (all columns stay text if not ``numeric``), the other types stay text. A
    byte-order mark and CR LF line ends are accepted. Raises :class:`InputError` with file, line and field.
    """
    data, sha256 = _read(path)
    header, _, body = data.partition(b"\n")
    types = _parse_header(header, str(path))
    are_numeric = [numeric and kind == "float" for kind in types.values()]
    columns = read_columns(body, list(types), are_numeric, str(path))
    return Table(str(path), columns, sha256)


def read_lines(path: Path) -> tuple[list[str], str]:
    """The lines of a file without a header, and the SHA-256 of its bytes; the same care, the same errors."""
    data, sha256 = _read(path)
    return decode(data, str(path)).split("\n")[:-1], sha256


def _read(path: Path) -> tuple[bytes, str]:
    """A file's bytes with ``\\n`` line ends, the last line ended too, and without byte-order mark; and their digest."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", remedy="Check the path and its permissions.", file=str(path)
        ) from None
    sha256 = hashlib.sha256(data).hexdigest()
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    return data if not data or data.endswith(b"\n") else data + b"\n", sha256


def _parse_header(line: bytes, file: str) -> dict[str, str]:
    """Field names and types of the header line, in order."""
    header = decode(line, file)
    fields = header.split("\t")
    if not all(_FIELD.fullmatch(field) for field in fields):
        raise InputError(
            f"this is no header of tab-separated name:type fields: {header[:120]!r}",
            remedy=_likely_cause(header),
            file=file,
            line=1,
        )
    types = dict(field.split(":") for field in fields)
    if len(types) < len(fields):
        raise InputError(
            f"the header names a field twice: {header!r}", remedy="Rename one of the two.", file=file, line=1
        )
    return types


def _likely_cause(header: str) -> str:
    """What is probably wrong with a header line, and what to do."""
    if not header:
        return "The first line is empty; it must name the fields, as in user_id:token<TAB>item_id:token."
    if header.lstrip().startswith("#"):
        return "Remove the leading '#': the header is a line of data, not a comment."
    for mark, name in _SEPARATORS.items():
        parts = [part.strip() for part in header.split(mark) if part.strip()]
        if len(parts) > 1 and all(_FIELD.fullmatch(part) for part in parts):
            return f"The separator seems to be {name}; write the file with tabs."
    if ":" not in header:
        return "The file seems to have no header; put one first, as in user_id:token<TAB>item_id:token."
    return f"A field is name:type, with one of the types {', '.join(TYPES)}, and fields are separated by tabs."
