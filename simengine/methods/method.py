"""What a method is to the rest of the house: settings, first memories, events of stages, a handler for each kind."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
from pydantic import BaseModel, ConfigDict

from simengine.data import Case, Unit
from simengine.kernel import Agent, Context, Event

Handler: TypeAlias = Callable[[Context], Coroutine[Any, Any, None]]

GROUPING = "grouping:current"
"""The agent that knows which groups there are, where users fall into groups. Its slot ``groups`` is a list of mappings,
the largest group first, with the keys ``id``, ``name``, ``tags`` and ``members``."""


class Settings(BaseModel):
    """What a scenario may say under ``method``: unknown keys are errors, values do not change once read.

    A method narrows ``kind`` to its own name, as in ``kind: Literal["agentcf"]``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str

    def grouped_behind(self, times: Sequence[int | float], unit: Unit) -> int | None:
        """Behind which training interaction, counted from 1, the first groups of users are in force.

        ``times`` are those of the interactions, in order, on a clock of this unit. ``None`` where there never are any
        groups. A method that has some keeps them in :data:`GROUPING`.
        """
        return None


class Trial(msgspec.Struct, frozen=True):
    """One ranking to ask for.

    case: the test case, with the candidates to be ranked.
    repeat: counts the rankings of one case, from 1.
    group: the condition of a study, empty where there is none.
    place: where among the candidates the target is shown, 0 for the first; ``None`` leaves it to chance.
    drawn: whether the candidates are others than those of the data set, so that the log must name them.
    """

    case: Case
    repeat: int = 1
    group: str = ""
    place: int | None = None
    drawn: bool = False


class Ranks(msgspec.Struct, frozen=True):
    """A stage of rankings as a method needs to know it: each of ``trials`` is asked for by each of ``strategies``.

    :func:`~simengine.methods.ranking.events` makes the events of one.
    """

    name: str
    strategies: tuple[str, ...]
    trials: tuple[Trial, ...]


class Method(Protocol):
    """A method bound to a data set, prompts and a model. It opens no file, socket or clock, and never sees the log."""

    handlers: Mapping[str, Handler]
    """What happens in an event, by the event's kind."""

    calls: Mapping[str, tuple[int, int]]
    """The fewest and the most model calls of an event, by its kind, where every reply can be read."""

    word_limits: Mapping[tuple[str, str], int]
    """For each kind of agent and slot the most words that its text should have."""

    known_by: Mapping[str, str]
    """For each kind of agent the slot by which others know it, such as a user's self-introduction."""

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """The values that the agent's memory slots start with."""

    def optimize(self, phase: int) -> Iterator[Event]:
        """The training interactions as events, in the total order."""

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """The rankings of a stage as events, in the total order."""
