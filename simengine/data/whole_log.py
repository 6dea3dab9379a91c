"""A whole interaction log in one file, split user by user: the last one for testing, the last but one to validate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress, repeat

import numpy as np
from numpy.typing import NDArray

from simengine.data.assemble import Part, Rows, leave_one_out
from simengine.data.atomic import FIRST_LINE, Table
from simengine.data.columns import Numbers
from simengine.data.dataset import Unit
from simengine.data.order import moment, natural_key, timestamp_unit
from simengine.data.settings import AtomicSettings
from simengine.errors import InputError


def read_log(table: Table, positions: Mapping[str, int], settings: AtomicSettings) -> Rows:
    """The rows of one ``.inter`` file, leave-one-out by time. ``positions`` gives each item's position.

    With timestamps the result does not depend on the order of lines: users stand in natural order of ids, and
    interactions at the same time in order of user, item, occurrence. Without, the order of lines is that of time, and
    users stand in order of first appearance.
    """
    lines = np.arange(FIRST_LINE, len(table) + FIRST_LINE)
    item = _item_positions(table, positions)
    timed = settings.clock == "time" or "timestamp" in table
    moments: Numbers = table.numbers("timestamp") if timed else lines
    unit: Unit = timestamp_unit(moments, FIRST_LINE, table.file) if timed else "step"
    notes = list(_time_notes(moments, unit))

    keep = np.ones(len(table), bool)
    if settings.min_rating is not None:
        keep = table.numbers("rating") >= settings.min_rating
        notes.append(f"{keep.sum()} of {len(table)} interactions are rated {settings.min_rating:g} or higher and kept")

    names = list(compress(table.ids("user_id"), keep.tolist()))
    distinct = dict.fromkeys(names)
    users = tuple(sorted(distinct, key=natural_key) if timed else distinct)[: settings.users]
    codes = {user: code for code, user in enumerate(users)}
    user = np.fromiter(map(codes.get, names, repeat(-1)), np.int32, len(names))
    keep[keep] = user >= 0  # of the rows kept so far, those of users beyond the limit go too
    user, item, moments, lines = user[user >= 0], item[keep], moments[keep], lines[keep]

    place, part = leave_one_out(user, np.lexsort((lines, item, moments, user)))
    if settings.clock == "step":
        unit = "step"
    time = place if unit == "step" else moments
    notes.extend(_split_notes(time, part, unit, len(users)))
    return Rows(users, user, item, time, lines, part, unit, tuple(notes))


def _item_positions(table: Table, positions: Mapping[str, int]) -> NDArray[np.int32]:
    ids = table.ids("item_id")
    try:
        return np.fromiter(map(positions.__getitem__, ids), np.int32, len(ids))
    except KeyError as error:
        raise InputError(
            f"item {error.args[0]!r} is not in the item table",
            remedy="Add it to the .item file, or leave the line out.",
            file=table.file,
            line=ids.index(error.args[0]) + FIRST_LINE,
            field="item_id",
        ) from None


def _time_notes(moments: Numbers, unit: Unit) -> Iterator[str]:
    if unit != "step" and len(moments):
        first, last = (moment(time.item(), unit).date() for time in (moments.min(), moments.max()))
        name = "seconds" if unit == "s" else "milliseconds"
        yield f"timestamps are read as {name} since 1970: {first} to {last} (UTC)"


def _split_notes(time: Numbers, part: NDArray[np.int8], unit: Unit, users: int) -> Iterator[str]:
    """What leave-one-out means for these rows: users without a case, and training from strictly after a test case."""
    tests = time[part == Part.TEST]
    if len(tests) < users:
        yield f"{users - len(tests)} users have a single interaction, and so no test case"
    if unit == "step":
        yield "leave-one-out by steps: users share no clock, so training may hold what happened after a test case"
        return
    training = time[(part == Part.GIVEN) | (part == Part.TRAIN)]
    leaking = int((tests < training.max()).sum()) if len(training) else 0
    if leaking:
        yield (
            f"leave-one-out leaks: for {leaking} of {len(tests)} test cases the training part holds later interactions "
            "of other users"
        )
