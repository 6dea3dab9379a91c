"""Is one ranker better than another on the same users? Paired permutation tests, with Holm's correction for many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simengine.measure.compare import Metric, PerCase, compare_paired
from simengine.measure.statistics import DRAWS, means_of_each

_CELLS = 1 << 22  # signs held at once
_ROUNDING = 1e-12  # sums this close, in units of the sum of sizes, are equal but for the order of addition


class Permuted(NamedTuple):
    """A two-sided p value, and how it was found: by all ``permutations`` (``exact``) or by so many random ones."""

    p: float
    permutations: int
    exact: bool


class Compared(msgspec.Struct, frozen=True):
    """One metric of a ranker held against that of the reference, over the ``n`` users whose cases all have ranked.

    ``difference`` is ``value`` less ``reference_value``; ``low`` and ``high`` bound it by the paired bootstrap over
    users. ``p`` is that of the sign-flip test, from ``permutations`` of them, all there are where ``exact``;
    ``p_holm`` is adjusted for the number of rankers compared in this metric. NaN, where there are too few users,
    becomes ``null`` in JSON.
    """

    ranker: str
    reference: str
    metric: str
    k: int | None
    value: float | None
    reference_value: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None
    p_holm: float | None
    permutations: int
    exact: bool


def sign_flip(differences: ArrayLike, *, seed: int = 0, draws: int = DRAWS) -> Permuted:
    """Two-sided paired permutation test that users' differences are as likely to be above zero as below.

    ``differences`` is one number for each user, of repeats the mean. If two rankers do not differ, each user's
    difference could as well have the other sign; p is the share of sign patterns whose mean is at least as far from
    zero as the one found. All 2^n patterns are tried where these are no more than ``draws``; otherwise ``draws``
    random ones, and p = (1 + hits) / (1 + draws), so that it is never zero. NaN without users. Raises ``ValueError``
    for a value that is not finite.
    """
    return sign_flip_columns(np.asarray(differences, np.float64)[:, None], seed=seed, draws=draws)[0]


def sign_flip_columns(differences: ArrayLike, *, seed: int = 0, draws: int = DRAWS) -> tuple[Permuted, ...]:
    """The same for many columns at once, on the same sign patterns: ``differences`` is users x columns."""
    table = np.asarray(differences, np.float64)
    if not np.all(np.isfinite(table)):
        raise ValueError("a permutation test needs a finite difference of every user")
    users, columns = table.shape
    if not users:
        return tuple(Permuted(math.nan, 0, True) for _ in range(columns))
    exact = 2**users <= draws
    least = np.abs(table.sum(axis=0)) - _ROUNDING * np.abs(table).sum(axis=0)
    hits = np.zeros(columns, np.int64)
    for signs in _all_signs(users) if exact else _random_signs(users, draws, seed):
        hits += (np.abs(signs @ table) >= least).sum(axis=0)
    tried: int = 2**users if exact else draws
    p_values = hits / tried if exact else (1 + hits) / (1 + tried)
    return tuple(Permuted(p, tried, exact) for p in p_values.tolist())


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: the family-wise error stays below a level where the adjusted p does.

    A NaN is no test: it stays, and does not count.
    """
    tested = sorted((p, at) for at, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for place, (p, at) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - place) * p))
        adjusted[at] = largest
    return adjusted


def compare_all(rankers: Mapping[str, PerCase], reference: str, *, seed: int = 0, draws: int = DRAWS) -> list[Compared]:
    """Each ranker against ``reference``, one of them, in every metric that all have, over the cases that all have.

    Rows stand by metric, then ranker, in the order given. Raises ``ValueError`` where there is no such reference.
    """
    if reference not in rankers:
        raise ValueError(f"no ranker is called {reference!r}; there are {', '.join(rankers)}")
    ranked = [frozenset(one.cases) for one in rankers.values()]
    cases = [case for case in rankers[reference].cases if all(case in each for each in ranked)]
    metrics = [metric for metric in rankers[reference].values if all(metric in one.values for one in rankers.values())]
    on_same = {name: _restrict(one, cases, metrics) for name, one in rankers.items()}
    others = [name for name in rankers if name != reference]
    rows = {name: _against(on_same, name, reference, seed, draws) for name in others}
    compared: list[Compared] = []
    for of_metric in zip(*rows.values(), strict=True):
        adjusted = holm([math.nan if row.p is None else row.p for row in of_metric])
        compared += [msgspec.structs.replace(row, p_holm=p) for row, p in zip(of_metric, adjusted, strict=True)]
    return compared


def _restrict(one: PerCase, cases: Sequence[tuple[str, int]], metrics: Sequence[Metric]) -> PerCase:
    """The values of these cases only, in their order."""
    place = {case: at for at, case in enumerate(one.cases)}
    rows = np.array([place[case] for case in cases], np.int64)
    return PerCase(tuple(cases), {metric: one.values[metric][rows] for metric in metrics})


def _against(on_same: Mapping[str, PerCase], name: str, reference: str, seed: int, draws: int) -> Iterator[Compared]:
    """The metrics of one ranker, before adjustment."""
    base, ranker = on_same[reference], on_same[name]
    pairs = compare_paired(base, ranker, seed=seed)
    if not pairs:
        return
    differences = np.column_stack(
        [
            means_of_each(ranker.values[pair.metric, pair.k] - base.values[pair.metric, pair.k], base.users)
            for pair in pairs
        ]
    )
    for pair, test in zip(pairs, sign_flip_columns(differences, seed=seed, draws=draws), strict=True):
        yield Compared(
            ranker=name,
            reference=reference,
            metric=pair.metric,
            k=pair.k,
            value=pair.second,
            reference_value=pair.first,
            difference=pair.difference,
            low=pair.low,
            high=pair.high,
            n=pair.n,
            p=test.p,
            p_holm=test.p,
            permutations=test.permutations,
            exact=test.exact,
        )


def _all_signs(users: int) -> Iterator[NDArray[np.float64]]:
    """Every pattern of signs, one a row."""
    for start in range(0, 2**users, batch := max(1, _CELLS // users)):
        patterns = np.arange(start, min(start + batch, 2**users))
        yield _as_signs(patterns[:, None] >> np.arange(users) & 1)


def _random_signs(users: int, draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """So many random patterns of signs, one a row."""
    generator = np.random.default_rng(seed)
    for done in range(0, draws, batch := max(1, _CELLS // users)):
        yield _as_signs(generator.integers(0, 2, (min(batch, draws - done), users)))


def _as_signs(bits: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(bits, -1.0, 1.0)
