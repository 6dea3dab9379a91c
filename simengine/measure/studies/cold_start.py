"""What cold start came to: how users rank a new item before and after it has read what others say of themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simengine.data import Dataset
from simengine.measure import figures
from simengine.measure.compare import Metric
from simengine.measure.logged import case_of
from simengine.measure.metrics import Expected, expected_at
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap, means_of_each
from simengine.measure.studies.reading import Found
from simengine.runlog import EventLine

RANKER = "new item"
CONDITIONS = ("cold", "similar", "distinct", "warm")
GAINS = (("similar", "cold"), ("distinct", "cold"), ("similar", "distinct"))
"""Which conditions are held against each other: the first less the second."""
KS = (1, 5, 10)
MRR: Metric = ("mrr", None)
CANDIDATES = 10


class ColdStartReading:
    """Reads how users rank a new item among trained ones, with each of its memories (section 3.4.2).

    A condition's mean is over the users who ranked a new item under it, each by the mean of his test cases. A gain is
    the mean of paired differences, over the cases in which it was ranked under both. Candidates that a reply left out
    tie behind the others. What is skipped are rankings that are missing, by condition.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._trained = {dataset.train.items[at] for at in dataset.train.item.tolist()}
        self._places: dict[str, dict[tuple[str, int], tuple[int, int]]] = {condition: {} for condition in CONDITIONS}
        self._sizes: dict[tuple[str, int], int] = {}
        self._targets: dict[tuple[str, int], str] = {}
        self._skipped: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._adaptations = 0

    def take(self, line: EventLine) -> None:
        """Take in an event, if it is an adaptation or a ranking of this stage."""
        if line.kind == f"{self.name}.adapt":
            self._adaptations += 1
            self._failed.update(outcome for outcome in line.units.values() if outcome != "ok")
        elif line.kind == f"{self.name}.rank":
            self._sizes[case_of(line)] = len(line.data["candidates"])
            self._targets[case_of(line)] = line.data["target"]
            self._place(line)

    def found(self, seed: int) -> Found:
        """NDCG and MRR of the new item under each condition, then the gains."""
        values = {condition: self._values(condition) for condition in CONDITIONS}
        rows = {(group, metric): of for group in values for metric, of in values[group].items()}
        for first, second in GAINS:
            for metric, of in values[first].items():
                other = values[second][metric]
                rows[f"{first} - {second}", metric] = {case: of[case] - other[case] for case in of if case in other}
        results = [
            Result(self.name, RANKER, metric, k, *bootstrap(_by_user(numbers), seed=seed), 1, group)
            for (group, (metric, k)), numbers in rows.items()
            if numbers
        ]
        return Found(results, dict(self._skipped), list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw each metric under the conditions side by side into a PNG file."""
        of = {(result.group, (result.metric, result.k)): result.interval for result in found.results}
        sizes = list(self._sizes.values())
        chance = _columns(expected_at([0] * len(sizes), sizes, KS))
        shown = [condition for condition in CONDITIONS if (condition, MRR) in of]
        gains = [
            f"{group} {gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
            for first, second in GAINS
            if (gain := of.get((group := f"{first} - {second}", MRR)))
        ]
        figures.bars(
            path,
            [f"NDCG@{k}" if k else "MRR" for _, k in chance],
            {condition: [of[condition, metric] for metric in chance] for condition in shown},
            figures.Words(
                "A new item among trained ones, by what it has read",
                "",
                "mean",
                note=f"Paired gains in MRR: {'; '.join(gains)}." if gains else "",
            ),
            chance=[float(np.mean(column)) for column in chance.values()],
        )

    def _place(self, line: EventLine) -> None:
        """Note how many candidates stand before the target, and how many beside it, itself included."""
        target, condition = line.data["target"], line.data["condition"]
        for message in line.messages:
            if message.kind == "ranking":
                order, missing = message.body["order"], message.body["missing"]
                there = target in order
                self._places[condition][case_of(line)] = (
                    (order.index(target), 1) if there else (len(order), len(missing))
                )
                return
        reason = next((outcome for outcome in line.units.values() if outcome != "ok"), "no ranking")
        self._skipped[f"{condition}: {reason}"] += 1

    def _values(self, condition: str) -> dict[Metric, dict[tuple[str, int], float]]:
        """Each case's value of each metric."""
        places = self._places[condition]
        found = expected_at([better for better, _ in places.values()], [tied for _, tied in places.values()], KS)
        return {metric: dict(zip(places, column, strict=True)) for metric, column in _columns(found).items()}

    def _notes(self) -> Iterator[str]:
        for reason, count in sorted(self._failed.items()):
            yield f"{self.name}: {count} of {self._adaptations} adaptations failed ({reason})"
        small = [size for size in self._sizes.values() if size < CANDIDATES]
        if small:
            yield (
                f"{self.name}: in {len(small)} of {len(self._sizes)} test cases fewer than {CANDIDATES} items were "
                f"shown, down to {min(small)}, as there are no more trained ones that the user does not know"
            )
        untrained = sum(target not in self._trained for target in self._targets.values())
        if untrained:
            yield (
                f"{self.name}: the targets of {untrained} of {len(self._targets)} test cases have no training "
                "interactions, so that `warm` is as cold as `cold` there"
            )


def _by_user(numbers: Mapping[tuple[str, int], float]) -> NDArray[np.float64]:
    """The mean of each user's cases."""
    return means_of_each(list(numbers.values()), [user for user, _ in numbers])


def _columns(found: Expected) -> dict[Metric, list[float]]:
    """The values by metric."""
    columns: dict[Metric, list[float]] = {("ndcg", k): found.ndcg[k].tolist() for k in KS}
    return {**columns, MRR: found.mrr.tolist()}
