"""Holds the variants of a scenario against the first of them, test case by test case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from simengine.measure.compare import Paired, PerCase, compare_paired
from simengine.scenario.comparison import paired_values
from simengine.scenario.loading import load_run


class Versus(msgspec.Struct, frozen=True):
    """A variant's values of one stage and strategy, less those of the variant ``first``, over the users of both."""

    stage: str
    strategy: str
    first: str
    variant: str
    metrics: list[Paired]


def against_first(folders: Mapping[str, Path], seed: int) -> list[Versus]:
    """Every later variant against the first, where both have values; none for what has no values of single cases."""
    return list(_against_first(folders, seed))


def _against_first(folders: Mapping[str, Path], seed: int) -> Iterator[Versus]:
    (first, reference), *others = ((name, _values(path)) for name, path in folders.items())
    for variant, values in others:
        for (stage, strategy), (_, found) in values.items():
            if (stage, strategy) in reference:
                metrics = compare_paired(reference[stage, strategy][1], found, seed=seed)
                yield Versus(stage, strategy, first, variant, [metric for metric in metrics if metric.n])


def _values(path: Path) -> dict[tuple[str, str], tuple[str, PerCase]]:
    run = load_run(path)
    return {} if run.setup is None else paired_values(run, run.setup)
