"""Splitting a log by shares: on the global time line for all users at once, or each user's own interactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simengine.data.assemble import Part
from simengine.data.columns import Numbers
from simengine.data.order import moment

Cases: TypeAlias = Literal["all", "first"]
"""Which interactions of a test part are test cases: all, or each user's first."""


def by_ratio(
    user: NDArray[np.int32], order: NDArray[np.intp], moments: Numbers, ratio: tuple[float, ...]
) -> NDArray[np.int8]:
    """The part of each row; ``order`` sorts the rows by user, then time, ``moments`` are their times.

    Of n rows, one belongs to training while fewer than ``ratio[0]`` x n (rounded) are earlier than it, then to
    validation while fewer than ``(ratio[0] + ratio[1])`` x n are, then to test. So rows of one time are never divided:
    they all go where the first of them goes, and training is strictly earlier than every test.

    A user's first row is given if it falls into training. His rows in the test period are test cases, each with all
    that he took before as its history; but where none is earlier than the period, they are of no use.
    """
    earlier = np.searchsorted(np.sort(moments), moments, side="left")
    cuts = np.rint(np.cumsum(ratio[:2]) * len(moments))
    period = np.searchsorted(cuts, earlier, side="right")
    part = np.array([Part.TRAIN, Part.VALIDATION, Part.TEST], np.int8)[period]
    ordered, first = part[order], _first_of_each(user[order])
    begins_in = ordered[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]  # of each row's user
    ordered[first & (ordered == Part.TRAIN)] = Part.GIVEN
    ordered[begins_in == Part.TEST] = Part.LATER
    part[order] = ordered
    return part


def ratio_notes(
    moments: Numbers, user: NDArray[np.int32], part: NDArray[np.int8], unit: Literal["s", "ms"], cases: Cases
) -> Iterator[str]:
    """What the split means for these rows: its sizes and dates, its test cases, and the users without one."""
    periods = {
        "training": (part == Part.GIVEN) | (part == Part.TRAIN),
        "validation": part == Part.VALIDATION,
        "test": (part == Part.TEST) | (part == Part.LATER),
    }
    sizes = ", ".join(f"{name} {_extent(moments[rows], unit)}" for name, rows in periods.items())
    yield f"split on the global time line, interactions of one time together: {sizes}"
    yield _cases_note(user, part, "in the test period", cases)
    users, there, tested = (len(np.unique(of)) for of in (user, user[periods["test"]], user[part == Part.TEST]))
    if there < users:
        yield f"{users - there} users do not occur in the test period, and so have no test case"
    if tested < there:
        yield f"{there - tested} users occur in the test period only, and so have no history for a test case"
    later = int(np.count_nonzero(part == Part.LATER))
    if later:
        yield f"{later} interactions of the test period are no test case, and are not used"


def by_user(place: NDArray[np.int64], count: NDArray[np.int64], ratio: tuple[float, ...]) -> NDArray[np.int8]:
    """The part of each row, which is the ``place``-th (from 1) of the ``count`` interactions of its user.

    Of n, the first ``ratio[0]`` x n (rounded) belong to training, those up to ``(ratio[0] + ratio[1])`` x n (rounded)
    to validation, the others to test (AgentCF++, section 4.1.1). A user's first row is given. Those in the test part
    are test cases, each with all before it as its history.
    """
    cuts = [np.rint(share * count) for share in np.cumsum(ratio[:2])]
    part = np.full(len(place), Part.TRAIN, np.int8)
    part[place > cuts[0]] = Part.VALIDATION
    part[place > cuts[1]] = Part.TEST
    part[place == 1] = Part.GIVEN
    return part


def by_user_notes(user: NDArray[np.int32], part: NDArray[np.int8], cases: Cases) -> Iterator[str]:
    """What the split means for these rows: its sizes, its test cases, and the users without one."""
    given, training, validation, test, later = (int(np.count_nonzero(part == one)) for one in Part)
    yield (
        f"each user's interactions are split by their order: training {given + training}, validation {validation}, "
        f"test {test + later}"
    )
    yield _cases_note(user, part, "in the test part", cases)
    users, tested = len(np.unique(user)), len(np.unique(user[part == Part.TEST]))
    if tested < users:
        yield f"{users - tested} of {users} users have too few interactions for a test case"
    if later:
        yield f"{later} interactions of the test part are no test case, and are not used"
    yield "users share no split in time: training may hold what happened after another user's test case"


def first_cases(user: NDArray[np.int32], order: NDArray[np.intp], part: NDArray[np.int8]) -> NDArray[np.int8]:
    """The parts with each user's first test case alone; later rows are of no use. ``order`` is by user, then time."""
    tests = order[part[order] == Part.TEST]
    left = part.copy()
    left[tests[~_first_of_each(user[tests])]] = Part.LATER
    return left


def _first_of_each(ordered: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Where in a sorted array a value stands for the first time."""
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def _cases_note(user: NDArray[np.int32], part: NDArray[np.int8], where: str, cases: Cases) -> str:
    """How many test cases there are, whose, and by which rule."""
    tests = part == Part.TEST
    tested, users = len(np.unique(user[tests])), len(np.unique(user))
    if cases == "first":
        return f"{tested} of {users} users have a test case, which is their first interaction {where}"
    return f"{np.count_nonzero(tests)} test cases, of {tested} of {users} users: each interaction {where} is one"


def _extent(moments: Numbers, unit: Literal["s", "ms"]) -> str:
    """So many rows, and from which day to which."""
    if not len(moments):
        return "0"
    first, last = (moment(time.item(), unit).date() for time in (moments.min(), moments.max()))
    return f"{len(moments)} ({first} to {last})"
