"""Sets two runs side by side: their reports, paired differences over common users, and where their logs part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simengine.data import Case
from simengine.errors import SimengineError
from simengine.measure import Result, side_by_side
from simengine.measure.compare import Paired, PerUser, compare_paired
from simengine.runlog import Reader
from simengine.runlog.parting import Parting, find_parting
from simengine.scenario.loading import LoadedRun, load_run
from simengine.scenario.ranked import Ranked
from simengine.scenario.report import read_report
from simengine.scenario.schema import RankingStage
from simengine.scenario.setup import Setup


@dataclass(frozen=True)
class Rows:
    """The paired metrics of one stage; ``first`` and ``second`` name what ranked there in either run."""

    stage: str
    first: str
    second: str
    metrics: list[Paired]


@dataclass(frozen=True)
class Comparison:
    """Two runs, side by side.

    names: how the runs are told apart: their folders' names, or paths where these are alike.
    results: what the reports say, each ranker under its run's name; a ranker that both found alike stands there once.
    rows: differences of the agents' rankings, second less first.
    changed: what the two runs were made with differently: parts of their headers.
    parting: where their logs first differ; missing where all events are equal.
    notes: what is missing, and why.
    """

    names: tuple[str, str]
    results: list[Result]
    rows: list[Rows]
    changed: list[str]
    parting: Parting | None
    notes: list[str]


def compare(first: Path, second: Path) -> Comparison:
    """Compare two runs. Raises :class:`~simengine.errors.LogError` where one is not the folder of a run."""
    runs = load_run(first), load_run(second)
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    notes: list[str] = []
    reports: dict[str, list[Result]] = {}
    for name, run in zip(names, runs, strict=True):
        try:
            reports[name] = read_report(run.folder.path).results
        except SimengineError as error:
            notes.append(f"{name}: {error.problem}")
        if run.setup is None:
            notes.append(f"{name}: no intervals of differences, since they need its data: {run.problem}")
    return Comparison(
        names=names,
        results=side_by_side(reports),
        rows=list(_rows(runs[0], runs[1], notes)),
        changed=runs[0].header.changes(runs[1].header),
        parting=find_parting(runs[0].folder.events, runs[1].folder.events),
        notes=notes,
    )


def _rows(one: LoadedRun, other: LoadedRun, notes: list[str]) -> Iterator[Rows]:
    """The agents' rankings that both runs have, by stage and strategy."""
    if one.setup is None or other.setup is None:
        return
    left, right = _ranked(one, one.setup), _ranked(other, other.setup)
    for stage, strategy in left:
        if (stage, strategy) in right:
            (first, mine), (second, theirs) = left[stage, strategy], right[stage, strategy]
            yield Rows(stage, first, second, compare_paired(mine, theirs, seed=one.setup.scenario.seed))
    unlike = _unlike(_cases(one.setup), _cases(other.setup))
    if unlike:
        notes.append(f"{unlike} users have another target or other candidates in the second run than in the first")


def _ranked(run: LoadedRun, setup: Setup) -> dict[tuple[str, str], tuple[str, PerUser]]:
    """What reports call each strategy, and the values of each user, by stage and strategy."""
    stages = [Ranked(setup, placed) for placed in setup.stages() if isinstance(placed.settings, RankingStage)]
    for line in Reader(run.folder.events):
        for stage in stages:
            stage.take(line)
    return {(stage.name, key): (label, found) for stage in stages for key, label, found in stage.per_user()}


def _cases(setup: Setup) -> list[Case]:
    return [case for case in setup.dataset.cases if case.candidates is not None]


def _unlike(first: Sequence[Case], second: Sequence[Case]) -> int:
    tests = {case.user: (case.target, frozenset(case.candidates or ())) for case in first}
    return sum(
        case.user in tests and tests[case.user] != (case.target, frozenset(case.candidates or ())) for case in second
    )
