"""What reflection does to choices: how many are right before it, and how many behind it, step by step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simengine.data import Dataset
from simengine.measure import figures
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap
from simengine.measure.studies.reading import Found
from simengine.runlog import EventLine

RANKER = "choice"
BEFORE, AFTER, GAIN = "accuracy before", "accuracy after", "gain"
ALL = "all steps"
CHECK = "choose/check"
"""The unit in which a user chooses once more."""
ROWS = 10
"""Steps told apart, at most; where users take more, several make a row."""


class _Step(NamedTuple):
    """A user's ``number``-th interaction: whether the first choice was right, and the one behind all reflection."""

    user: str
    number: int
    before: bool
    after: bool


class Reflection:
    """Reads the interactions of a run in which users choose once more behind the last reflection (``recheck``).

    The first choice of a step is made before the agents reflect on it; the last one, a ``check``, behind it, on the
    same two items (section 3.3.3). Both count only where both could be read, so that they rest on the same steps. A
    log without checks has nothing to say.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._taken: Counter[str] = Counter()
        self._steps: list[_Step] = []
        self._skipped: Counter[str] = Counter()
        self._checks = False

    def take(self, line: EventLine) -> None:
        """Take in an event, if it is an interaction."""
        if line.kind != "interaction":
            return
        user, real = line.data["user"], f"item:{line.data['item']}"
        self._taken[user] += 1
        self._checks |= CHECK in line.units
        before, after = (_right(line, kind, real) for kind in ("choice", "check"))
        if before is not None and after is not None:
            self._steps.append(_Step(user, self._taken[user], before, after))
        else:
            reasons = (f"{unit}: {outcome}" for unit, outcome in line.units.items() if outcome != "ok")
            self._skipped[next((reason for reason in reasons if reason.startswith("choose")), "no check")] += 1

    def found(self, seed: int) -> Found:
        """The accuracy before and after reflection, and their difference, by step and over all steps."""
        if not self._checks:
            return Found([])
        rows = [(_label(first, last), steps) for first, last, steps in self._spans()]
        results = [result for row in (*rows, (ALL, self._steps)) for result in self._results(*row, seed)]
        return Found(results, dict(self._skipped))

    def draw(self, found: Found, path: Path) -> None:
        """Draw the accuracies over the steps into a PNG file."""
        spans = self._spans()
        of = {(result.metric, result.group): result.interval for result in found.results}
        series = {
            name: [of[metric, _label(first, last)] for first, last, _ in spans]
            for name, metric in (("before reflection", BEFORE), ("after reflection", AFTER))
        }
        title = "Right choices before and after reflection"
        note = "The item really taken is always shown second; chance is that of a coin."
        words = figures.Words(title, "interaction of the user", "accuracy", note=note)
        figures.lines(path, [last for _, last, _ in spans], series, words, chance=0.5)

    def _spans(self) -> list[tuple[int, int, list[_Step]]]:
        """First and last number of the steps that make a row, and these steps; at most ``ROWS`` rows."""
        most = max((step.number for step in self._steps), default=0)
        width = max(1, math.ceil(most / ROWS))
        spans = [(first, min(first + width - 1, most)) for first in range(1, most + 1, width)]
        found = [(*span, [step for step in self._steps if span[0] <= step.number <= span[1]]) for span in spans]
        return [span for span in found if span[2]]

    def _results(self, group: str, steps: Sequence[_Step], seed: int) -> Iterator[Result]:
        users = [step.user for step in steps]
        before = np.array([step.before for step in steps], np.float64)
        after = np.array([step.after for step in steps], np.float64)
        for metric, values in ((BEFORE, before), (AFTER, after), (GAIN, after - before)):
            yield Result(self.name, RANKER, metric, None, *bootstrap(values, users, seed=seed), 1, group)


def _label(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _right(line: EventLine, kind: str, real: str) -> bool | None:
    """Whether the first message of this kind took the real item; ``None`` where there is none."""
    return next((message.recipient == real for message in line.messages if message.kind == kind), None)
