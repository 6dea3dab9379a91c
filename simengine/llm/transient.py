"""The fault that may pass: what a backend raises for one failed attempt that is worth sending again."""

from __future__ import annotations


class Transient(Exception):
    """One attempt failed in a way that may pass: no connection, no reply in time, an overloaded server.

    ``reason`` is the short word for counting that the call ends with if it is given up (``overloaded``, ``timeout``,
    ``connection``). ``retry_after`` is the pause in seconds that the server asked for, ``elapsed`` the seconds that
    this attempt took from the moment it was sent.
    """

    def __init__(
        self, problem: str, *, reason: str = "overloaded", retry_after: float | None = None, elapsed: float = 0.0
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.reason = reason
        self.retry_after = retry_after
        self.elapsed = elapsed
