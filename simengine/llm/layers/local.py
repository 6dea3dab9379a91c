"""The local layer: computations that steer prompts, done here and recorded as calls are, so that a replay needs none.

Which text is nearest, how tastes cluster, what a trained ranker scores: the last digits differ between machines and
versions of libraries. So such a computation is a request like any other, under a model named ``local:...``, whose
answer goes into the journal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from simengine.llm.request import Completion, LanguageModel, Request

LOCAL = "local:"
"""How the model of a request begins that no server is asked for."""

Tool: TypeAlias = Callable[[Request], Awaitable[str]]


class Local:
    """Answers a request for a local model by the tool of its task, with no attempt counted; asks for all others."""

    def __init__(self, tools: Mapping[str, Tool], following: LanguageModel) -> None:
        self._tools = tools
        self._following = following

    async def complete(self, request: Request) -> Completion:
        """What the tool answers, or the next model's completion."""
        tool = self._tools.get(request.task) if request.model.startswith(LOCAL) else None
        if tool is None:
            return await self._following.complete(request)
        return Completion(text=await tool(request), model=request.model, attempts=0)
