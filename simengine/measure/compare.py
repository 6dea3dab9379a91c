"""Compares two rankings of the same test cases: each case's values, and the interval of users' differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data import Case
from simengine.measure.metrics import expected_at, place
from simengine.measure.results import Attempt
from simengine.measure.statistics import bootstrap, means_of_each

Metric: TypeAlias = tuple[str, int | None]
"""A metric's name and its cut-off k, ``None`` where it has none."""


@dataclass(frozen=True, eq=False)
class PerCase:
    """The values of each metric, an array with one value for each of ``cases``: users, and numbers of their cases.

    A value is NaN where the metric says nothing of the case.
    """

    cases: tuple[tuple[str, int], ...]
    values: Mapping[Metric, NDArray[np.float64]]

    @property
    def users(self) -> tuple[str, ...]:
        """The user of each case."""
        return tuple(user for user, _ in self.cases)


class Paired(msgspec.Struct, frozen=True):
    """One metric of two rankings over the test cases that both have ranked, which are of ``n`` users.

    ``first`` and ``second`` are the means over these users, each of whom counts by the mean of his cases.
    ``difference`` is second less first; ``low`` and ``high`` bound it by the paired bootstrap, which resamples users,
    NaN where ``n`` is below two.
    """

    metric: str
    k: int | None
    first: float
    second: float
    difference: float
    low: float
    high: float
    n: int


def per_case(cases: Sequence[Case], attempts: Sequence[Sequence[Attempt]], ks: Sequence[int]) -> PerCase:
    """NDCG@k, Hit@k and MRR of each case that was ranked at least once; of repeats the mean.

    ``attempts[i]`` are the repeats of case ``i``, as :class:`~simengine.measure.logged.RankingReader` gives them.
    """
    ranked: list[tuple[str, int]] = []
    places = []
    for case, repeats in zip(cases, attempts, strict=True):
        for scores in repeats:
            if not isinstance(scores, str):
                ranked.append(case.key)
                places.append(place(scores, (case.candidates or ()).index(case.target)))
    found = expected_at([at.better for at in places], [at.tied for at in places], ks)
    columns: dict[Metric, NDArray[np.float64]] = {("ndcg", k): found.ndcg[k] for k in ks}
    columns |= {("hit", k): found.hit[k] for k in ks}
    columns["mrr", None] = found.mrr
    return PerCase(
        tuple(dict.fromkeys(ranked)), {metric: means_of_each(column, ranked) for metric, column in columns.items()}
    )


def compare_paired(first: PerCase, second: PerCase, *, seed: int = 0) -> list[Paired]:
    """The difference of every metric that both have, over the cases of which both have a value.

    ``seed`` is of the resamples.
    """
    place_of = {case: at for at, case in enumerate(second.cases)}
    pairs = [(at, place_of[case]) for at, case in enumerate(first.cases) if case in place_of]
    users = [first.cases[at][0] for at, _ in pairs]
    left, right = (np.array(side, np.int64) for side in (zip(*pairs, strict=True) if pairs else ((), ())))
    compared = []
    for metric, column in first.values.items():
        if metric in second.values:
            sides = column[left], second.values[metric][right]
            both = ~np.isnan(sides[0] + sides[1])
            counted = [user for user, there in zip(users, both.tolist(), strict=True) if there]
            one, other = (means_of_each(of[both], counted) for of in sides)
            means = (float(one.mean()), float(other.mean())) if counted else (math.nan, math.nan)
            found = bootstrap(other - one, seed=seed)
            compared.append(Paired(*metric, *means, found.mean, found.low, found.high, found.n))
    return compared
