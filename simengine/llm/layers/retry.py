"""The retry layer: an attempt that failed for a passing reason is sent again, until a budget of seconds is spent."""

from __future__ import annotations

import asyncio
import random

import msgspec
import structlog

from simengine.errors import CallFailed, RunStopped
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.settings import RetrySettings
from simengine.llm.transient import Transient, headline

log = structlog.get_logger("simengine")

_UNREACHABLE = "unreachable"
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_FIRST_CONTACT = 60.0
"""Seconds that a server which nobody has reached yet is tried for: an address that is wrong stays wrong."""


class Retry:
    """Sends a call again after each :class:`Transient`, with pauses that double from half a second to thirty.

    A pause is never shorter than what the server asked for; if that is longer than ``max_wait`` the run stops, since
    nothing is gained by failing one call after another. The budget counts the seconds of failed attempts, from the
    moment each was sent, and of the pauses, but not the time in the queue for a slot: a long queue must not use up
    anyone's patience. When it is spent the call ends as :class:`CallFailed`, and the run stops if no server could be
    reached at all; where none has been reached ever, after a minute already. What is free to send again is sent at once
    and counts for nothing. ``pausing`` calls wait now to be sent again.

    Events: ``resent`` and ``retry`` for each further attempt, with the pause in ``seconds``; ``server not reached``,
    with the seconds after which it gives up, and ``pause too long``, once each.
    """

    def __init__(self, following: LanguageModel, settings: RetrySettings, *, seed: int = 0) -> None:
        self._following = following
        self._settings = settings
        self._seed = seed
        self._warned: set[str] = set()
        self._reached = False
        self.resent = 0
        self.pausing = 0

    async def complete(self, request: Request) -> Completion:
        """The next model's completion with the number of attempts it took."""
        spent, attempt, failures = 0.0, 0, 0
        while True:
            attempt += 1
            try:
                completion = await self._following.complete(request)
            except CallFailed as failed:
                self._reached = True
                failed.where["attempts"] = attempt
                raise
            except Transient as fault:
                self._reached = self._reached or fault.reason != _UNREACHABLE
                if fault.free:
                    self.resent += 1
                    log.info("resent", **_told(request, fault), attempt=attempt)
                    continue
                failures += 1
                # A generator for each pause, so that jitter does not depend on which call fails first.
                jitter = random.Random(f"{self._seed}/{request.key()}/{failures}")
                pause = pause_after(failures, fault.retry_after, jitter)
                spent += fault.elapsed + pause
                if fault.reason == _UNREACHABLE:
                    self._warn("server not reached", request, fault, problem=fault.problem, tried_for=self._patience)
                self._give_up(request, fault, attempt, spent)
                log.info("retry", **_told(request, fault), attempt=attempt, seconds=round(pause, 3))
            else:
                self._reached = True
                return msgspec.structs.replace(completion, attempts=attempt)
            self.pausing += 1
            try:
                await asyncio.sleep(pause)
            finally:
                self.pausing -= 1

    @property
    def _patience(self) -> float:
        """Seconds for which a server that cannot be reached is tried."""
        budget = self._settings.budget
        return budget if self._reached else min(budget, _FIRST_CONTACT)

    def _give_up(self, request: Request, fault: Transient, attempts: int, spent: float) -> None:
        """Raise, where there is no sense in another try."""
        budget, most = self._settings.budget, self._settings.max_wait
        if fault.retry_after is not None and fault.retry_after > most:
            self._warn("pause too long", request, fault, seconds=fault.retry_after, most=most)
            raise RunStopped(
                f"the server asks to wait {fault.retry_after:g} s, which is more than llm.retry.max_wait ({most:g} s): "
                f"{fault.problem}",
                remedy="resume the run when the time is over, or raise llm.retry.max_wait",
            ) from None
        if spent <= (self._patience if fault.reason == _UNREACHABLE else budget):
            return
        if fault.reason == _UNREACHABLE:
            never = "" if self._reached else ", and no call was ever answered"
            raise RunStopped(
                f"no server could be reached within {self._patience:g} s{never}: {fault.problem}",
                remedy="see that the server is running, and that llm.base_url has its host, port and path; then resume "
                "the run",
            ) from None
        raise CallFailed(
            f"no answer within the retry budget of {budget:g} s; the last attempt: {fault.problem}",
            reason=fault.reason,
            remedy="see whether the server keeps pace; llm.retry.budget and llm.limits.concurrency govern this",
            attempts=attempts,
        ) from None

    def _warn(self, event: str, request: Request, fault: Transient, **more: float | str) -> None:
        """Tell what many calls meet at one time, for the first of them."""
        if event not in self._warned:
            self._warned.add(event)
            log.warning(event, **{**_told(request, fault), **more})


def _told(request: Request, fault: Transient) -> dict[str, str]:
    return {"call": request.call, "task": request.task, "reason": fault.reason, "problem": headline(fault.problem)}


def pause_after(failures: int, retry_after: float | None, jitter: random.Random) -> float:
    """Seconds to wait after so many failures, spread so that calls that failed together come apart."""
    ceiling = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures - 1, 16))
    pause = ceiling * jitter.uniform(0.5, 1.0)
    return pause if retry_after is None else retry_after + min(pause, 1.0)
