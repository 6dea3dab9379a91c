"""The layers in their order, in one expression: what the rest of the house holds as its language model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeAlias

import msgspec

from simengine.llm.backends.delay import Delay
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.openai import OpenAI
from simengine.llm.backends.reading import unpack
from simengine.llm.backends.refuse import Refuse
from simengine.llm.calls import CallStore
from simengine.llm.layers.batch import Batch
from simengine.llm.layers.budget import Budget, Spending
from simengine.llm.layers.coalesce import Coalesce
from simengine.llm.layers.inherit import Inherit, Parent
from simengine.llm.layers.journal import Journal
from simengine.llm.layers.limit import Limit, Rates
from simengine.llm.layers.local import Local, Tool
from simengine.llm.layers.offline import Offline
from simengine.llm.layers.retry import Retry
from simengine.llm.layers.reuse import Reuse
from simengine.llm.request import Completion, LanguageModel, Message, Request, Sampling
from simengine.llm.settings import LLMSettings
from simengine.llm.tokens import EMBED, Estimator


class Stats(msgspec.Struct, frozen=True):
    """What a stack has done so far.

    ``asked`` calls went to the backend, in ``attempts`` attempts, and ended in ``completed`` answers and ``failed``
    terminal errors by reason. ``journal`` calls were answered from the journal, ``reused`` ones from those of other
    runs, and ``shared`` by an equal call under way. Now ``in_flight`` attempts are under way (``greatest``: the most
    there ever were), ``waiting`` ones queue, and ``pausing`` ones failed and will be sent again. The token sums are of
    what the server reported; ``unmetered`` answers came without a report. ``refused`` attempts met a limit of the
    server (status 429), ``resent`` ones were sent again at once, outside the retry budget; ``cut`` answers are to a
    prompt that the server must have cut. ``spending`` is that of the whole run, the journal's calls included, and
    ``rates`` is how fast it goes now, beside the known limits.
    """

    asked: int
    attempts: int
    completed: int
    failed: dict[str, int]
    journal: int
    reused: int
    shared: int
    in_flight: int
    greatest: int
    waiting: int
    prompt_tokens: int
    completion_tokens: int
    unmetered: int
    refused: int
    resent: int
    cut: int
    spending: Spending
    rates: Rates
    pausing: int = 0


Tools: TypeAlias = Callable[["Stack"], Mapping[str, Tool]]


def _no_tools(_: Stack) -> Mapping[str, Tool]:
    return {}


class Stack:
    """A backend under its layers: an async context manager that closes the backend, but not the store."""

    def __init__(
        self,
        settings: LLMSettings,
        store: CallStore,
        backend: LanguageModel,
        reuse: Sequence[CallStore] = (),
        tools: Tools = _no_tools,
        parent: Parent | None = None,
    ) -> None:
        self._backend = backend
        estimator = Estimator()
        # The permit is taken for each attempt: nothing that sleeps, lingers or writes holds one. Coalescing is
        # outermost, so that a call under way includes the writing of its outcome: an equal request never falls between
        # the two, and an answer that comes in the moment its caller is cancelled is still written down.
        self._limit = Limit(backend, settings.limits, longest=settings.retry.max_wait, estimator=estimator)
        self._batch = Batch(self._limit, settings.batch)
        self._retry = Retry(self._batch, settings.retry)
        # Beside the way by single attempts, under the budget, stands that by batches: a task goes either.
        self._offline = Offline(self._retry, backend, store, settings, self._unsettled)
        self._budget = Budget(self._offline, settings.budget, settings.prices, estimator, store)
        local = Local(tools(self), Reuse(reuse, self._budget))
        self._journal = Journal(store, local if parent is None else Inherit(parent, local))
        self._model = Coalesce(self._journal)

    async def complete(self, request: Request) -> Completion:
        """Ask through all layers; see :class:`~simengine.llm.request.LanguageModel`."""
        try:
            return await self._model.complete(request)
        finally:
            self._offline.hold()

    async def embed(self, texts: Sequence[str], model: str) -> list[tuple[float, ...]]:
        """The embeddings of texts, in their order: calls like any other, each in the journal under its text."""
        requests = [Request(EMBED, model, (Message("user", text),), Sampling(temperature=0.0)) for text in texts]
        answers = await asyncio.gather(*(self.complete(request) for request in requests))
        return [unpack(answer.text) for answer in answers]

    def flush(self) -> None:
        """Send what lingers for company: the caller knows that none will come before something is answered.

        Calls of tasks in ``mode: offline`` are sent by nothing else.
        """
        self._batch.flush()
        self._offline.flush()

    def _unsettled(self) -> int:
        """How many calls are under way, but for those that wait for what others will have cost."""
        return self._model.under_way - self._budget.waiting

    def stop_sending(self) -> None:
        """Let calls that were sent come home, and send no others. Batches that were submitted are not waited for."""
        self._limit.close()
        self._batch.flush()
        self._offline.close()

    def stats(self) -> Stats:
        """A snapshot of all counters."""
        journal, limit = self._journal, self._limit
        return Stats(
            asked=journal.asked,
            attempts=limit.started,
            completed=journal.completed,
            failed=dict(sorted(journal.failed.items())),
            journal=journal.answered,
            reused=journal.reused,
            shared=self._model.shared,
            in_flight=limit.in_flight,
            greatest=limit.greatest,
            waiting=limit.waiting,
            prompt_tokens=journal.prompt_tokens,
            completion_tokens=journal.completion_tokens,
            unmetered=journal.unmetered,
            refused=limit.refused,
            resent=self._retry.resent,
            cut=journal.cut,
            spending=self._budget.spent,
            rates=limit.rates(),
            pausing=self._retry.pausing,
        )

    async def __aenter__(self) -> Stack:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        try:
            await self._model.aclose()
            await self._batch.aclose()
            await self._offline.aclose()
        finally:
            aclose = getattr(self._backend, "aclose", None)
            if aclose is not None:
                await aclose()


def build(
    settings: LLMSettings,
    store: CallStore,
    *,
    backend: LanguageModel | None = None,
    reuse: Sequence[CallStore] = (),
    tools: Tools = _no_tools,
    parent: Parent | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Stack:
    """The model that the settings describe, over ``backend`` if one is given in place of theirs.

    ``reuse`` are journals of other runs, whose completions serve deterministic calls. ``tools(stack)`` are what local
    computations are done by; see :mod:`simengine.llm.layers.local`. ``parent`` is the journal of the run that this one
    is forked from.

    Raises :class:`~simengine.errors.InputError` for an address, or a variable in address or key, that is no good.
    """
    chosen = backend if backend is not None else make_backend(settings, environ)
    return Stack(settings, store, chosen, reuse, tools, parent)


def replay(store: CallStore) -> Stack:
    """A model that answers from the journal alone; a miss is :class:`~simengine.errors.ReplayMiss`."""
    return Stack(LLMSettings(), store, Refuse())


def make_backend(settings: LLMSettings, environ: Mapping[str, str] = os.environ) -> LanguageModel:
    """The backend that the settings name; raises :class:`~simengine.errors.InputError` like :func:`build`."""
    model: LanguageModel = Lexical() if settings.backend == "lexical" else OpenAI(settings, environ)
    latency = settings.latency
    return model if latency is None else Delay(model, latency.median, latency.sigma, latency.seed)
