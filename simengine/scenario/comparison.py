"""Sets two runs side by side: their reports, paired differences over common users, and where their logs part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simengine.data import Case
from simengine.errors import SimengineError
from simengine.measure import Result, side_by_side
from simengine.measure.compare import Paired, PerCase, compare_paired
from simengine.measure.studies import PairedReading
from simengine.runlog import Reader
from simengine.runlog.parting import Parting, find_parting
from simengine.scenario.loading import LoadedRun, load_run
from simengine.scenario.report import read_report, readings_of
from simengine.scenario.setup import Setup
from simengine.scenario.wording import counted


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
    """Compare two runs. Raises :class:`~simengine.errors.InputError` where one is not the folder of a run."""
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
    """The agents' rankings of users whom both runs have ranked, by stage and strategy; ``notes`` say what has none."""
    if one.setup is None or other.setup is None:
        return
    left, right = paired_values(one, one.setup), paired_values(other, other.setup)
    for stage, strategy in dict.fromkeys((*left, *right)):
        if (stage, strategy) not in left or (stage, strategy) not in right:
            which = "second" if (stage, strategy) not in left else "first"
            notes.append(f"stage {stage}, strategy {strategy}: only the {which} run ranks by it")
            continue
        (first, mine), (second, theirs) = left[stage, strategy], right[stage, strategy]
        metrics = compare_paired(mine, theirs, seed=one.setup.scenario.seed)
        users = max((metric.n for metric in metrics), default=0)
        if users:
            yield Rows(stage, first, second, metrics)
        if users < 2:
            lacking = "no interval of a difference, as only one user has" if users else "no differences, as no user has"
            notes.append(f"stage {stage}, strategy {strategy}: {lacking} a test case that both runs have ranked")
    unlike = _unlike(_cases(one.setup), _cases(other.setup))
    if unlike:
        said = (
            f"for {counted(unlike, 'test case')} the second run has another target or other candidates than the first"
        )
        notes.append(said)


def paired_values(run: LoadedRun, setup: Setup) -> dict[tuple[str, str], tuple[str, PerCase]]:
    """What reports call each strategy, and the values of each case, by stage and strategy."""
    stages = [reading for _, reading in readings_of(setup) if isinstance(reading, PairedReading)]
    for line in Reader(run.folder.events) if stages else ():
        for stage in stages:
            stage.take(line)
    return {(stage.name, key): (label, found) for stage in stages for key, label, found in stage.per_case()}


def _cases(setup: Setup) -> list[Case]:
    return [case for case in setup.dataset.cases if case.candidates is not None]


def _unlike(first: Sequence[Case], second: Sequence[Case]) -> int:
    tests = {case.key: (case.target, frozenset(case.candidates or ())) for case in first}
    return sum(
        case.key in tests and tests[case.key] != (case.target, frozenset(case.candidates or ())) for case in second
    )
