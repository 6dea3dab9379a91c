"""What a finished run comes to: results against baselines, costs, failures; kept in ``report.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from simengine.data import MarketSettings, market_truth
from simengine.errors import InputError, LogError
from simengine.llm import CallStore, Completion
from simengine.measure import Result, evaluate
from simengine.measure.logged import RankingReader
from simengine.measure.recovery import Recovered, Recovery
from simengine.rankers import RANKERS
from simengine.runlog import EventLine, Reader
from simengine.scenario.costs import Costs, costs_of
from simengine.scenario.drive import Driven
from simengine.scenario.folder import Folder
from simengine.scenario.setup import Setup
from simengine.world import kind


class Report(msgspec.Struct, frozen=True):
    """The report of a run, as ``report.json`` holds it.

    ``failures`` counts units by task and reason, ``asked_again`` replies that could not be used and were asked for
    once more, by task, ``over_limit`` the texts that are longer than their prompts asked for, by agent kind and slot,
    ``schedule`` stale reads and lost writes of a batch schedule, ``skipped`` the test cases that some ranker has not
    ranked, by reason; ``recovered`` what the agents recovered of a market's ground truth (empty for other data);
    ``hash`` is that of the semantic records.
    """

    model: str
    results: list[Result]
    costs: Costs
    failures: dict[str, int]
    asked_again: dict[str, int]
    over_limit: dict[str, int]
    schedule: dict[str, int]
    skipped: dict[str, dict[str, int]]
    recovered: list[Recovered]
    notes: list[str]
    events: int
    hash: str


def make_report(setup: Setup, folder: Folder, store: CallStore, driven: Driven) -> Report:
    """Read the finished log once, measure, and write the report."""
    scenario = setup.scenario
    rankings = {name: RankingReader(setup.dataset.cases, name) for name, _, rank in setup.stages() if rank}
    failures: Counter[str] = Counter()
    over: Counter[str] = Counter()
    again: Counter[str] = Counter()
    recovery = _recovery(setup)
    reader = Reader(folder.events)
    for line in reader:
        if recovery is not None:
            recovery.take(line)
        for unit, outcome in line.units.items():
            if outcome != "ok":
                failures[f"{unit.partition('/')[0] or line.kind}: {outcome}"] += 1
        again.update(call.partition("/")[0] for call in line.calls if call.endswith(("/reask", "/longer")))
        over.update(_over_limit(line, driven.method.word_limits))
        for ranking in rankings.values():
            ranking.take(line)
    results, skipped = _results(setup, rankings)
    report = Report(
        model=_names_of_models(store),
        results=results,
        costs=costs_of(store, scenario.llm, driven.calls),
        failures=dict(sorted(failures.items())),
        asked_again=dict(sorted(again.items())),
        over_limit=dict(sorted(over.items())),
        schedule={} if scenario.engine.schedule == "chronological" else _schedule(driven),
        skipped=skipped,
        recovered=[] if recovery is None else recovery.results(scenario.seed),
        notes=list(setup.dataset.notes),
        events=reader.end.events if reader.end else 0,
        hash=reader.sum,
    )
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    part = folder.report.with_suffix(".part")
    part.write_bytes(text + b"\n")
    part.replace(folder.report)  # in one step: a report that is there is a whole one, and marks the run as finished
    return report


def read_report(path: Path) -> Report:
    """The report of a run; :class:`InputError` where there is none yet, :class:`LogError` where it cannot be read."""
    folder = Folder.of(path)
    try:
        return msgspec.json.decode(folder.report.read_bytes(), type=Report)
    except FileNotFoundError:
        raise InputError(
            "this run has no report, so it is not finished", file=str(path), remedy="resume it first"
        ) from None
    except msgspec.DecodeError as error:
        raise LogError(
            f"the report cannot be read: {error}", file=str(folder.report), remedy="delete it and resume the run"
        ) from error


def _recovery(setup: Setup) -> Recovery | None:
    market = setup.scenario.data
    return Recovery(setup.dataset, market_truth(market)) if isinstance(market, MarketSettings) else None


def _over_limit(line: EventLine, limits: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """The texts of an event that are longer than their prompts asked for."""
    for version in line.memories:
        limit = limits.get((kind(version.agent), version.slot))
        if limit is not None and len(version.value.split()) > limit:
            yield f"{kind(version.agent)} {version.slot} over {limit} words"


def _results(setup: Setup, rankings: dict[str, RankingReader]) -> tuple[list[Result], dict[str, dict[str, int]]]:
    cases = [case for case in setup.dataset.cases if case.candidates is not None]
    results: list[Result] = []
    skipped: dict[str, dict[str, int]] = {}
    for name, _, rank in setup.stages():
        if rank is None:
            continue
        attempts: dict[str, Any] = {}
        for ranker in (RANKERS[ranker]() for ranker in rank.rankers):
            ranker.fit(setup.dataset)
            attempts[ranker.name] = [[ranker.score(case, case.candidates or ())] for case in cases]
        for strategy in rank.strategies:
            attempts[f"{setup.scenario.method.kind} {strategy}"] = rankings[name].attempts(strategy)
        evaluation = evaluate(name, cases, attempts, ks=rank.k, seed=setup.scenario.seed)
        results += evaluation.results
        if evaluation.skipped:
            skipped[name] = dict(evaluation.reasons)
    return results, skipped


def _schedule(driven: Driven) -> dict[str, int]:
    return {"stale": driven.progress["stale"], "lost": driven.progress["lost"]}


def _names_of_models(store: CallStore) -> str:
    """The models that answered, as they name themselves or as they were asked for."""
    names = dict.fromkeys(
        (row.outcome.model if isinstance(row.outcome, Completion) else "") or row.request.model for row in store
    )
    said = {"lexical": "lexical (rule-based text, not a language model)", "": "a model without a name"}
    return ", ".join(said.get(name, name) for name in sorted(names)) or "none was asked"
