"""Reads what agents did out of a run's log: their rankings, as scores that metrics take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simengine.data import Case
from simengine.measure.results import Attempt
from simengine.runlog import EventLine


class RankingReader:
    """Gathers the rankings of one stage, as the log's events are handed to it one after the other."""

    def __init__(self, cases: Sequence[Case], stage: str) -> None:
        self._stage = stage
        self._cases = {case.key: case for case in cases if case.candidates is not None}
        self._found: dict[tuple[str, str], dict[tuple[str, int], list[Attempt]]] = {}

    def take(self, line: EventLine) -> None:
        """Take in an event, if it is a ranking of this stage."""
        if line.kind != "ranking" or line.data["stage"] != self._stage:
            return
        by_case = self._found.setdefault((line.data["strategy"], line.data.get("group", "")), {})
        by_case.setdefault(case_of(line), []).append(self._attempt(line))

    def attempts(self, strategy: str, group: str = "") -> list[list[Attempt]]:
        """For each case, in their order, the repeats of its ranking: scores, or the reason why there are none.

        ``group`` is the condition of a study. Scores are in the order of the candidates that were shown.
        """
        found = self._found.get((strategy, group), {})
        return [found.get(key, []) for key in self._cases]

    def _attempt(self, line: EventLine) -> Attempt:
        for message in line.messages:
            if message.kind == "ranking":
                candidates = line.data.get("candidates") or self._cases[case_of(line)].candidates or ()
                return _scores(candidates, message.body["order"])
        return next((outcome for outcome in line.units.values() if outcome != "ok"), "no ranking in the log")


def case_of(line: EventLine) -> tuple[str, int]:
    """The key of the test case that an event is about: its user, and which of his cases it is."""
    return line.data["user"], line.data.get("case", 1)


def _scores(candidates: Sequence[str], order: Sequence[str]) -> Attempt:
    """The first gets the greatest score; candidates that the reply left out tie behind all others."""
    place = {name: at for at, name in enumerate(order)}
    return np.array([-place.get(name, len(candidates)) for name in candidates], np.float64)
