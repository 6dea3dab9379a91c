"""Builds what a scenario says: data, prompts, rules of the engine, the order of its stages, and its identity."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

import msgspec

from simengine.data import Dataset, Unit, load, with_drawn_candidates
from simengine.errors import InputError
from simengine.kernel import Event, Period, Rules
from simengine.llm import LanguageModel
from simengine.llm.prompts import PromptBook
from simengine.methods import Method, Ranks, make, prompts
from simengine.methods.turn import Asker
from simengine.runlog import SCHEMA, Header
from simengine.scenario.schema import RankStage, Scenario, every

NEGATIVES = 9
"""How many negatives stand beside the target where the data leave the candidates open."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_KINDS = {"users": "user", "items": "item"}


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
        if any(stage.rank for stage in scenario.stages) and any(case.candidates is None for case in dataset.cases):
            dataset = with_drawn_candidates(dataset, NEGATIVES, scenario.seed)
        book = PromptBook(prompts(scenario.method.kind), scenario.prompts)
        return cls(scenario, dataset, book, _rules(scenario, dataset.unit), _header(scenario, dataset, book))

    def method(self, model: LanguageModel) -> Method:
        """The scenario's method on these data, asking ``model``."""
        scenario = self.scenario
        asker = Asker(model, self.prompts, scenario.data.noun, scenario.llm.sampling_for)
        return make(scenario.method, self.dataset, asker, scenario.seed)

    def stages(self) -> list[tuple[str, int, RankStage | None]]:
        """Each stage's name, its phase in the total order, and its settings if it ranks.

        A stage opens a new phase, but a live ranking shares that of the stage before. A kind that comes again gets a
        number behind its name.
        """
        named: list[tuple[str, int, RankStage | None]] = []
        seen: dict[str, int] = {}
        phase = -1
        for stage in self.scenario.stages:
            kind = "rank" if stage.rank else "optimize"
            seen[kind] = seen.get(kind, 0) + 1
            live = stage.rank is not None and stage.rank.when == "live" and phase >= 0
            phase += not live
            named.append((kind if seen[kind] == 1 else f"{kind}-{seen[kind]}", phase, stage.rank))
        return named

    def events(self, method: Method, name: str, phase: int, rank: RankStage | None) -> Iterator[Event]:
        """The events of one stage, in the total order."""
        if rank is None:
            return method.optimize(phase)
        return method.rank(phase, Ranks(name, tuple(rank.strategies), rank.repeats))

    def source(self, method: Method) -> Iterator[Event]:
        """All events that are known beforehand, in the total order, made as they are asked for."""
        stages = [self.events(method, *stage) for stage in self.stages()]
        return heapq.merge(*stages, key=attrgetter("order"))

    def total(self) -> int:
        """How many events :meth:`source` gives."""
        count = 0
        for _, _, rank in self.stages():
            if rank is None:
                count += len(self.dataset.train)
            else:
                cases = sum(case.candidates is not None for case in self.dataset.cases)
                count += cases * len(rank.strategies) * rank.repeats
        return count


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
