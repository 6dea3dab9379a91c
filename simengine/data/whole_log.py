"""A whole interaction log, one row an interaction: in what order they come, and what each of them is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from simengine.data.assemble import Part, Rows, leave_one_out
from simengine.data.columns import Numbers
from simengine.data.dataset import Unit
from simengine.data.filters import keep
from simengine.data.order import moment, timestamp_unit
from simengine.data.settings import LogColumns, LogSettings, Ratio
from simengine.data.table import Table
from simengine.data.timeline import by_ratio, by_user, by_user_notes, first_cases, ratio_notes
from simengine.errors import InputError


def read_log(
    table: Table,
    columns: LogColumns,
    positions: Mapping[str, int],
    settings: LogSettings,
    others: Iterable[str] = (),
) -> Rows:
    """The rows of a log, split as the settings say. ``positions`` gives each item's position.

    ``others`` are the items of the item table that are left out, with the rows about them.
    With timestamps the result does not depend on the order of rows: users stand in natural order of ids, and
    interactions at the same time in order of user, item, occurrence. Without, the order of rows is that of time, and
    users stand in order of first appearance.
    """
    if not len(table):
        raise table.error("the log holds no interaction", "Give one row an interaction.")
    item = _item_positions(table, columns.item, {**dict.fromkeys(others, -1), **positions})
    lines = table.line_numbers()
    moments: Numbers = table.numbers(columns.time) if columns.time else lines
    unit: Unit = timestamp_unit(table, columns.time) if columns.time else "step"
    notes = [*_time_notes(moments, unit), *_rating_notes(table, columns)]

    kept = keep(table, columns, settings, item, len(positions))
    item, moments, lines, user = kept.item, moments[kept.rows], lines[kept.rows], kept.user
    order = np.lexsort((lines, item, moments, user))
    place, part = leave_one_out(user, order)
    clock: Unit = "step" if settings.clock == "step" else unit
    time = place if clock == "step" else moments
    if isinstance(settings.split, Ratio) and settings.split.by == "user":
        part = by_user(place, np.bincount(user)[user], settings.split.ratio)
        part = part if settings.split.cases == "all" else first_cases(user, order, part)
        said = tuple(by_user_notes(user, part, settings.split.cases))
        remedy = "Give the test part a larger share, or say `split: leave_one_out`."
    elif isinstance(settings.split, Ratio) and unit != "step":
        part = by_ratio(user, order, moments, settings.split.ratio)
        part = part if settings.split.cases == "all" else first_cases(user, order, part)
        said = tuple(ratio_notes(moments, user, part, unit, settings.split.cases))
        remedy = "Give the test period a larger share, or say `split: leave_one_out`."
    else:
        said, remedy = tuple(_leave_one_out_notes(time, part, clock, len(kept.users))), ""
    if remedy and not np.any(part == Part.TEST):
        raise table.error(f"nobody has a test case: {said[0]}", remedy)
    return Rows(kept.users, user, item, time, lines, part, clock, (*notes, *kept.notes, *said), kept.items)


def _item_positions(table: Table, field: str, positions: Mapping[str, int]) -> NDArray[np.int32]:
    ids = table.ids(field)
    try:
        return np.fromiter(map(positions.__getitem__, ids), np.int32, len(ids))
    except KeyError as error:
        raise _unknown_item(error.args[0], ids, positions, table, field) from None


def _unknown_item(item: str, ids: list[str], positions: Mapping[str, int], table: Table, field: str) -> InputError:
    """An item of the log that the item table lacks; where it lacks all of them, the two have different keys."""
    distinct = dict.fromkeys(ids)
    if positions.keys().isdisjoint(distinct):
        here, there = (", ".join(map(repr, islice(keys, 3))) for keys in (distinct, positions))
        return table.error(
            f"none of the {len(distinct)} items of the log is in the item table: the log has {here}, the table {there}",
            "Name the columns that hold the same ids in both.",
            field=field,
        )
    return table.error(
        f"item {item!r} is not in the item table",
        f"Add it to the item table, or leave the {table.counted} out.",
        row=ids.index(item),
        field=field,
    )


def _time_notes(moments: Numbers, unit: Unit) -> Iterator[str]:
    if unit == "step":
        yield "there are no timestamps: the order of rows is taken for that of time"
        return
    first, last = (moment(time.item(), unit).date() for time in (moments.min(), moments.max()))
    name = "seconds" if unit == "s" else "milliseconds"
    yield f"timestamps are read as {name} since 1970: {first} to {last} (UTC)"


def _rating_notes(table: Table, columns: LogColumns) -> Iterator[str]:
    ratings = table.columns.get(columns.rating or "")
    if isinstance(ratings, np.ndarray) and len(ratings) > 1 and np.all(ratings == ratings[0]):
        yield f"every {columns.rating} is {ratings[0]:g}: it tells nothing apart, and none counts as a dislike"


def _leave_one_out_notes(time: Numbers, part: NDArray[np.int8], unit: Unit, users: int) -> Iterator[str]:
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
            "of other users; a ratio split does not"
        )
