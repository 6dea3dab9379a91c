"""The fault that may pass: what a backend raises for one failed attempt that is worth sending again."""

from __future__ import annotations

from typing import Literal

Limited = Literal["", "requests", "tokens", "concurrency"]
"""Of what the server says that there was too much, as far as it says so."""


def headline(problem: str) -> str:
    """What happened, without the server's own words, which follow the first colon: they may repeat a prompt.

    This is what log events tell; the whole text is for errors and the journal.
    """
    return problem.partition(":")[0]


class Transient(Exception):
    """One attempt failed in a way that may pass: no connection, no reply in time, an overloaded server.

    ``reason`` is the short word for counting that the call ends with if it is given up (``overloaded``, ``limited``,
    ``timeout``, ``connection``, ``unreachable``). ``retry_after`` is the pause in seconds that the server asked for,
    ``elapsed`` the seconds that this attempt took from the moment it was sent. ``limited`` names the limit that a
    status 429 speaks of. ``free`` tells that the next attempt needs no pause and costs nothing of anybody's patience:
    the server never saw the request (a kept connection was dropped), or something was learned that changes it.
    """

    def __init__(
        self,
        problem: str,
        *,
        reason: str = "overloaded",
        retry_after: float | None = None,
        elapsed: float = 0.0,
        limited: Limited = "",
        free: bool = False,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.reason = reason
        self.retry_after = retry_after
        self.elapsed = elapsed
        self.limited = limited
        self.free = free
