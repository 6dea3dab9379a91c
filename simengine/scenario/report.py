"""What a finished run comes to: results against baselines, costs, failures; kept in ``report.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from simengine.data import MarketSettings, market_truth
from simengine.errors import InputError, LogError
from simengine.llm import CallStore, Completion
from simengine.llm.layers.local import LOCAL
from simengine.measure import Result
from simengine.measure.audit import Audit
from simengine.measure.permutation import Compared
from simengine.measure.recovery import Recovered, Recovery
from simengine.measure.studies import READINGS, Reading, Spoken
from simengine.runlog import EventLine, Reader
from simengine.scenario.costs import Costs, costs_of
from simengine.scenario.drive import Driven
from simengine.scenario.folder import Folder
from simengine.scenario.published import Beside, beside
from simengine.scenario.ranked import Ranked
from simengine.scenario.schema import RankingStage
from simengine.scenario.setup import Setup
from simengine.world import kind


class Report(msgspec.Struct, frozen=True):
    """The report of a run, as ``report.json`` holds it.

    ``failures`` counts units by task and reason, ``asked_again`` calls without a usable answer (unreadable, truncated,
    or the prompt too long) that were made once more, by task, ``over_limit`` the texts that are longer than their
    prompts asked for, by agent kind and slot, ``schedule`` stale reads and lost writes of a batch schedule, ``skipped``
    the test cases that some ranker has not ranked, by reason; ``recovered`` what the agents recovered of a market's
    ground truth (empty for other data); ``hash`` is that of the semantic records. Of each stage of rankings,
    ``compared`` holds every ranker against the agents' first strategy, and ``audit`` what is wrong with the test cases;
    ``published`` are the numbers that the scenario quotes, beside ours. ``talks`` are those with a person, by stage.
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
    compared: dict[str, list[Compared]] = {}
    audit: dict[str, Audit] = {}
    published: list[Beside] = []
    talks: dict[str, list[Spoken]] = {}


def make_report(setup: Setup, folder: Folder, store: CallStore, driven: Driven) -> Report:
    """Read the finished log once, measure, and write the report."""
    scenario = setup.scenario
    readings = dict(readings_of(setup))
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
        again.update(call.partition("/")[0] for call in line.calls if call.endswith(("/reask", "/longer", "/cut")))
        over.update(_over_limit(line, driven.cast.method.word_limits))
        for reading in readings.values():
            reading.take(line)
    found = {name: reading.found(scenario.seed) for name, reading in readings.items()}
    results = [result for stage in found.values() for result in stage.results]
    report = Report(
        model=_names_of_models(store),
        results=results,
        costs=costs_of(store, scenario.llm, driven.calls),
        failures=dict(sorted(failures.items())),
        asked_again=dict(sorted(again.items())),
        over_limit=dict(sorted(over.items())),
        schedule={} if scenario.engine.schedule == "chronological" else _schedule(driven),
        skipped={name: stage.skipped for name, stage in found.items() if stage.skipped},
        compared={name: stage.compared for name, stage in found.items() if stage.compared},
        audit={name: stage.audit for name, stage in found.items() if stage.audit is not None},
        published=beside(scenario.published, results),
        talks={name: stage.talk for name, stage in found.items() if stage.talk},
        recovered=[] if recovery is None else recovery.results(scenario.seed),
        notes=[*setup.dataset.notes, *(note for stage in found.values() for note in stage.notes)],
        events=reader.end.events if reader.end else 0,
        hash=reader.sum,
    )
    for name, stage in found.items():
        if stage.results:
            readings[name].draw(stage, folder.path / f"{name}.png")
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


def readings_of(setup: Setup) -> Iterator[tuple[str, Reading]]:
    """Who reads a stage's part of the log, by the stage's name."""
    for placed in setup.stages():
        if isinstance(placed.settings, RankingStage):
            yield placed.name, Ranked(setup, placed)
        elif placed.kind in READINGS:
            yield placed.name, READINGS[placed.kind](placed.name, setup.dataset)


def _recovery(setup: Setup) -> Recovery | None:
    """Of users who learn; those who talk with an InteRecAgent know their tastes, and remember nothing new of them."""
    market = setup.scenario.data
    if not isinstance(market, MarketSettings) or setup.scenario.method.kind == "interec":
        return None
    return Recovery(setup.dataset, market_truth(market))


def _over_limit(line: EventLine, limits: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """The texts of an event that are longer than their prompts asked for."""
    for version in line.memories:
        limit = limits.get((kind(version.agent), version.slot))
        if limit is not None and len(version.value.split()) > limit:
            yield f"{kind(version.agent)} {version.slot} over {limit} words"


def _schedule(driven: Driven) -> dict[str, int]:
    return {"stale": driven.progress["stale"], "lost": driven.progress["lost"]}


def _names_of_models(store: CallStore) -> str:
    """The models that answered, as they name themselves or as they were asked for."""
    names = dict.fromkeys(
        (row.outcome.model if isinstance(row.outcome, Completion) else "") or row.request.model
        for row in store
        if not row.request.model.startswith(LOCAL)
    )
    said = {"lexical": "lexical (rule-based text, not a language model)", "": "a model without a name"}
    return ", ".join(said.get(name, name) for name in sorted(names)) or "none was asked"
