"""Builds what a scenario says: data, prompts, rules of the engine, the order of its stages, and its identity."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
from pydantic import BaseModel

from simengine.data import Dataset, Unit, load, with_drawn_candidates
from simengine.errors import InputError
from simengine.kernel import Period, Rules
from simengine.llm.prompts import PromptBook
from simengine.methods import STUDIES, Trial, check_plantings, prompts, tools
from simengine.runlog import SCHEMA, Header
from simengine.scenario.baselines import baselines
from simengine.scenario.misspelt import check_names
from simengine.scenario.schema import RankingStage, Scenario, every
from simengine.scenario.trials import trials

NEGATIVES = 9
"""How many negatives stand beside the target where the data leave the candidates open."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_KINDS = {"users": "user", "items": "item"}


@dataclass(frozen=True)
class Placed:
    """A stage of a scenario in its place: its name, its phase in the total order, its kind and what it says."""

    name: str
    phase: int
    kind: str
    settings: BaseModel


@dataclass(frozen=True)
class Setup:
    """A scenario with its data loaded and its prompts read: all that a run needs but a model and a folder."""

    scenario: Scenario
    dataset: Dataset
    prompts: PromptBook
    rules: Rules
    header: Header

    @classmethod
    def of(cls, scenario: Scenario, data: Dataset | None = None) -> Setup:
        """Load and check everything; ``data`` stands in for what the scenario names. Raises :class:`InputError`."""
        if data is not None and (not isinstance(data, Dataset) or scenario.data.format != "frame"):
            raise InputError(
                "data are handed over as a Dataset, to a scenario that says `data: {format: frame}`",
                field="data",
                remedy="make them with simengine.from_frame(...), and let the scenario say so",
            )
        dataset = data if data is not None else load(scenario.data)
        if any(stage.kind != "optimize" for stage in scenario.stages) and any(
            case.candidates is None for case in dataset.cases
        ):
            dataset = with_drawn_candidates(dataset, NEGATIVES, scenario.seed)
        folders = [prompts(scenario.method.kind)]
        folders += [STUDIES[stage.kind].prompts for stage in scenario.stages if stage.kind in STUDIES]
        book = PromptBook(folders, scenario.prompts)
        return cls(scenario, dataset, book, _rules(scenario, dataset.unit), _header(scenario, dataset, book))

    def stages(self) -> list[Placed]:
        """The scenario's stages, each with its name and its phase in the total order.

        A stage opens a new phase, but a live ranking shares that of the stage before. A kind that comes again gets a
        number behind its name.
        """
        placed: list[Placed] = []
        seen: dict[str, int] = {}
        phase = -1
        for stage in self.scenario.stages:
            kind, settings = stage.kind, stage.settings
            seen[kind] = seen.get(kind, 0) + 1
            phase += not (isinstance(settings, RankingStage) and settings.live and phase >= 0)
            placed.append(Placed(kind if seen[kind] == 1 else f"{kind}-{seen[kind]}", phase, kind, settings))
        return placed

    @cached_property
    def _rankings(self) -> Mapping[str, tuple[Trial, ...]]:
        """The rankings that the scenario asks for, by the name of their stage."""
        return {
            placed.name: trials(placed.name, placed.settings, self.dataset, self.scenario.seed)
            for placed in self.stages()
            if isinstance(placed.settings, RankingStage)
        }

    def trials(self, placed: Placed) -> tuple[Trial, ...]:
        """The rankings of a stage that has some."""
        return self._rankings[placed.name]

    def check(self) -> None:
        """See now that seeds are there and all rankings can be made and measured, rather than when the run is paid for.

        Reading or replaying a run needs none of this. Raises :class:`InputError`, for instance where the library of a
        ranker is not installed, or a role is of no task.
        """
        check_names(self.scenario, self.prompts)
        scenario = self.scenario
        re_enacted = len(self.dataset.train) if any(stage.optimize is not None for stage in scenario.stages) else 0
        scenario.method.grouped_behind(self.dataset.train.time.tolist(), self.dataset.unit)  # refuses a wrong period
        check_plantings(scenario.plant, self.dataset, scenario.method, scenario.seed, re_enacted)
        tools(self.scenario.method, self.dataset, self.scenario.seed)
        for placed in self.stages():
            if isinstance(placed.settings, RankingStage):
                self.trials(placed)
                baselines(placed.settings, self.scenario)


def _rules(scenario: Scenario, unit: Unit) -> Rules:
    engine = scenario.engine
    return Rules(
        seed=scenario.seed,
        window=engine.window,
        stop_on_error=engine.on_error == "stop",
        batch=0 if engine.schedule == "chronological" else engine.schedule.batch,
        periods={
            _KINDS[kind]: period
            for kind, text in engine.visibility.items()
            if (period := _period(text, unit, f"engine.visibility.{kind}")) is not None
        },
    )


def _period(text: str, unit: Unit, field: str) -> Period | None:
    said = every(text)
    if said is None:
        return None
    number, word = said
    if word == "event":
        if number < 1 or number != int(number):
            raise InputError(f"cannot publish {text}", field=field, remedy="give a whole number of events")
        return Period(rows=int(number))
    if (word == "step") != (unit == "step"):
        have = "steps" if unit == "step" else "timestamps"
        raise InputError(
            f"cannot publish {text}: the clock of these data counts {have}",
            field=field,
            remedy="say `every 2 steps` for data on the step clock, `every 1d` for data with timestamps",
        )
    span = number * _SECONDS.get(word, 1) * (1000 if unit == "ms" else 1)
    if span <= 0:
        raise InputError(f"cannot publish {text}", field=field, remedy="give a period longer than nothing")
    return Period(span=span)


def _header(scenario: Scenario, dataset: Dataset, book: PromptBook) -> Header:
    return Header(
        schema=SCHEMA,
        seed=scenario.seed,
        scenario=hashlib.sha256(msgspec.json.encode(scenario.semantic(), order="sorted")).hexdigest(),
        data=dataset.digest,
        prompts=book.hashes(),
    )
