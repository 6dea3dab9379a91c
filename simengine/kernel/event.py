"""What an event is: its identity, its place in the total order, and the agents that it may touch.

The total order is the order of ``Event.order``, a tuple ``(phase, time, *tie)``. ``phase`` is the position of the stage
among stages that run one after another; ``tie`` is a rule on ids that whoever makes the events states. A child's tie
is its parent's with the branch path appended, so that a child never stands before its parent. An event that goes on
makes a chain, whose events have the first one's tie with their numbers appended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

Order: TypeAlias = tuple[Any, ...]
Agent: TypeAlias = str
CHAIN = "+"
"""Stands between the id of a chain's first event and the number of a later one, and before that number in its order."""


class Lookahead(msgspec.Struct, frozen=True, gc=False):
    """What an event that may schedule others promises about all its descendants.

    ``delay`` is the least time between the event and any descendant (>= 0, in the unit of the run's clock); ``writes``
    are the agents that the event's descendants may write. Later events wait only where they meet these.
    """

    delay: int | float
    writes: tuple[Agent, ...]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event. ``reads`` and ``writes`` are its footprint; what it writes it may also read.

    ``data`` is what the handler needs to know (plain JSON-like values), ``facts`` what is known already when the event
    is issued (edges, for instance): both are opaque here. ``source`` marks the rows of the log that is re-enacted;
    periods and batches count only these. ``parent`` is the id of the event that scheduled this one.
    """

    id: str
    kind: str
    order: Order
    time: int | float
    writes: tuple[Agent, ...] = ()
    reads: tuple[Agent, ...] = ()
    data: Any = None
    facts: tuple[Any, ...] = ()
    source: bool = False
    parent: str | None = None
    lookahead: Lookahead | None = None


class Period(msgspec.Struct, frozen=True, gc=False):
    """How often an agent's versions are published to others: every ``rows`` source rows, or every ``span`` of time."""

    rows: int = 0
    span: float = 0.0


Initial: TypeAlias = Callable[[Agent], Mapping[str, Any]]
"""For each agent the values that its slots start with."""
