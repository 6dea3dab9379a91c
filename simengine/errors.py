"""Every error that simengine raises, in one small tree.

SimengineError
├── InputError        what the user gave is wrong: a scenario, a data file, an option
├── RunStopped        the run must stop; its log stays a valid prefix and can be resumed
├── UnitFailed        a recorded outcome: one unit of one event could not be done
│   └── CallFailed    the same, because a model call ended in a terminal error
├── KernelError       a handler broke one of the kernel's promises: a fault in a method
└── LogError          a run folder that is damaged, or that does not fit what is asked of it
    ├── Divergence    a replay found something else than the log says
    └── ReplayMiss    a replay needs an answer that the journal does not hold

An error holds ids and plain values, never live objects, so that it can be pickled, logged and kept. Its text says
what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from typing import Any


class SimengineError(Exception):
    """Base of all. ``where`` names the place by ids (``event``, ``agent``, ``call``, ``file``, ``line`` ...)."""

    def __init__(self, problem: str, *, remedy: str = "", **where: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.where = {key: value for key, value in where.items() if value is not None}

    def __str__(self) -> str:
        place = self.place()
        text = f"{place}: {self.problem}" if place else self.problem
        return f"{text}\n  {self.remedy}" if self.remedy else text

    def place(self) -> str:
        """The place in one phrase, ``file:line:column`` first, then the other ids as ``name value``."""
        where = dict(self.where)
        parts = [str(where.pop(key)) for key in ("file", "line", "column") if key in where]
        head = ":".join(parts)
        rest = ", ".join(f"{key} {value}" for key, value in where.items())
        return ", ".join(part for part in (head, rest) if part)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.problem, self.remedy, self.where)


def _rebuild(kind: type[SimengineError], problem: str, remedy: str, where: dict[str, Any]) -> SimengineError:
    return kind(problem, remedy=remedy, **where)


class InputError(SimengineError):
    """A scenario, a data file or an option is wrong. ``where``: file, line, column, field, value."""


class RunStopped(SimengineError):
    """Something that is no outcome of an event ends the run: budget, refused key, quota, disk, a signal."""


class UnitFailed(SimengineError):
    """A unit of an event failed. ``reason`` is a short stable word for counting; the text goes to the log."""

    def __init__(self, problem: str, *, reason: str = "failed", remedy: str = "", **where: Any) -> None:
        super().__init__(problem, remedy=remedy, **where)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.problem, self.remedy, {"reason": self.reason, **self.where})


class CallFailed(UnitFailed):
    """A model call ended in a terminal error (content filter, refused request, retries used up)."""


class KernelError(SimengineError):
    """A handler touched an agent outside its footprint, named a call twice, awaited something foreign ..."""


class LogError(SimengineError):
    """A run folder is damaged, or was made by another scenario, data set, prompt or schema."""


class Divergence(LogError):
    """Re-execution gave something else than the log: ``where`` holds record, agent, expected and found."""


class ReplayMiss(LogError):
    """Replay asked for a call that the journal does not hold."""
