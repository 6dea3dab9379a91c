"""What discussions came to: whether buyers would buy before and after a talk, how long talks are and how they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from simengine.data import Dataset
from simengine.measure import figures
from simengine.measure.logged import case_of
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap_columns, means_of_each
from simengine.measure.studies.decisions import (
    BEFORE,
    YES,
    Decisions,
    decisions,
    first_failure,
    named,
    shares,
)
from simengine.measure.studies.reading import Found
from simengine.runlog import EventLine

AFTER = "after"
DIFFERENCE = f"{AFTER} - {BEFORE}"
TALKS = "talks"
ENDS = ("goodbye", "limit", "failed")


class DiscussionReading:
    """Reads how a talk with one who has the item changes the buyer's decision (section C.2.2).

    Decisions are over the test cases in which the user decided before and after. Turns and ends are over all talks that
    began, those that failed among them. What is skipped are test cases without both decisions, each once, by the first
    reason.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._said: dict[tuple[str, int], Decisions] = {}
        self._talks: dict[tuple[str, int], tuple[int, str]] = {}
        self._skipped: Counter[str] = Counter()
        self._alone: list[str] = []
        self._lost: list[str] = []

    def take(self, line: EventLine) -> None:
        """Take in a test case of this stage."""
        if line.kind == f"{self.name}.skip":
            self._alone.append(line.data["user"])
            self._skipped["no past adopter"] += 1
        elif line.kind == f"{self.name}.talk":
            said, case = decisions(line), case_of(line)
            if BEFORE in said and AFTER in said:
                self._said[case] = said
            else:
                self._lost.append(line.data["user"])
                self._skipped[first_failure(line) or "no decision"] += 1
            if "turn/1" in line.units:
                self._talks[case] = _talk(line)

    def found(self, seed: int) -> Found:
        """Shares of yes before and after with their paired difference; turns of a talk, and shares of its ends."""
        results = shares(self.name, self._said, (AFTER,), ((AFTER, BEFORE),), seed)
        return Found([*results, *self._ends(seed)], dict(self._skipped), list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw the share of yes before and after the talk into a PNG file."""
        of = {(result.group, result.metric): result.interval for result in found.results}
        shown = [group for group in (BEFORE, AFTER) if (group, YES) in of]
        change = of.get((DIFFERENCE, YES))
        told = f"Paired difference {change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]. " if change else ""
        ends = ", ".join(f"{end} {of[TALKS, end].mean:.0%}" for end in ENDS if (TALKS, end) in of)
        words = figures.Words(
            "Would users buy it, before and after a talk with an owner?",
            "",
            "share of yes",
            note=f"{told}Talks ended by {ends}.",
        )
        figures.bars(path, shown, {"buyers": [of[group, YES] for group in shown]}, words)

    def _ends(self, seed: int) -> list[Result]:
        if not self._talks:
            return []
        rows = [[float(turns), *(float(end == how) for how in ENDS)] for turns, end in self._talks.values()]
        users = [user for user, _ in self._talks]
        by_user = np.column_stack([means_of_each(column, users) for column in zip(*rows, strict=True)])
        intervals = bootstrap_columns(by_user, seed=seed)
        return [
            Result(self.name, TALKS, metric, None, *interval, 1, TALKS)
            for metric, interval in zip(("turns", *ENDS), intervals, strict=True)
        ]

    def _notes(self) -> Iterator[str]:
        cases = len(self._said) + self._skipped.total()
        if self._alone:
            yield (
                f"{self.name}: {len(self._alone)} of {cases} test cases are left out, as nobody else had their item "
                f"before ({named(self._alone)})"
            )
        if self._lost:
            yield (
                f"{self.name}: {len(self._lost)} of {cases} test cases are left out of the decisions, as one is "
                f"missing ({named(self._lost)})"
            )


def _talk(line: EventLine) -> tuple[int, str]:
    """How many turns of a talk were said, and how it ended."""
    turns = [message.body for message in line.messages if message.kind == "talk"]
    failed = any(unit.startswith("turn/") and outcome != "ok" for unit, outcome in line.units.items())
    return len(turns), "failed" if failed else "goodbye" if turns[-1]["goodbye"] else "limit"
