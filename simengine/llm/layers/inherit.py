"""The inheriting layer: what a run that is forked from another has of that one's journal, it does not pay for again."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from simengine.errors import CallFailed
from simengine.llm.calls import CallStore
from simengine.llm.request import Completion, LanguageModel, Request


class Parent(NamedTuple):
    """The journal of the run that this one was forked from; ``retry_failed``: what failed there is asked anew."""

    journal: CallStore
    retry_failed: bool = False


class Inherit:
    """Answers a request with the outcome that the parent's journal holds for it; asks for all others.

    Draws at a temperature above 0 are found as well, since their key names the call that drew them. Errors are
    outcomes too and come again, unless the parent says otherwise. What is inherited took no attempt here, and says so
    (``attempts`` 0).
    """

    def __init__(self, parent: Parent, following: LanguageModel) -> None:
        self._parent = parent
        self._following = following

    async def complete(self, request: Request) -> Completion:
        """The parent's outcome, or the next model's."""
        outcome = self._parent.journal.get(request.key())
        if isinstance(outcome, Completion):
            return msgspec.structs.replace(outcome, attempts=0)
        if outcome is None or self._parent.retry_failed:
            return await self._following.complete(request)
        error = outcome.error()
        raise CallFailed(error.problem, reason=error.reason, remedy=error.remedy, **{**error.where, "attempts": 0})
