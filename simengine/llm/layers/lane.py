"""The attempts at one model that wait to be sent, and what each holds once it is let through."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

from simengine.llm.layers.meter import Meter, Toll
from simengine.llm.request import Request


@dataclass
class Permit:
    """What an attempt holds while it is under way: a slot, and its tolls on the endpoint's and its model's meter."""

    requests: tuple[Request, ...]
    shared: Toll
    own: Toll
    was_sent: bool = False


class Waiting:
    """An attempt in the queue, and the loop's time at which it came."""

    __slots__ = ("came", "requests", "slot")

    def __init__(self, requests: tuple[Request, ...], slot: asyncio.Future[Permit], came: float) -> None:
        self.requests = requests
        self.slot = slot
        self.came = came


class Lane:
    """The attempts at one model: servers keep limits by model. The queue is a heap by rank."""

    def __init__(self, window: float) -> None:
        self.meter = Meter(window)
        self._streak = 0
        self._refused_at = -math.inf
        self._queue: list[tuple[float, int, Waiting]] = []

    def refused(self, sent: float) -> int:
        """An attempt was refused for no stated limit; how many have been now, with none let in that was sent since."""
        self._streak += 1
        self._refused_at = max(self._refused_at, sent)
        return self._streak

    def admitted(self, sent: float) -> None:
        """An attempt was let in."""
        if sent >= self._refused_at:
            self._streak = 0

    def push(self, rank: float, arrival: int, waiting: Waiting) -> None:
        """Queue an attempt."""
        heapq.heappush(self._queue, (rank, arrival, waiting))

    def head(self) -> tuple[float, int, Waiting] | None:
        """The next in the queue that was not cancelled while it waited."""
        while self._queue and self._queue[0][2].slot.done():
            heapq.heappop(self._queue)
        return self._queue[0] if self._queue else None

    def pop(self) -> None:
        """Take the head out."""
        heapq.heappop(self._queue)

    def fail(self, error: Callable[[], Exception]) -> None:
        """End all that wait, each with an error of its own."""
        for _, _, waiting in self._queue:
            if not waiting.slot.done():
                waiting.slot.set_exception(error())
        self._queue.clear()
