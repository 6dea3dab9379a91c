"""Scorers that know no taste: if one of them ranks well, an evaluation rewards something else than taste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset
from simengine.measure.compare import Metric, PerCase, per_case
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap_columns, means_of_each

CHANCE = "random"
"""The scorer that scores all alike: as ties count by expectation, it gets the expectation of chance, exactly."""

TRIVIAL: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = MappingProxyType(
    {
        "popular first": lambda counts: counts,
        "unpopular first": lambda counts: -counts,
        "unseen first": lambda counts: (counts == 0).astype(np.float64),
    }
)
"""By name, from how often each candidate occurs in the training part to its score."""


def training_counts(dataset: Dataset) -> Counter[str]:
    """How often each item occurs in the training part; 0 for others."""
    part = dataset.training_part
    return Counter({part.items[item]: count for item, count in Counter(part.item.tolist()).items()})


def score_trivially(dataset: Dataset, cases: Sequence[Case], ks: Sequence[int]) -> dict[str, PerCase]:
    """The values of each case by chance and by each trivial scorer; every case has its target among candidates."""
    seen = training_counts(dataset)
    counts = [np.array([seen[item] for item in case.candidates or ()], np.float64) for case in cases]
    scores = {CHANCE: [[np.zeros(len(each))] for each in counts]}
    scores |= {name: [[score(each)] for each in counts] for name, score in TRIVIAL.items()}
    return {name: per_case(cases, of_cases, ks) for name, of_cases in scores.items()}


def results_of(stage: str, scored: Mapping[str, PerCase], *, seed: int = 0) -> list[Result]:
    """Means with their bootstrap intervals, as :func:`~simengine.measure.results.evaluate` gives them."""
    columns: list[tuple[str, Metric]] = [(name, metric) for name, one in scored.items() for metric in one.values]
    table = np.column_stack(
        [means_of_each(scored[name].values[metric], scored[name].users) for name, metric in columns]
    )
    intervals = bootstrap_columns(table, seed=seed)
    return [
        Result(stage, name, metric, k, found.mean, found.low, found.high, found.n, repeats=1)
        for (name, (metric, k)), found in zip(columns, intervals, strict=True)
    ]
