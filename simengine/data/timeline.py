"""Splitting a log by shares: on the global time line for all users at once, or each user's own interactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simengine.data.assemble import Part
from simengine.data.columns import Numbers
from simengine.data.order import moment


def by_ratio(
    user: NDArray[np.int32], order: NDArray[np.intp], moments: Numbers, ratio: tuple[float, ...]
) -> NDArray[np.int8]:
    """The part of each row; ``order`` sorts the rows by user, then time, ``moments`` are their times.

    Of n rows, one belongs to training while fewer than ``ratio[0]`` x n (rounded) are earlier than it, then to
    validation while fewer than ``(ratio[0] + ratio[1])`` x n are, then to test. So rows of one time are never divided:
    they all go where the first of them goes, and training is strictly earlier than every test.

    A user's first row is given if it falls into training. The first in the test period is his test case, with all that
    he took before as its history; where there is nothing before, he has none. His rows after it are of no use.
    """
    earlier = np.searchsorted(np.sort(moments), moments, side="left")
    cuts = np.rint(np.cumsum(ratio[:2]) * len(moments))
    period = np.searchsorted(cuts, earlier, side="right")
    part = np.array([Part.TRAIN, Part.VALIDATION, Part.TEST], np.int8)[period]
    ordered, owner = part[order], user[order]
    first = np.ones(len(order), bool)
    first[1:] = owner[1:] != owner[:-1]
    no_case = np.ones(len(order), bool)
    no_case[1:] = first[1:] | (ordered[:-1] == Part.TEST)
    ordered[first & (ordered == Part.TRAIN)] = Part.GIVEN
    ordered[no_case & (ordered == Part.TEST)] = Part.LATER
    part[order] = ordered
    return part


def ratio_notes(
    moments: Numbers, user: NDArray[np.int32], part: NDArray[np.int8], unit: Literal["s", "ms"]
) -> Iterator[str]:
    """What the split means for these rows: its sizes and dates, and the users without a test case."""
    periods = {
        "training": (part == Part.GIVEN) | (part == Part.TRAIN),
        "validation": part == Part.VALIDATION,
        "test": (part == Part.TEST) | (part == Part.LATER),
    }
    sizes = ", ".join(f"{name} {_extent(moments[rows], unit)}" for name, rows in periods.items())
    yield f"split on the global time line, interactions of one time together: {sizes}"
    users = len(np.unique(user))
    cases = int(np.count_nonzero(part == Part.TEST))
    absent = users - len(np.unique(user[periods["test"]]))
    later = int(np.count_nonzero(part == Part.LATER))
    yield f"{cases} of {users} users have a test case, which is their first interaction in the test period"
    if absent:
        yield f"{absent} users do not occur in the test period, and so have no test case"
    if users - absent - cases:
        yield f"{users - absent - cases} users occur in the test period only, and so have no history for a test case"
    if later:
        yield f"{later} interactions of the test period are no test case, and are not used"


def by_user(place: NDArray[np.int64], count: NDArray[np.int64], ratio: tuple[float, ...]) -> NDArray[np.int8]:
    """The part of each row, which is the ``place``-th (from 1) of the ``count`` interactions of its user.

    Of n, the first ``ratio[0]`` x n (rounded) belong to training, those up to ``(ratio[0] + ratio[1])`` x n (rounded)
    to validation, the others to test (AgentCF++, section 4.1.1). A user's first row is given. His first in the test
    part is his test case, with all before it as its history; his rows after it are of no use.
    """
    cuts = [np.rint(share * count) for share in np.cumsum(ratio[:2])]
    part = np.full(len(place), Part.TRAIN, np.int8)
    part[place > cuts[0]] = Part.VALIDATION
    part[place > cuts[1]] = Part.TEST
    part[place > cuts[1] + 1] = Part.LATER
    part[place == 1] = Part.GIVEN
    part[(place == 2) & (cuts[1] == 0)] = Part.TEST
    return part


def by_user_notes(user: NDArray[np.int32], part: NDArray[np.int8]) -> Iterator[str]:
    """What the split means for these rows: its sizes, and the users without a test case."""
    given, training, validation, test, later = (int(np.count_nonzero(part == one)) for one in Part)
    yield (
        f"each user's interactions are split by their order: training {given + training}, validation {validation}, "
        f"test {test + later}; the first of the test part is the test case"
    )
    users = len(np.unique(user))
    if test < users:
        yield f"{users - test} of {users} users have too few interactions for a test case"
    if later:
        yield f"{later} interactions of the test part are no test case, and are not used"
    yield "users share no split in time: training may hold what happened after another user's test case"


def _extent(moments: Numbers, unit: Literal["s", "ms"]) -> str:
    """So many rows, and from which day to which."""
    if not len(moments):
        return "0"
    first, last = (moment(time.item(), unit).date() for time in (moments.min(), moments.max()))
    return f"{len(moments)} ({first} to {last})"
