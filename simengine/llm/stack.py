"""The layers in their order, in one expression: what the rest of the house holds as its language model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType

import msgspec

from simengine.llm.backends.delay import Delay
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.openai import OpenAI
from simengine.llm.backends.refuse import Refuse
from simengine.llm.calls import CallStore
from simengine.llm.layers.coalesce import Coalesce
from simengine.llm.layers.journal import Journal
from simengine.llm.layers.limit import Limit
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.settings import LLMSettings


class Stats(msgspec.Struct, frozen=True):
    """What a stack has done so far.

    ``asked`` calls went to the backend, in ``attempts`` attempts, and ended in ``completed`` answers and ``failed``
    terminal errors by reason. ``journal`` calls were answered from the journal and ``shared`` by an equal call under
    way. Now ``in_flight`` attempts are under way (``greatest``: the most there ever were) and ``waiting`` ones queue.
    The token sums are of what the server reported; ``unmetered`` answers came without a report.
    """

    asked: int
    attempts: int
    completed: int
    failed: dict[str, int]
    journal: int
    shared: int
    in_flight: int
    greatest: int
    waiting: int
    prompt_tokens: int
    completion_tokens: int
    unmetered: int


class Stack:
    """A backend under its layers: an async context manager that closes the backend, but not the store."""

    def __init__(self, settings: LLMSettings, store: CallStore, backend: LanguageModel) -> None:
        self._backend = backend
        # The permit is taken for each attempt: nothing that sleeps or writes holds one. Coalescing is outermost, so
        # that a call under way includes the writing of its outcome: an equal request never falls between the two,
        # and an answer that comes in the moment its caller is cancelled is still written down.
        self._model = Coalesce(
            journal := Journal(
                store, Retry(limit := Limit(backend, settings.limits.concurrency), settings.retry.budget)
            )
        )
        self._journal = journal
        self._limit = limit

    async def complete(self, request: Request) -> Completion:
        """Ask through all layers; see :class:`~simengine.llm.request.LanguageModel`."""
        return await self._model.complete(request)

    def stop_sending(self) -> None:
        """Let calls that were sent come home, and send no others."""
        self._limit.close()

    def stats(self) -> Stats:
        """A snapshot of all counters."""
        journal, limit = self._journal, self._limit
        return Stats(
            asked=journal.asked,
            attempts=limit.started,
            completed=journal.completed,
            failed=dict(sorted(journal.failed.items())),
            journal=journal.answered,
            shared=self._model.shared,
            in_flight=limit.in_flight,
            greatest=limit.greatest,
            waiting=limit.waiting,
            prompt_tokens=journal.prompt_tokens,
            completion_tokens=journal.completion_tokens,
            unmetered=journal.unmetered,
        )

    async def __aenter__(self) -> Stack:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        try:
            await self._model.aclose()
        finally:
            aclose = getattr(self._backend, "aclose", None)
            if aclose is not None:
                await aclose()


def build(
    settings: LLMSettings,
    store: CallStore,
    *,
    backend: LanguageModel | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Stack:
    """The model that the settings describe, over ``backend`` if one is given in place of theirs.

    Raises :class:`~simengine.errors.InputError` for an address, or a variable in address or key, that is no good.
    """
    chosen = backend if backend is not None else make_backend(settings, environ)
    return Stack(settings, store, chosen)


def replay(store: CallStore) -> Stack:
    """A model that answers from the journal alone; a miss is :class:`~simengine.errors.ReplayMiss`."""
    return Stack(LLMSettings(), store, Refuse())


def make_backend(settings: LLMSettings, environ: Mapping[str, str] = os.environ) -> LanguageModel:
    """The backend that the settings name; raises :class:`~simengine.errors.InputError` like :func:`build`."""
    model: LanguageModel = Lexical() if settings.backend == "lexical" else OpenAI(settings, environ)
    latency = settings.latency
    return model if latency is None else Delay(model, latency.median, latency.sigma, latency.seed)
