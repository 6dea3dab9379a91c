"""Models and pauses that the tests of the layers hold in their hand."""

from __future__ import annotations

import asyncio
import copy
from itertools import pairwise

from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Message, Request, Sampling


def ask(text: str = "hello", *, temperature: float | None = 0.0, **options: object) -> Request:
    sampling = Sampling(temperature=temperature)
    return Request(task="choose", model="m", messages=(Message("user", text),), sampling=sampling, **options)


async def turns(count: int = 10) -> None:
    """Let everything that can run, run."""
    for _ in range(count):
        await asyncio.sleep(0)


class Held:
    """A model each of whose answers waits until the test gives it. ``calls`` are in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[tuple[Request, asyncio.Future[Completion]]] = []

    async def complete(self, request: Request) -> Completion:
        answer: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self.calls.append((request, answer))
        return await answer

    def asked(self) -> list[str]:
        return [request.messages[0].content for request, _ in self.calls]

    def give(self, at: int, text: str = "yes") -> None:
        self.calls[at][1].set_result(Completion(text))


class Watch:
    """A model that answers in turn, like :func:`in_turn`, and keeps the loop's times at which it was asked."""

    def __init__(self, *answers: str | Exception, then: str | Exception = "yes") -> None:
        self._answers = list(answers)
        self._then = then
        self.times: list[float] = []

    async def complete(self, request: Request) -> Completion:
        self.times.append(asyncio.get_running_loop().time())
        answer = self._answers.pop(0) if self._answers else self._then
        if isinstance(answer, Exception):
            raise copy.copy(answer)
        return Completion(answer)

    @property
    def pauses(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.times)]


def in_turn(*answers: str | Exception) -> Scripted:
    rest = list(answers)
    return Scripted(lambda request: rest.pop(0))
