"""The journal layer: no call is asked again whose outcome is written down, and none goes on before it is."""

from __future__ import annotations

import time
from collections import Counter

import structlog

from simengine.errors import CallFailed
from simengine.llm.calls import CallStore, Entry, Failure, Outcome
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.tokens import CHARACTERS, characters, was_cut
from simengine.llm.transient import headline

log = structlog.get_logger("simengine")


class Journal:
    """Answers from the store what it holds; asks the next model for the rest and stores the outcome first.

    An outcome is a completion or a :class:`CallFailed`. Whatever else ends a call (a stopped run, a cancellation) says
    nothing about the call and is never stored. Counted here: ``answered`` from the store, ``reused`` from the journals
    of other runs; and of the rest ``asked``, ``completed``, ``failed`` by reason, the tokens that the server reported,
    ``unmetered``, the answers for which it did not, and ``cut``, those whose prompt it must have cut without saying so.

    Events: ``call failed`` for each terminal error (a warning for the first of each reason), and ``prompt cut by the
    server``.
    """

    def __init__(self, store: CallStore, following: LanguageModel) -> None:
        self._store = store
        self._following = following
        self.answered = 0
        self.asked = 0
        self.reused = 0
        self.completed = 0
        self.failed: Counter[str] = Counter()
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.unmetered = 0
        self.cut = 0

    async def complete(self, request: Request) -> Completion:
        """The stored completion, or the next model's once it is stored; raises :class:`CallFailed` likewise."""
        outcome = self._store.get(request.key())
        if outcome is not None:
            self.answered += 1
        else:
            started = time.monotonic()
            self.asked += 1
            outcome = await self._ask(request)
            if outcome.attempts == 0:  # another run has paid for it
                self.asked -= 1
                self.reused += 1
            else:
                self._count(request, outcome, time.monotonic() - started)
            outcome = await self._store.put(Entry(request, outcome, time.monotonic() - started))
        if isinstance(outcome, Failure):
            raise outcome.error()
        return outcome

    async def _ask(self, request: Request) -> Outcome:
        try:
            return await self._following.complete(request)
        except CallFailed as failed:
            where = dict(failed.where)
            attempts = where.pop("attempts", 1)
            return Failure(failed.problem, failed.reason, failed.remedy, attempts, where)

    def _count(self, request: Request, outcome: Outcome, seconds: float) -> None:
        if isinstance(outcome, Failure):
            self.failed[outcome.reason] += 1
            tell = log.warning if self.failed[outcome.reason] == 1 else log.info
            tell(
                "call failed",
                call=request.call,
                task=request.task,
                model=request.model,
                reason=outcome.reason,
                attempts=outcome.attempts,
                seconds=round(seconds, 3),
                problem=headline(outcome.problem),
            )
            return
        self.completed += 1
        usage = outcome.usage
        self.unmetered += usage.prompt_tokens is None or usage.completion_tokens is None
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        if was_cut(request, usage):
            self.cut += 1
            log.warning(
                "prompt cut by the server",
                call=request.call,
                task=request.task,
                model=request.model,
                expected_tokens=round(characters(request) / CHARACTERS),
                reported_tokens=usage.prompt_tokens,
                remedy="raise the server's context length",
            )
