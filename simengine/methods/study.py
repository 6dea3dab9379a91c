"""What a study is: a stage in which agents do something else than their method's own interactions and rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from simengine.data import Dataset
from simengine.kernel import Event
from simengine.methods.method import Handler, Method
from simengine.methods.planting import PlantSettings
from simengine.methods.turn import Asker


class StudySettings(BaseModel):
    """What a scenario may say of a stage: unknown keys are errors, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Ground:
    """What a study stands on: the data, the agents' method, a model to ask, the scenario's seed and what is planted."""

    dataset: Dataset
    method: Method
    asker: Asker
    seed: int
    plant: PlantSettings


class Study(Protocol):
    """A study under a stage's name. Like a method it opens no file, socket or clock, and never sees the log."""

    handlers: Mapping[str, Handler]
    """What happens in an event, by the event's kind, which begins with the stage's name: no two stages share one."""

    calls: Mapping[str, tuple[int, int]]
    """The fewest and the most model calls of an event, by its kind, where every reply can be read."""

    def events(self, phase: int) -> Iterator[Event]:
        """The study's events, in the total order."""


@dataclass(frozen=True)
class StudyKind:
    """A study as the catalogue knows it: ``make(name, settings, ground)`` gives it; ``prompts`` are its templates."""

    make: Callable[[str, Any, Ground], Study]
    prompts: Traversable
