"""From the scores of several rankers to results: all on the same users, with every case that is left out counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data import Case
from simengine.measure.metrics import Place, expected_at, place
from simengine.measure.statistics import Interval, bootstrap

Attempt: TypeAlias = NDArray[np.float64] | str
"""One ranking of one case: a score for each of the case's candidates, or a short stable word why there is none."""


class Result(msgspec.Struct, frozen=True):
    """One number of a report: the mean of a metric over ``n`` users, with its interval. ``k`` is None where uncut.

    ``repeats`` is how many rankings of each case were asked for, ``group`` the condition of a study under which. NaN
    becomes ``null`` in JSON, and ``None`` from it.
    """

    stage: str
    ranker: str
    metric: str
    k: int | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    repeats: int
    group: str = ""

    @property
    def interval(self) -> Interval:
        """The value with its bounds and ``n``; NaN for what is ``None``."""
        value, low, high = (math.nan if number is None else number for number in (self.value, self.low, self.high))
        return Interval(value, low, high, self.n)


class Evaluation(msgspec.Struct, frozen=True):
    """Results, and what they rest on.

    evaluated: cases that every ranker has ranked at least once; only these count, for every ranker.
    skipped: the other cases.
    reasons: why, as ``ranker: reason`` with the number of cases, each skipped case under every ranker that lacks
        it, by the reason of that ranker's first attempt.
    failed_repeats: by ranker, attempts without scores in cases that are evaluated from other repeats.
    unscored: by ranker, candidates with a NaN score in evaluated cases; they rank last.
    """

    results: tuple[Result, ...]
    evaluated: int
    skipped: int
    reasons: Mapping[str, int]
    failed_repeats: Mapping[str, int]
    unscored: Mapping[str, int]


def evaluate(
    stage: str,
    cases: Sequence[Case],
    attempts: Mapping[str, Sequence[Sequence[Attempt]]],
    *,
    ks: Sequence[int] = (1, 5, 10),
    seed: int = 0,
    group: str = "",
) -> Evaluation:
    """NDCG@k, Hit@k and MRR of each ranker, averaged over the users whom all rankers have ranked.

    ``attempts[ranker][i]`` are the repeats of case ``i``. A case without candidates, or one that some ranker has not
    ranked at all, is skipped for all of them. Raises ``ValueError`` where numbers of cases or scores do not fit.
    """
    for ranker, ranked in attempts.items():
        if len(ranked) != len(cases):
            raise ValueError(f"{ranker} has attempts for {len(ranked)} cases of {len(cases)}")
    why = [
        tuple(_lacking(case, {name: ranked[i] for name, ranked in attempts.items()})) for i, case in enumerate(cases)
    ]
    kept = [i for i, reasons in enumerate(why) if not reasons]
    places = {name: [_places(cases[i], ranked[i]) for i in kept] for name, ranked in attempts.items()}
    users = [cases[i].user for i in kept]
    results = [
        Result(stage, name, *row, repeats=max(map(len, attempts[name]), default=0), group=group)
        for name in attempts
        for row in _rows(places[name], users, ks, seed)
    ]
    return Evaluation(
        results=tuple(results),
        evaluated=len(kept),
        skipped=len(cases) - len(kept),
        reasons=dict(Counter(reason for reasons in why for reason in reasons)),
        failed_repeats={
            name: sum(isinstance(attempt, str) for i in kept for attempt in ranked[i])
            for name, ranked in attempts.items()
        },
        unscored={name: sum(at.unscored for case in found for at in case) for name, found in places.items()},
    )


def side_by_side(reports: Mapping[str, list[Result]]) -> list[Result]:
    """The results of each ranker under its run's name; those of a ranker for which all runs say the same, once."""
    found: dict[tuple[str, str, str], dict[str, list[Result]]] = {}
    for name, results in reports.items():
        for result in results:
            found.setdefault((result.stage, result.group, result.ranker), {}).setdefault(name, []).append(result)
    rows: list[Result] = []
    for (_, _, ranker), by_run in found.items():
        said = list(by_run.values())
        if len(said) == len(reports) > 1 and all(one == said[0] for one in said):
            rows += said[0]
        else:
            rows += [
                msgspec.structs.replace(result, ranker=f"{name}: {ranker}")
                for name in by_run
                for result in by_run[name]
            ]
    return rows


def _lacking(case: Case, attempts: Mapping[str, Sequence[Attempt]]) -> Iterator[str]:
    """Why this case cannot count: one reason for each ranker that has no scores for it."""
    if case.candidates is None:
        yield "no candidates"
        return
    for ranker, repeats in attempts.items():
        if all(isinstance(attempt, str) for attempt in repeats):
            yield f"{ranker}: {repeats[0] if repeats else 'no attempt'}"


def _places(case: Case, repeats: Sequence[Attempt]) -> list[Place]:
    """The target's place in each repeat that has scores."""
    candidates = case.candidates or ()
    target = candidates.index(case.target)
    places = []
    for scores in repeats:
        if isinstance(scores, str):
            continue
        if len(scores) != len(candidates):
            raise ValueError(f"{len(scores)} scores for {len(candidates)} candidates of user {case.user}")
        places.append(place(scores, target))
    return places


def _rows(
    places: Sequence[Sequence[Place]], users: Sequence[str], ks: Sequence[int], seed: int
) -> Iterator[tuple[str, int | None, float, float, float, int]]:
    """Metric, k, mean, low, high, number of users: for each metric of one ranker."""
    owners = [user for user, repeats in zip(users, places, strict=True) for _ in repeats]
    flat = [at for repeats in places for at in repeats]
    found = expected_at([at.better for at in flat], [at.tied for at in flat], ks)
    columns: list[tuple[str, int | None, NDArray[np.float64]]] = [("ndcg", k, found.ndcg[k]) for k in ks]
    columns += [("hit", k, found.hit[k]) for k in ks]
    columns.append(("mrr", None, found.mrr))
    for metric, k, values in columns:
        yield metric, k, *bootstrap(values, owners, seed=seed)
