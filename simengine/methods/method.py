"""What a method is to the rest of the house: settings, first memories, events of stages, a handler for each kind."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
from pydantic import BaseModel, ConfigDict

from simengine.kernel import Agent, Context, Event

Handler: TypeAlias = Callable[[Context], Coroutine[Any, Any, None]]


class Settings(BaseModel):
    """What a scenario may say under ``method``: unknown keys are errors, values do not change once read.

    A method narrows ``kind`` to its own name, as in ``kind: Literal["agentcf"]``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str


class Ranks(msgspec.Struct, frozen=True):
    """A ranking stage as a method needs to know it.

    ``repeats`` rankings are asked for of each case and strategy. A method orders them by the time of their target and
    before the interactions of that time: a live ranking shares the phase of the stage before, any other has its own.
    """

    name: str
    strategies: tuple[str, ...]
    repeats: int


class Method(Protocol):
    """A method bound to a data set, prompts and a model. It opens no file, socket or clock, and never sees the log."""

    handlers: Mapping[str, Handler]
    """What happens in an event, by the event's kind."""

    calls: Mapping[str, tuple[int, int]]
    """The fewest and the most model calls of an event, by its kind, where every reply can be read."""

    word_limits: Mapping[tuple[str, str], int]
    """For each kind of agent and slot the most words that its text should have."""

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """The values that the agent's memory slots start with."""

    def optimize(self, phase: int) -> Iterator[Event]:
        """The training interactions as events, in the total order."""

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """The rankings of the test cases as events, in the total order."""
