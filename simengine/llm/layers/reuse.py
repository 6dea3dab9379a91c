"""The reusing layer: answers to deterministic calls that earlier runs have paid for, from their journals."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from simengine.llm.calls import CallStore
from simengine.llm.request import Completion, LanguageModel, Request


class Reuse:
    """Answers a deterministic request with the completion that another run's journal holds; asks for all others.

    What is reused took no attempt here, and says so (``attempts`` 0). Errors are never reused: to try again is the
    point of a new run. Nor is a draw at a temperature above 0, which belongs to the call that drew it.
    """

    def __init__(self, stores: Sequence[CallStore], following: LanguageModel) -> None:
        self._stores = stores
        self._following = following

    async def complete(self, request: Request) -> Completion:
        """The first completion found, in the order of the stores; else the next model's."""
        if request.sampling.deterministic:
            key = request.key()
            for store in self._stores:
                if isinstance(found := store.get(key), Completion):
                    return msgspec.structs.replace(found, attempts=0)
        return await self._following.complete(request)
