"""The rehearsing backend: another backend's answers after seeded delays, as a real server would take its time."""

from __future__ import annotations

import asyncio
import math
import random

from simengine.llm import attempt
from simengine.llm.request import Completion, LanguageModel, Request


class Delay:
    """Answers as ``model`` does, after a log-normal delay.

    The delay is ``median * exp(sigma * z)`` seconds with z standard normal, drawn from a stream of the seed and the
    call's id, so that it is the same in whatever order calls arrive.
    """

    def __init__(self, model: LanguageModel, median: float, sigma: float, seed: int) -> None:
        self._model = model
        self._median = median
        self._sigma = sigma
        self._seed = seed

    def seconds(self, request: Request) -> float:
        """The delay of one call."""
        stream = random.Random(f"{self._seed}/{request.call}/{request.repeat}")
        return self._median * math.exp(self._sigma * stream.gauss(0.0, 1.0))

    async def complete(self, request: Request) -> Completion:
        """The model's completion, later. It counts as sent now, so that limits are rehearsed too."""
        if (current := attempt.current.get()) is not None:
            current.sent()
        await asyncio.sleep(self.seconds(request))
        return await self._model.complete(request)

    async def aclose(self) -> None:
        """Close the other backend, if it has anything to close."""
        aclose = getattr(self._model, "aclose", None)
        if aclose is not None:
            await aclose()
