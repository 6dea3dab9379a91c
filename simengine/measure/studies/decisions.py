"""What users decided under several conditions: shares of yes, changes of mind, paired differences with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap_columns, means_of_each
from simengine.runlog import EventLine

Decisions: TypeAlias = Mapping[str, bool]
"""What one user decided in one test case, by condition."""

DECIDERS = "test users"
YES, TO_YES, TO_NO = "yes", "no->yes", "yes->no"
BEFORE = "before"
EXAMPLES = 5
"""How many user ids a note names."""


def decisions(line: EventLine) -> dict[str, bool]:
    """The decisions of an event's user, by condition, as far as there are any."""
    return {said.body["when"]: said.body["yes"] for said in line.messages if said.kind == "decision"}


def first_failure(line: EventLine) -> str:
    """The first unit of an event that failed, with its reason; empty where none did."""
    return next((f"{unit}: {outcome}" for unit, outcome in line.units.items() if outcome != "ok"), "")


def shares(
    stage: str,
    said: Mapping[tuple[str, int], Decisions],
    conditions: Sequence[str],
    contrasts: Sequence[tuple[str, str]],
    seed: int,
) -> list[Result]:
    """The share of yes before and under each condition, then the contrasts, all over the same users and resamples.

    ``said`` are the decisions of each test case, named by user and number: ``before`` and under each condition. A user
    counts by the mean of his cases. ``no->yes`` and ``yes->no`` are the shares of all decisions that changed that way,
    so that the one less the other is the difference to before. A contrast is the mean of the differences, yes counting
    1: the first condition less the second. Nothing without cases.
    """
    if not said:
        return []
    columns, users = dict(_columns(list(said.values()), conditions, contrasts)), [user for user, _ in said]
    by_user = np.column_stack([means_of_each(column, users) for column in columns.values()])
    intervals = bootstrap_columns(by_user, seed=seed)
    return [
        Result(stage, DECIDERS, metric, None, *interval, 1, group)
        for (group, metric), interval in zip(columns, intervals, strict=True)
    ]


def named(users: Sequence[str]) -> str:
    """Whom a note speaks of: the first few by id."""
    more = ", ..." if len(users) > EXAMPLES else ""
    return f"{'user' if len(users) == 1 else 'users'} {', '.join(users[:EXAMPLES])}{more}"


def _columns(
    said: Sequence[Decisions], conditions: Sequence[str], contrasts: Sequence[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], list[float]]]:
    """One number a case, by group and metric."""
    yield (BEFORE, YES), [float(case[BEFORE]) for case in said]
    for condition in conditions:
        yield (condition, YES), [float(case[condition]) for case in said]
        yield (condition, TO_YES), [float(case[condition] and not case[BEFORE]) for case in said]
        yield (condition, TO_NO), [float(case[BEFORE] and not case[condition]) for case in said]
    for first, second in contrasts:
        yield (f"{first} - {second}", YES), [float(case[first]) - float(case[second]) for case in said]
