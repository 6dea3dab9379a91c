"""A whole interaction log, one row an interaction: which rows are kept, in what order, and what each of them is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress, islice, repeat

import numpy as np
from numpy.typing import NDArray

from simengine.data.assemble import Part, Rows, leave_one_out, users_note
from simengine.data.columns import Numbers
from simengine.data.dataset import Unit
from simengine.data.order import moment, natural_key, timestamp_unit
from simengine.data.settings import LogColumns, LogSettings, Ratio
from simengine.data.table import Table
from simengine.data.timeline import by_ratio, by_user, by_user_notes, ratio_notes
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

    kept = _keep(table, columns, settings, item >= 0)
    item, moments, lines, user = item[kept.rows], moments[kept.rows], lines[kept.rows], kept.user
    order = np.lexsort((lines, item, moments, user))
    place, part = leave_one_out(user, order)
    clock: Unit = "step" if settings.clock == "step" else unit
    time = place if clock == "step" else moments
    if isinstance(settings.split, Ratio) and settings.split.by == "user":
        part = by_user(place, np.bincount(user)[user], settings.split.ratio)
        said = tuple(by_user_notes(user, part))
        remedy = "Give the test part a larger share, or say `split: leave_one_out`."
    elif isinstance(settings.split, Ratio) and unit != "step":
        part = by_ratio(user, order, moments, settings.split.ratio)
        said = tuple(ratio_notes(moments, user, part, unit))
        remedy = "Give the test period a larger share, or say `split: leave_one_out`."
    else:
        said, remedy = tuple(_leave_one_out_notes(time, part, clock, len(kept.users))), ""
    if remedy and not np.any(part == Part.TEST):
        raise table.error(f"nobody has a test case: {said[0]}", remedy)
    return Rows(kept.users, user, item, time, lines, part, clock, (*notes, *kept.notes, *said))


@dataclass(frozen=True, eq=False)
class _Kept:
    """The rows that are kept, as a mask over all; the users in the stated order, and that of each kept row."""

    rows: NDArray[np.bool_]
    users: tuple[str, ...]
    user: NDArray[np.int32]
    notes: tuple[str, ...]


def _keep(table: Table, columns: LogColumns, settings: LogSettings, about: NDArray[np.bool_]) -> _Kept:
    """Of the rows ``about`` items that are kept, those rated high enough, of users who then have enough of them, of the
    first so many users."""
    rows, ids, notes = about, table.ids(columns.user), []
    if not np.all(about):
        notes.append(f"{np.count_nonzero(about)} of {len(about)} interactions are about items of these domains")
        ids_about = list(compress(ids, about.tolist()))
    else:
        ids_about = ids
    if settings.min_rating is not None and columns.rating:
        rows = about & (table.numbers(columns.rating) >= settings.min_rating)
    names = list(compress(ids, rows.tolist()))
    counts = Counter(names)  # in order of first appearance
    enough = [user for user, count in counts.items() if count >= settings.min_interactions]
    if not enough:
        raise _nothing_left(table, settings, bool(ids_about), bool(counts))
    users = tuple(sorted(enough, key=natural_key) if columns.time else enough)[: settings.users]
    codes = {user: code for code, user in enumerate(users)}
    user = np.fromiter(map(codes.get, names, repeat(-1)), np.int32, len(names))
    if settings.min_rating is not None:
        lost = len(set(ids_about)) - len(counts)
        rated = f"{len(names)} of {len(ids_about)} interactions are rated {settings.min_rating:g} or higher and kept"
        notes.append(rated)
        if lost:
            notes.append(f"{lost} users have no interaction that is rated so high, and are left out")
    if len(enough) < len(counts):
        left_out = len(names) - sum(map(counts.__getitem__, enough))
        notes.append(
            f"{len(counts) - len(enough)} of {len(counts)} users have fewer than {settings.min_interactions} "
            f"interactions, and are left out with their {left_out} interactions"
        )
    rows = rows.copy()
    rows[rows] = user >= 0
    return _Kept(rows, users, user[user >= 0], (*notes, *users_note(settings.users, len(users))))


def _nothing_left(table: Table, settings: LogSettings, about: bool, rated: bool) -> InputError:
    """The error where no row is left: nothing is about the kept items, or is rated high enough, or users have few."""
    if not about:
        remedy = "Name other domains under data.domains."
        return table.error("no interaction is left: none is about an item of these domains", remedy)
    few = (
        f"no user has {settings.min_interactions} of them"
        if rated
        else f"none is rated {settings.min_rating:g} or higher"
    )
    return table.error(f"no interaction is left: {few}", f"Lower data.{'min_interactions' if rated else 'min_rating'}.")


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
