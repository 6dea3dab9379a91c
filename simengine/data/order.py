"""Order and time: the natural order of ids, and what a timestamp means."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from simengine.data.table import Table

_DIGITS = re.compile(r"([0-9]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_BELOW = 10**11  # as seconds, the year 5138; as milliseconds, March 1973
MILLISECONDS_BELOW = 10**14


def natural_key(text: str) -> tuple[tuple[str | int, ...], str]:
    """A sort key that compares runs of digits by value: ``u2 < u10``; the text itself settles ``1`` and ``01``."""
    parts: list[str | int] = list(_DIGITS.split(text))
    parts[1::2] = map(int, parts[1::2])
    return tuple(parts), text


def timestamp_unit(table: Table, field: str) -> Literal["s", "ms"]:
    """Whether a source's timestamps are seconds or milliseconds, decided once for all of them.

    Below 10^11 they are seconds, from there milliseconds. A source with both, or with values beyond milliseconds, is an
    error: reading it anyway would reorder it in silence. Values that came as dates with time need no such rule.
    """
    times = table.numbers(field)
    if field in table.datetimes:
        return "ms"
    size = np.abs(times)
    late = size >= SECONDS_BELOW
    if np.any(size >= MILLISECONDS_BELOW):
        row = int(np.argmax(size))
        raise table.error(
            f"timestamp {times[row]:.17g} is neither seconds nor milliseconds since 1970",
            "Divide the timestamps down to milliseconds.",
            row=row,
            field=field,
        )
    if np.any(late) and not np.all(late):
        row, other = int(np.argmax(late)), int(np.argmin(late))
        place = f"{table.counted} {table.line_numbers()[other]}"
        raise table.error(
            f"timestamp {times[row]} looks like milliseconds, {times[other]} in {place} like seconds",
            f"Use one unit in the whole {'file' if table.counted == 'line' else 'column'}.",
            row=row,
            field=field,
        )
    return "ms" if np.any(late) else "s"


def moment(time: int | float, unit: Literal["s", "ms"]) -> datetime:
    """The moment (UTC) that a timestamp names."""
    return _EPOCH + (timedelta(milliseconds=time) if unit == "ms" else timedelta(seconds=time))
