"""Compares two rankings of the same users: each user's values of every metric, and the interval of their difference."""

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
from simengine.measure.statistics import bootstrap, user_means

Metric: TypeAlias = tuple[str, int | None]
"""A metric's name and its cut-off k, ``None`` where it has none."""


@dataclass(frozen=True, eq=False)
class PerUser:
    """The values of each metric, an array with one value for each of ``users``."""

    users: tuple[str, ...]
    values: Mapping[Metric, NDArray[np.float64]]


class Paired(msgspec.Struct, frozen=True):
    """One metric of two rankings over the ``n`` users whom both have ranked.

    ``first`` and ``second`` are the means over these users, ``difference`` is second less first; ``low`` and ``high``
    bound it by the paired bootstrap, which resamples users, NaN where ``n`` is below two.
    """

    metric: str
    k: int | None
    first: float
    second: float
    difference: float
    low: float
    high: float
    n: int


def per_user(cases: Sequence[Case], attempts: Sequence[Sequence[Attempt]], ks: Sequence[int]) -> PerUser:
    """NDCG@k, Hit@k and MRR of each user who was ranked at least once; of repeats the mean.

    ``attempts[i]`` are the repeats of case ``i``, as :class:`~simengine.measure.logged.RankingReader` gives them.
    """
    users: list[str] = []
    places = []
    for case, repeats in zip(cases, attempts, strict=True):
        for scores in repeats:
            if not isinstance(scores, str):
                users.append(case.user)
                places.append(place(scores, (case.candidates or ()).index(case.target)))
    found = expected_at([at.better for at in places], [at.tied for at in places], ks)
    columns: dict[Metric, NDArray[np.float64]] = {("ndcg", k): found.ndcg[k] for k in ks}
    columns |= {("hit", k): found.hit[k] for k in ks}
    columns["mrr", None] = found.mrr
    return PerUser(
        tuple(dict.fromkeys(users)), {metric: user_means(column, users) for metric, column in columns.items()}
    )


def compare_paired(first: PerUser, second: PerUser, *, seed: int = 0) -> list[Paired]:
    """The difference of every metric that both have, over the users that both have; ``seed`` is of the resamples."""
    place_of = {user: at for at, user in enumerate(second.users)}
    pairs = [(at, place_of[user]) for at, user in enumerate(first.users) if user in place_of]
    left, right = (np.array(side, np.int64) for side in (zip(*pairs, strict=True) if pairs else ((), ())))
    compared = []
    for metric, column in first.values.items():
        if metric in second.values:
            one, other = column[left], second.values[metric][right]
            means = (float(one.mean()), float(other.mean())) if pairs else (math.nan, math.nan)
            found = bootstrap(other - one, seed=seed)
            compared.append(Paired(*metric, *means, found.mean, found.low, found.high, found.n))
    return compared
