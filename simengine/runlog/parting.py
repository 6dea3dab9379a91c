"""Finds the first event in which two logs differ, reading both side by side."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import msgspec

from simengine.runlog.diff import Difference, first_difference
from simengine.runlog.reader import Reader


class Parting(msgspec.Struct, frozen=True):
    """Where two logs part: behind ``after`` equal events, at the event that the first one holds there, else the second.

    ``difference`` has what the first log holds as ``expected``, what the second holds as ``found``.
    """

    after: int
    event: str
    difference: Difference


def find_parting(first: Path, second: Path) -> Parting | None:
    """The first difference between the events of two logs; ``None`` where all are equal.

    Headers and provenance are not compared: two runs of different settings may well do the same things.
    """
    with Reader(first) as one, Reader(second) as other:
        for after, (left, right) in enumerate(zip_longest(one, other)):
            difference = first_difference(left, right)
            if difference is not None:
                return Parting(after, (left or right).event, difference)
    return None
