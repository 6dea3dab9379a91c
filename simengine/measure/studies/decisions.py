"""What users decided under several conditions: shares of yes, changes of mind, paired differences with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap_columns
from simengine.runlog import EventLine

Decisions: TypeAlias = Mapping[str, bool]
"""What one user decided, by condition."""

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
    stage: str, said: Sequence[Decisions], conditions: Sequence[str], contrasts: Sequence[tuple[str, str]], seed: int
) -> list[Result]:
    """The share of yes before and under each condition, then the contrasts, all over the same users and resamples.

    Every user has decided ``before`` and under each condition. ``no->yes`` and ``yes->no`` are the shares of all users
    whose minds changed that way, so that the one less the other is the difference to before. A contrast is the mean of
    the users' differences, yes counting 1: the first condition less the second. Nothing without users.
    """
    if not said:
        return []
    columns = dict(_columns(said, conditions, contrasts))
    intervals = bootstrap_columns(np.array(list(columns.values()), np.float64).T, seed=seed)
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
    """One number a user, by group and metric."""
    yield (BEFORE, YES), [float(user[BEFORE]) for user in said]
    for condition in conditions:
        yield (condition, YES), [float(user[condition]) for user in said]
        yield (condition, TO_YES), [float(user[condition] and not user[BEFORE]) for user in said]
        yield (condition, TO_NO), [float(user[BEFORE] and not user[condition]) for user in said]
    for first, second in contrasts:
        yield (f"{first} - {second}", YES), [float(user[first]) - float(user[second]) for user in said]
