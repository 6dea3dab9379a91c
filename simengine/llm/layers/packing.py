"""The seam for models that answer several requests in one attempt, and which requests those are."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from simengine.llm.request import Completion, Request


@runtime_checkable
class PackingModel(Protocol):
    """A language model one attempt of which may answer several requests."""

    async def complete(self, request: Request) -> Completion: ...

    def packs(self, request: Request) -> bool:
        """Whether this request may share an attempt with others of its task, model and sampling."""
        ...

    async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
        """One completion for each request, in their order. Raises for all of them like ``complete``."""
        ...
