"""The retry layer: an attempt that failed for a passing reason is sent again, until a budget of seconds is spent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import msgspec

from simengine.errors import CallFailed
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.transient import Transient

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


class Retry:
    """Sends a call again after each :class:`Transient`, with pauses that double from half a second to thirty.

    A pause is never shorter than what the server asked for. The budget counts the seconds of failed attempts, from
    the moment each was sent, and of the pauses, but not the time in the queue for a slot: a long queue must not use
    up anyone's patience. When it is spent the call ends as :class:`CallFailed`.
    """

    def __init__(
        self,
        following: LanguageModel,
        budget: float,
        *,
        seed: int = 0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._following = following
        self._budget = budget
        self._seed = seed
        self._sleep = sleep

    async def complete(self, request: Request) -> Completion:
        """The next model's completion with the number of attempts it took."""
        spent = 0.0
        attempt = 0
        while True:
            attempt += 1
            try:
                completion = await self._following.complete(request)
            except CallFailed as failed:
                failed.where["attempts"] = attempt
                raise
            except Transient as fault:
                # A generator for each pause, so that jitter does not depend on which call fails first.
                jitter = random.Random(f"{self._seed}/{request.key()}/{attempt}")
                pause = _pause(attempt, fault.retry_after, jitter)
                spent += fault.elapsed + pause
                if spent > self._budget:
                    raise self._given_up(fault, attempt) from None
            else:
                return msgspec.structs.replace(completion, attempts=attempt)
            await self._sleep(pause)

    def _given_up(self, fault: Transient, attempts: int) -> CallFailed:
        return CallFailed(
            f"no answer within the retry budget of {self._budget:g} s; the last attempt: {fault.problem}",
            reason=fault.reason,
            remedy="see whether the server keeps pace; llm.retry.budget and llm.limits.concurrency govern this",
            attempts=attempts,
        )


def _pause(attempt: int, retry_after: float | None, jitter: random.Random) -> float:
    """Seconds to wait after a failed attempt (1, 2, ...), spread so that calls that failed together come apart."""
    ceiling = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(attempt - 1, 16))
    pause = ceiling * jitter.uniform(0.5, 1.0)
    return pause if retry_after is None else retry_after + min(pause, 1.0)
