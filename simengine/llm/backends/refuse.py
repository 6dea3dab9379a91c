"""The refusing backend: under a journal it is replay, where a call that the journal does not hold is an error."""

from __future__ import annotations

from simengine.errors import ReplayMiss
from simengine.llm.request import Completion, Request


class Refuse:
    """Answers nothing: every call raises :class:`ReplayMiss`."""

    async def complete(self, request: Request) -> Completion:
        """Raise :class:`ReplayMiss` with the call, the task and the key that was looked for."""
        raise ReplayMiss(
            "the journal holds no answer for this call, and a replay asks no model",
            call=request.call or None,
            task=request.task,
            key=request.key(),
            remedy="the run asks something else than it did when it was recorded: compare scenario, prompts and data",
        )
