"""Models and pauses that the tests of the layers hold in their hand."""

from __future__ import annotations

import asyncio

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


class Sleeper:
    """Pauses that take no time and are kept."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)


def in_turn(*answers: str | Exception) -> Scripted:
    rest = list(answers)
    return Scripted(lambda request: rest.pop(0))
