"""Order and time: the natural order of ids, and what a timestamp means."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from simengine.data.columns import Numbers
from simengine.errors import InputError

_DIGITS = re.compile(r"([0-9]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_BELOW = 10**11  # as seconds, the year 5138; as milliseconds, March 1973
_MILLISECONDS_BELOW = 10**14


def natural_key(text: str) -> tuple[tuple[str | int, ...], str]:
    """A sort key that compares runs of digits by value: ``u2 < u10``; the text itself settles ``1`` and ``01``."""
    parts: list[str | int] = list(_DIGITS.split(text))
    parts[1::2] = map(int, parts[1::2])
    return tuple(parts), text


def timestamp_unit(times: Numbers, first_line: int, file: str) -> Literal["s", "ms"]:
    """Whether a file's timestamps are seconds or milliseconds, decided once for all of them.

    Below 10^11 they are seconds, from there milliseconds. A file with both, or with values beyond milliseconds, is an
    error: reading it anyway would reorder it in silence. The first is in line ``first_line``.
    """
    size = np.abs(times)
    late = size >= _SECONDS_BELOW
    if np.any(size >= _MILLISECONDS_BELOW):
        row = int(np.argmax(size))
        raise InputError(
            f"timestamp {times[row]} is neither seconds nor milliseconds since 1970",
            remedy="Divide the timestamps down to milliseconds.",
            file=file,
            line=first_line + row,
            field="timestamp",
        )
    if np.any(late) and not np.all(late):
        row, other = int(np.argmax(late)), int(np.argmin(late))
        raise InputError(
            f"timestamp {times[row]} looks like milliseconds, {times[other]} in line {first_line + other} like seconds",
            remedy="Use one unit in the whole file.",
            file=file,
            line=first_line + row,
            field="timestamp",
        )
    return "ms" if np.any(late) else "s"


def moment(time: int | float, unit: Literal["s", "ms"]) -> datetime:
    """The moment (UTC) that a timestamp names."""
    return _EPOCH + (timedelta(milliseconds=time) if unit == "ms" else timedelta(seconds=time))
