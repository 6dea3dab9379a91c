"""A setup with a model behind it: the method and the studies that its stages play, with their events and handlers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter

from simengine.kernel import Event
from simengine.llm import LanguageModel
from simengine.methods import STUDIES, Ground, Handler, Planting, Ranks, Study, make
from simengine.methods.turn import Asker
from simengine.scenario.schema import RankingStage
from simengine.scenario.setup import Placed, Setup


class Cast:
    """All who act in a run. It asks ``model`` and keeps nothing of what happens."""

    def __init__(self, setup: Setup, model: LanguageModel) -> None:
        scenario = setup.scenario
        llm = scenario.llm
        asker = Asker(model, setup.prompts, scenario.data.noun, llm.sampling_for, llm.json_for)
        self._setup = setup
        self.method = make(scenario.method, setup.dataset, asker, scenario.seed)
        ground = Ground(setup.dataset, self.method, asker, scenario.seed, scenario.plant)
        phase = next((placed.phase for placed in setup.stages() if placed.kind == "optimize"), 0)
        self._planting = Planting(scenario.plant, setup.dataset, self.method, scenario.seed, phase)
        self._studies: dict[str, Study] = {
            placed.name: STUDIES[placed.kind].make(placed.name, placed.settings, ground)
            for placed in setup.stages()
            if placed.kind in STUDIES
        }

    @cached_property
    def handlers(self) -> Mapping[str, Handler]:
        """What happens in an event, by its kind."""
        found = {**self.method.handlers, **self._planting.handlers}
        for study in self._studies.values():
            found |= study.handlers
        return found

    @cached_property
    def calls(self) -> Mapping[str, tuple[int, int]]:
        """The fewest and the most model calls of an event, by its kind."""
        found = {**self.method.calls, **self._planting.calls}
        for study in self._studies.values():
            found |= study.calls
        return found

    def events(self, placed: Placed) -> Iterator[Event]:
        """The events of one stage, in the total order, made as they are asked for."""
        if placed.name in self._studies:
            return self._studies[placed.name].events(placed.phase)
        if isinstance(placed.settings, RankingStage):
            ranks = Ranks(placed.name, tuple(placed.settings.strategies), self._setup.trials(placed))
            return self.method.rank(placed.phase, ranks)
        return self.method.optimize(placed.phase)

    def source(self) -> Iterator[Event]:
        """All events that are known beforehand, in the total order."""
        stages = (self.events(placed) for placed in self._setup.stages())
        return heapq.merge(self._planting.events(), *stages, key=attrgetter("order"))

    def total(self) -> int:
        """How many events :meth:`source` gives: it makes them all, since only methods and studies know."""
        return sum(1 for _ in self.source())
