"""How far a ranker goes by what should not matter: where the target is shown, how popular the other candidates are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case
from simengine.measure.compare import PerCase, per_case
from simengine.measure.results import Attempt, Result
from simengine.measure.statistics import bootstrap, means_of_each

SENSITIVITY = "sensitivity"


@dataclass(frozen=True)
class Condition:
    """All rankings under one condition: ``attempts[ranker][i]`` are the repeats of case ``i``.

    That is what :func:`~simengine.measure.results.evaluate` takes, too. A case's candidates are those of its condition.
    """

    cases: Sequence[Case]
    attempts: Mapping[str, Sequence[Sequence[Attempt]]]


def sensitivity(
    stage: str, conditions: Sequence[Condition], *, ks: Sequence[int], group: str, seed: int = 0
) -> list[Result]:
    """By how much each ranker's NDCG@k is higher in the first half of the conditions than in the last (section 3.3.2).

    The value is a mean over users of their own difference: the mean over the conditions of the first half, less that
    over the last; of an odd number the one in the middle is left out. It rests on the cases that every ranker has
    ranked under each of these conditions, and its interval on resamples of their users. ``group`` names the contrast
    in the results. No results where there are fewer than two conditions.
    """
    half = len(conditions) // 2
    if half == 0:
        return []
    compared = (*conditions[:half], *conditions[-half:])
    found = {
        ranker: [per_case(condition.cases, condition.attempts[ranker], ks) for condition in compared]
        for ranker in conditions[0].attempts
    }
    ranked = [frozenset(values.cases) for by_condition in found.values() for values in by_condition]
    common = [case.key for case in conditions[0].cases if all(case.key in each for each in ranked)]
    return [
        Result(stage, ranker, SENSITIVITY, k, *bootstrap(_differences(values, k, common), seed=seed), 1, group)
        for ranker, values in found.items()
        for k in ks
    ]


def _differences(values: Sequence[PerCase], k: int, cases: Sequence[tuple[str, int]]) -> NDArray[np.float64]:
    """Each user's NDCG@k in the first half of the conditions less that in the last."""
    rows = []
    for condition in values:
        of = dict(zip(condition.cases, condition.values["ndcg", k].tolist(), strict=True))
        rows.append([of[case] for case in cases])
    first, last = np.split(np.array(rows, np.float64), 2)
    return means_of_each(first.mean(axis=0) - last.mean(axis=0), [user for user, _ in cases])
