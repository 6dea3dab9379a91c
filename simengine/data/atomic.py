"""Reading RecBole atomic files: tab-separated text under one header line of ``name:type`` fields, never quoted."""

from __future__ import annotations

import re
from pathlib import Path

from simengine.data.columns import decode, read_columns
from simengine.data.table import Table, read_bytes
from simengine.errors import InputError

TYPES = ("token", "token_seq", "float", "float_seq")

_FIELD = re.compile(rf"[^:\s,]+:({'|'.join(TYPES)})")
_SEPARATORS = {",": "a comma", ";": "a semicolon", "|": "a bar", " ": "a blank"}


def read_table(path: Path, *, numeric: bool = True) -> Table:
    """Read an atomic file. Text is kept exactly as written: split on tabs only, never stripped, never unquoted.

    Columns of type ``float`` become numbers (all columns stay text if not ``numeric``), the other types stay text. A
    byte-order mark and CR LF line ends are accepted. Raises :class:`InputError` with file, line and field.
    """
    data, sha256 = _read_lines(path)
    header, _, body = data.partition(b"\n")
    types = parse_header(header, str(path))
    are_numeric = [numeric and kind == "float" for kind in types.values()]
    columns = read_columns(body, list(types), are_numeric, str(path))
    return Table(str(path), columns, sha256)


def read_lines(path: Path) -> tuple[list[str], str]:
    """The lines of a file without a header, and the SHA-256 of its bytes; the same care, the same errors."""
    data, sha256 = _read_lines(path)
    return decode(data, str(path)).split("\n")[:-1], sha256


def _read_lines(path: Path) -> tuple[bytes, str]:
    """A file's bytes with ``\\n`` line ends, the last line ended too, and without byte-order mark; and their digest."""
    data, sha256 = read_bytes(path)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    return data if not data or data.endswith(b"\n") else data + b"\n", sha256


def parse_header(line: bytes, file: str) -> dict[str, str]:
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
