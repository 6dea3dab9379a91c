"""From rows with their parts to a data set: total order, occurrences, test cases, what each user is known to have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simengine.data.columns import Numbers
from simengine.data.dataset import Case, Dataset, Interactions, Item, Unit

Candidates: TypeAlias = Callable[[str, str], "tuple[str, ...] | None"]
"""For a user and a target the candidates of the case, or ``None`` where the data leave them open."""


def users_note(asked: int | None, found: int) -> tuple[str, ...]:
    """What to say where the data have fewer users than are asked for."""
    return (f"{asked} users are asked for, the data have {found}",) if asked is not None and found < asked else ()


def no_candidates(user: str, target: str) -> None:
    """For data that leave the candidates open."""


class Part(IntEnum):
    """What a row is for."""

    GIVEN = 0  # history from the start, never a target
    TRAIN = 1
    VALIDATION = 2
    TEST = 3
    LATER = 4  # known of the user, so never his negative; otherwise not used


@dataclass(frozen=True, eq=False)
class Rows:
    """All interactions of a source, in any order: positions of user and item, time, source line, :class:`Part`.

    ``users`` are in the stated order, items are counted in natural order of ids. ``notes`` are the reader's. Where a
    filter left items out, ``items`` are the positions of the others in the item table, and ``item`` counts those.
    """

    users: tuple[str, ...]
    user: NDArray[np.int32]
    item: NDArray[np.int32]
    time: Numbers
    line: NDArray[np.int64]
    part: NDArray[np.int8]
    unit: Unit
    notes: tuple[str, ...] = ()
    items: NDArray[np.int32] | None = None


def leave_one_out(user: NDArray[np.int32], order: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """For each row its place in its user's sequence (from 1) and its part; ``order`` sorts the rows by user, then time.

    A user's first row is given, the last of two or more is for testing, the last but one of three or more for
    validation, those between are for training.
    """
    counts = np.bincount(user) if len(user) else np.zeros(0, np.int64)
    sorted_user = user[order]
    place = np.empty(len(user), np.int64)
    place[order] = np.arange(len(user)) - (np.cumsum(counts) - counts)[sorted_user] + 1
    from_end = counts[user] - place
    part = np.full(len(user), Part.TRAIN, np.int8)
    part[from_end == 1] = Part.VALIDATION
    part[from_end == 0] = Part.TEST
    part[place == 1] = Part.GIVEN
    return place, part


def assemble(
    rows: Rows,
    items: Mapping[str, Item],
    *,
    name: str,
    noun: str,
    digest: str = "",
    notes: tuple[str, ...] = (),
    candidates: Candidates = no_candidates,
) -> Dataset:
    """The data set that the rows make. Its notes are the given ones, the rows', and what is seen here."""
    item_ids = tuple(items)
    if rows.items is not None:
        item_ids = tuple(item_ids[place] for place in rows.items.tolist())
        items = MappingProxyType({item: items[item] for item in item_ids})
    order = np.lexsort((rows.line, rows.item, rows.user, rows.time))
    table = _table(rows, item_ids, order)
    part = rows.part[order]
    sequences = dict(_sequences(table, part))
    cases = tuple(
        Case(user, item, taken[:place], candidates(user, item), time, number)
        for user, (taken, tests) in sequences.items()
        for number, (place, item, time) in enumerate(tests, 1)
    )
    return Dataset(
        name=name,
        noun=noun,
        users=rows.users,
        items=items,
        train=_select(table, part == Part.TRAIN),
        history=_select(table, (part == Part.GIVEN) | (part == Part.VALIDATION)),
        training_part=_select(table, (part == Part.GIVEN) | (part == Part.TRAIN)),
        cases=cases,
        own=MappingProxyType({user: frozenset(taken) for user, (taken, _) in sequences.items()}),
        unit=rows.unit,
        digest=digest,
        notes=(*notes, *rows.notes, *_repeat_notes(table), *_case_notes(cases)),
    )


def _table(rows: Rows, item_ids: tuple[str, ...], order: NDArray[np.intp]) -> Interactions:
    """All rows in total order, with occurrences counted up where user, item and time repeat."""
    user, item, time = rows.user[order], rows.item[order], rows.time[order]
    new = np.ones(len(order), bool)
    new[1:] = (time[1:] != time[:-1]) | (user[1:] != user[:-1]) | (item[1:] != item[:-1])
    place = np.arange(len(order))
    occurrence = (place - np.maximum.accumulate(np.where(new, place, 0))).astype(np.int32)
    return Interactions(rows.users, item_ids, user, item, time, occurrence, rows.line[order])


def _select(table: Interactions, mask: NDArray[np.bool_]) -> Interactions:
    return Interactions(
        table.users,
        table.items,
        table.user[mask],
        table.item[mask],
        table.time[mask],
        table.occurrence[mask],
        table.line[mask],
    )


def _sequences(
    table: Interactions, part: NDArray[np.int8]
) -> Iterator[tuple[str, tuple[tuple[str, ...], list[tuple[int, str, int | float]]]]]:
    """For each user, in the stated order, the items taken, and (place, item, time) of those that are for testing."""
    order = np.argsort(table.user, kind="stable")
    taken = [table.items[item] for item in table.item[order].tolist()]
    times = table.time[order].tolist()
    tests = np.flatnonzero(part[order] == Part.TEST)
    bounds = np.searchsorted(table.user[order], np.arange(len(table.users) + 1))
    test_bounds = np.searchsorted(tests, bounds)
    for position, user in enumerate(table.users):
        start, end = int(bounds[position]), int(bounds[position + 1])
        own_tests = tests[test_bounds[position] : test_bounds[position + 1]].tolist()
        yield user, (tuple(taken[start:end]), [(at - start, taken[at], times[at]) for at in own_tests])


def _repeat_notes(table: Interactions) -> Iterator[str]:
    repeats = int(np.count_nonzero(table.occurrence))
    if repeats:
        yield f"{repeats} interactions repeat one of the same user, item and time; they are kept"


def _case_notes(cases: tuple[Case, ...]) -> Iterator[str]:
    offered = [set(case.candidates or ()) - {case.target} for case in cases]
    own = sum(1 for case, others in zip(cases, offered, strict=True) if not others.isdisjoint(case.history))
    if own:
        yield f"{own} test cases have an item of the user's own history among their candidates"
    most = max(map(len, offered), default=0)
    fewer = sum(len(others) < most for others in offered)
    if fewer:
        yield f"{fewer} test cases have fewer than the {most} negatives of the others"
    again = sum(case.target in case.history for case in cases)
    if again:
        yield f"{again} test targets are items that the user has taken before"
