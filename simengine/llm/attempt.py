"""One attempt at a call, as the layer that lets it through and the backend that sends it both see it.

Request and reply pass between the two by the one seam that all models have. What else they must tell one another (the
moment of sending, what the reply's headers say about limits) goes by the attempt that is current in their task.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Gauge:
    """What a server says about one of its limits: per window, how much is left of it, seconds until it is restored."""

    limit: float | None = None
    remaining: float | None = None
    reset: float | None = None


@dataclass
class Attempt:
    """``sent`` is told once, ``gauges`` by name (``requests``, ``tokens``) as soon as a reply's headers are there."""

    on_sent: Callable[[], None]
    gauges: dict[str, Gauge] = field(default_factory=dict)

    def sent(self) -> None:
        """The request is on the wire now: from here on it counts for the server."""
        self.on_sent()


current: ContextVar[Attempt | None] = ContextVar("attempt", default=None)
