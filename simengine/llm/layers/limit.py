"""The limiting layer: how many attempts are under way at one time, and who goes next."""

from __future__ import annotations

import asyncio
import heapq

from simengine.errors import RunStopped
from simengine.llm.request import Completion, LanguageModel, Request


class Limit:
    """Lets at most ``concurrency`` attempts through; a free slot goes to the waiting one of the lowest rank.

    Rank is the arrival number less ``weight`` times the request's priority, fixed on arrival. So a call of priority p
    passes those that came up to ``weight * p`` arrivals before it and no others: however many urgent calls follow, the
    oldest gets its turn. A waiting call holds no slot.
    """

    def __init__(self, following: LanguageModel, concurrency: int, *, weight: float = 1.0) -> None:
        self._following = following
        self._free = concurrency
        self._weight = weight
        self._queue: list[tuple[float, int, asyncio.Future[None]]] = []
        self._closed = False
        self.arrived = 0
        self.started = 0
        self.waiting = 0
        self.in_flight = 0
        self.greatest = 0

    async def complete(self, request: Request) -> Completion:
        """The next model's completion, asked for once a slot is free."""
        await self._enter(request.priority)
        self.started += 1
        self.in_flight += 1
        self.greatest = max(self.greatest, self.in_flight)
        try:
            return await self._following.complete(request)
        finally:
            self.in_flight -= 1
            self._leave()

    def close(self) -> None:
        """Send nothing more: the run stops. What waits here ends at once; what was sent may still be answered."""
        self._closed = True
        for _, _, slot in self._queue:
            if not slot.done():
                slot.set_exception(_stopping())
        self._queue.clear()

    async def _enter(self, priority: float) -> None:
        if self._closed:
            raise _stopping()
        self.arrived += 1
        if self._free > 0:
            self._free -= 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (self.arrived - self._weight * priority, self.arrived, slot))
        self.waiting += 1
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():  # the slot was handed over in the very turn in which its caller was cancelled
                self._leave()
            raise
        finally:
            self.waiting -= 1

    def _leave(self) -> None:
        """Hand the slot to the next in the queue, or set it free."""
        while self._queue:
            slot = heapq.heappop(self._queue)[2]
            if not slot.done():  # its caller was cancelled while it waited
                slot.set_result(None)
                return
        self._free += 1


def _stopping() -> RunStopped:
    return RunStopped("the run stops, so this call is not sent", remedy="resume the run to send it")
