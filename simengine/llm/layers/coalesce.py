"""The coalescing layer: equal requests that are under way at one time are one call."""

from __future__ import annotations

import asyncio

from simengine.errors import CallFailed
from simengine.llm.request import Completion, LanguageModel, Request


class _Flight:
    """A call under way, and how many wait for it."""

    def __init__(self, task: asyncio.Task[Completion]) -> None:
        self.task = task
        self.waiting = 0


class Coalesce:
    """Asks the next model once for all requests of one key that overlap in time; ``shared`` counts the others.

    The call is a task that belongs to nobody who waits: a caller that is cancelled leaves it to the rest, and it is
    cancelled with the last of them. A terminal error is raised to each with its own call and task named.
    """

    def __init__(self, following: LanguageModel) -> None:
        self._following = following
        self._flights: dict[str, _Flight] = {}
        self.shared = 0

    async def complete(self, request: Request) -> Completion:
        """The next model's completion, or that of an equal request under way."""
        flight = self._board(request)
        flight.waiting += 1
        try:
            await asyncio.wait([flight.task])
            return flight.task.result()
        except CallFailed as failed:
            where = {**failed.where, "call": request.call or None, "task": request.task}
            raise CallFailed(failed.problem, reason=failed.reason, remedy=failed.remedy, **where) from None
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                flight.task.cancel()

    @property
    def under_way(self) -> int:
        """How many different calls are under way."""
        return len(self._flights)

    def _board(self, request: Request) -> _Flight:
        key = request.key()
        flight = self._flights.get(key)
        if flight is not None and not flight.task.cancelling():
            self.shared += 1
            return flight
        flight = _Flight(asyncio.ensure_future(self._following.complete(request)))
        self._flights[key] = flight
        flight.task.add_done_callback(lambda _: self._land(key, flight))
        return flight

    def _land(self, key: str, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        # An error that all who waited were cancelled before seeing is theirs no more; asyncio would complain of it.
        if not flight.task.cancelled():
            flight.task.exception()

    async def aclose(self) -> None:
        """Cancel what is still under way and see it ended."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
