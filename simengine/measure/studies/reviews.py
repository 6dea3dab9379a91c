"""What reviews came to: whether users would buy an item before and after reading what others wrote about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from simengine.data import Dataset
from simengine.measure import figures
from simengine.measure.logged import case_of
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

SIGNS, SIDES = ("positive", "negative"), ("similar", "dissimilar")
CONDITIONS = tuple(f"{sign} {side}" for sign in SIGNS for side in SIDES)
CONTRASTS = (
    *((condition, BEFORE) for condition in CONDITIONS),
    *((f"{sign} similar", f"{sign} dissimilar") for sign in SIGNS),
)


class ReviewsReading:
    """Reads how decisions change with the sign of reviews and the likeness of their writers (section 3.4.1).

    All numbers are over the same test cases: those with decisions before and under all four conditions. What is skipped
    are the other test cases, each once, by the first reason.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._said: dict[tuple[str, int], Decisions] = {}
        self._skipped: Counter[str] = Counter()
        self._few: list[str] = []
        self._lost: list[str] = []
        self._asked = self._written = self._long = self._words = 0
        self._failed: Counter[str] = Counter()

    def take(self, line: EventLine) -> None:
        """Take in the writing of reviews, or a test case, of this stage."""
        if line.kind == f"{self.name}.write":
            self._reviews(line)
        elif line.kind == f"{self.name}.skip":
            self._few.append(line.data["user"])
            self._skipped["only one past adopter" if line.data["writers"] else "no past adopter"] += 1
        elif line.kind == f"{self.name}.read":
            said = decisions(line)
            if all(condition in said for condition in (BEFORE, *CONDITIONS)):
                self._said[case_of(line)] = said
            else:
                self._lost.append(line.data["user"])
                self._skipped[first_failure(line) or "no decision"] += 1

    def found(self, seed: int) -> Found:
        """Shares of yes and changes of mind by condition; differences to before, and similar less dissimilar."""
        results = shares(self.name, self._said, CONDITIONS, CONTRASTS, seed)
        return Found(results, dict(self._skipped), list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw the share of yes before and after reading, by condition, into a PNG file."""
        of = {result.group: result.interval for result in found.results if result.metric == YES}
        told = [
            f"{sign} {gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
            for sign in SIGNS
            for gain in [of[f"{sign} similar - {sign} dissimilar"]]
        ]
        words = figures.Words(
            "Would users buy it, before and after they read reviews?",
            "share of yes",
            "",
            note=f"Similar less dissimilar writers: {'; '.join(told)}.",
        )
        rows = [f"{sign} reviews by {side} users" for sign in SIGNS for side in SIDES]
        figures.dots(path, rows, [of[BEFORE]] * len(rows), [of[condition] for condition in CONDITIONS], words)

    def _reviews(self, line: EventLine) -> None:
        self._asked += len(line.units)
        self._words = line.data["words"]
        self._failed.update(outcome for outcome in line.units.values() if outcome != "ok")
        for version in line.memories:
            self._written += 1
            self._long += len(version.value.split()) > self._words

    def _notes(self) -> Iterator[str]:
        cases = len(self._said) + self._skipped.total()
        if self._few:
            yield (
                f"{self.name}: {len(self._few)} of {cases} test cases are left out, as fewer than two others had their "
                f"item before, so that no writers can be told apart ({named(self._few)})"
            )
        if self._lost:
            yield (
                f"{self.name}: {len(self._lost)} of {cases} test cases are left out, as a decision is missing "
                f"({named(self._lost)})"
            )
        for reason, count in sorted(self._failed.items()):
            yield f"{self.name}: {count} of {self._asked} reviews failed ({reason}); their readers read the others"
        if self._long:
            yield f"{self.name}: {self._long} of {self._written} reviews are longer than {self._words} words"
