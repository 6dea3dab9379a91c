"""The scripted backend: answers come from a function, for tests and for rules of one's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from simengine.llm.request import Completion, Request

Answer = str | Completion | Exception


class Scripted:
    """Answers with what ``fn(request)`` gives: a text, a completion, an error to raise, or an awaitable of these."""

    def __init__(self, fn: Callable[[Request], Answer | Awaitable[Answer]]) -> None:
        self._fn = fn
        self.calls = 0

    async def complete(self, request: Request) -> Completion:
        """The function's answer as a completion; raises the error it gives."""
        self.calls += 1
        given = self._fn(request)
        answer = await given if isawaitable(given) else given
        if isinstance(answer, Exception):
            raise answer
        return Completion(text=answer) if isinstance(answer, str) else answer
