"""A stage of rankings after the run: what agents ranked beside what other rankers do, all on the same candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from simengine.data import Case
from simengine.measure import Interval, Result, evaluate, figures
from simengine.measure.audit import Audit, audit
from simengine.measure.bias import Condition, sensitivity
from simengine.measure.compare import PerCase, per_case
from simengine.measure.logged import RankingReader
from simengine.measure.metrics import expected_at
from simengine.measure.permutation import Compared, compare_all
from simengine.measure.results import Attempt
from simengine.measure.studies import Found
from simengine.methods import Trial, strategies
from simengine.rankers import Ranker
from simengine.runlog import EventLine
from simengine.scenario.baselines import baselines
from simengine.scenario.schema import BiasStage, RankingStage
from simengine.scenario.setup import Placed, Setup
from simengine.scenario.trials import groups

_CONTRASTS = {"position": "first less last half", "popularity": "rare less popular"}
"""What the sensitivity of a study is the difference of."""
_AXES = {"position": "place of the target in the list", "popularity": "where the negatives come from"}


class Ranked:
    """One stage's reading of the log; see :class:`~simengine.measure.studies.Reading`."""

    def __init__(self, setup: Setup, placed: Placed) -> None:
        assert isinstance(placed.settings, RankingStage)
        self._setup = setup
        self._stage = placed.settings
        self._cases = [case for case in setup.dataset.cases if case.candidates is not None]
        trials = setup.trials(placed)
        self._trials: dict[str, dict[tuple[str, int], list[Trial]]] = {group: {} for group in groups(trials)}
        for trial in trials:
            self._trials[trial.group].setdefault(trial.case.key, []).append(trial)
        self.name = placed.name
        self._reader = RankingReader(self._cases, placed.name)

    def take(self, line: EventLine) -> None:
        """Take in an event, if it is a ranking of this stage."""
        self._reader.take(line)

    def found(self, seed: int) -> Found:
        """Every ranker's metrics under each condition of the stage; of a study of bias its sensitivity as well."""
        results: list[Result] = []
        skipped: Counter[str] = Counter()
        conditions = self._conditions()
        for group, condition in conditions.items():
            evaluation = evaluate(
                self.name, condition.cases, condition.attempts, ks=self._stage.k, seed=seed, group=group
            )
            results += evaluation.results
            skipped.update(evaluation.reasons)
        if isinstance(self._stage, BiasStage):
            contrast = _CONTRASTS[self._stage.by]
            results += sensitivity(self.name, list(conditions.values()), ks=self._stage.k, group=contrast, seed=seed)
            lacking = sum(any(case.key not in shown for shown in self._trials.values()) for case in self._cases)
            skipped.update({"too few candidates for every condition": lacking} if lacking else {})
            return Found(results, dict(skipped))
        if list(conditions) != [""]:  # the same cases at several times, none of which is the one to compare at
            return Found(results, dict(skipped))
        compared, audited = self._compared(conditions, seed), self._audit(conditions, seed)
        return Found(results, dict(skipped), compared=compared, audit=audited)

    def _compared(self, conditions: Mapping[str, Condition], seed: int) -> list[Compared]:
        """Every ranker against the agents' first strategy, user by user."""
        reference = next(label for _, label in self._strategies())
        rankers = {
            name: per_case(condition.cases, attempts, self._stage.k)
            for condition in conditions.values()
            for name, attempts in condition.attempts.items()
        }
        return compare_all(rankers, reference, seed=seed) if rankers else []

    def _audit(self, conditions: Mapping[str, Condition], seed: int) -> Audit | None:
        """What is wrong with the test cases, all of which have the same candidates but for those drawn afresh."""
        for condition in conditions.values():
            return audit(
                self._setup.dataset,
                condition.cases,
                ks=self._stage.k,
                attempts=condition.attempts,
                stage=self.name,
                seed=seed,
            )
        return None

    def draw(self, found: Found, path: Path) -> None:
        """Draw a study of bias into a PNG file: NDCG under each condition. A plain ranking has no figure of its own."""
        if not isinstance(self._stage, BiasStage):
            return
        k = max(self._stage.k)
        series: dict[str, list[Interval]] = {}
        for result in found.results:
            if (result.metric, result.k) == ("ndcg", k):
                series.setdefault(result.ranker, []).append(result.interval)
        title = f"NDCG@{k} by {_AXES[self._stage.by]}"
        note = "Each interval is of one condition; the report's sensitivity is of differences within users."
        words = figures.Words(title, _AXES[self._stage.by], f"NDCG@{k}", note=note)
        if self._stage.by == "position":
            figures.lines(path, range(1, len(self._trials) + 1), series, words, chance=self._chance(k))
        else:
            figures.bars(path, list(self._trials), series, words, chance=self._chance(k))

    def per_case(self) -> Iterator[tuple[str, str, PerCase]]:
        """The strategies, what reports call them, and the values of each case; of a study under each condition."""
        for group, shown in self._trials.items():
            under = f", {group}" if group else ""
            for strategy, label in self._strategies():
                values = per_case(_cases(shown), self._ranked(strategy, group), self._stage.k)
                yield f"{strategy}{under}", f"{label}{under}", values

    def _strategies(self) -> Iterator[tuple[str, str]]:
        """Each strategy, and what reports call it."""
        labels = strategies(self._setup.scenario.method.kind)
        yield from ((strategy, labels[strategy]) for strategy in self._stage.strategies)

    def _conditions(self) -> dict[str, Condition]:
        """All rankings, by the name of their condition."""
        rankers = self._rankers()
        conditions = {}
        for group, shown in self._trials.items():
            attempts: dict[str, list[list[Attempt]]] = {
                ranker.name: [_scored(ranker, trials) for trials in shown.values()] for ranker in rankers
            }
            attempts |= {label: self._ranked(strategy, group) for strategy, label in self._strategies()}
            conditions[group] = Condition(_cases(shown), attempts)
        return conditions

    def _rankers(self) -> list[Ranker]:
        """The rankers that stand beside the agents, fitted."""
        rankers = baselines(self._stage, self._setup.scenario)
        for ranker in rankers:
            ranker.fit(self._setup.dataset)
        return rankers

    def _ranked(self, strategy: str, group: str) -> list[list[Attempt]]:
        """What agents ranked under a condition, in the order of its cases."""
        attempts = self._reader.attempts(strategy, group)
        by_case = {case.key: found for case, found in zip(self._cases, attempts, strict=True)}
        return [by_case[key] for key in self._trials[group]]

    def _chance(self, k: int) -> float:
        """NDCG@k of a ranking by lot, over the cases of the first condition."""
        sizes = [len(case.candidates or ()) for case in _cases(next(iter(self._trials.values())))]
        return float(expected_at([0] * len(sizes), sizes, [k]).ndcg[k].mean())


def _cases(shown: Mapping[tuple[str, int], Sequence[Trial]]) -> list[Case]:
    """The cases of a condition, each with the candidates of its first ranking; further ones have as many."""
    return [trials[0].case for trials in shown.values()]


def _scored(ranker: Ranker, trials: Sequence[Trial]) -> list[Attempt]:
    """A ranker's scores: once where all repeats show the same candidates."""
    return [
        ranker.score(trial.case, trial.case.candidates or ()) for trial in trials if trial.repeat == 1 or trial.drawn
    ]
