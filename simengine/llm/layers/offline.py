"""The offline layer: requests of some tasks gather until no more can come, and go through the server's Batch API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from simengine.errors import RunStopped
from simengine.llm.calls import CallStore
from simengine.llm.layers.errand import MOST_REQUESTS, Errand, Member
from simengine.llm.layers.filing import OfflineModel
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.settings import LLMSettings

log = structlog.get_logger("simengine")

_TURNS = 8  # of the event loop: more than an answer needs from the outermost layer to the one who asked
_LOOK = 0.02  # seconds between two looks at whether all that is under way waits for batches


class Offline:
    """Asks for tasks of ``mode: offline`` by batches of ``backend``, and the next model for all others.

    What gathers goes out when :meth:`flush` has said that no more will come before something is answered, and nothing
    is under way elsewhere whose answer could bring more (``unsettled`` counts the calls that are under way at all, less
    those that can only wait for others); or when it fills a file. A backend that is no :class:`OfflineModel` (the
    embedded rules, for one) is asked online, which is said once.

    A batch belongs to nobody who waits. It is written down in the store; what becomes of it is
    :class:`~simengine.llm.layers.errand.Errand`'s business. When the run stops, batches go on at the server, and a
    resumed run finds its calls in them.
    """

    def __init__(
        self,
        following: LanguageModel,
        backend: LanguageModel,
        store: CallStore,
        settings: LLMSettings,
        unsettled: Callable[[], int],
    ) -> None:
        self._following = following
        self._settings = settings
        self._unsettled = unsettled
        offline = [task for task in settings.roles if settings.is_offline(task)]
        self._errand = Errand(backend, store, settings) if offline and isinstance(backend, OfflineModel) else None
        if offline and self._errand is None:
            log.info("asked online", tasks=offline, reason="this backend has no batches")
        self._gathered: list[Member] = []
        self._out: dict[asyncio.Task[None], Sequence[Member]] = {}
        self._waiting = 0
        self._turns = 0
        self._counting: asyncio.Handle | None = None
        self._closed = False

    async def complete(self, request: Request) -> Completion:
        """The completion, from a batch or from the next model."""
        if self._errand is None or not self._settings.is_offline(request.task):
            return await self._following.complete(request)
        if self._closed:
            raise _unsent()
        member = Member(request)
        self._gathered.append(member)
        if len(self._gathered) >= MOST_REQUESTS:
            self._send(self._errand)
        self._waiting += 1
        try:
            return await member.answer
        finally:
            self._waiting -= 1

    def flush(self) -> None:
        """No call will come before something is answered, but for those that are on their way to this layer."""
        if self._errand is not None and not self._closed:
            self.hold()
            self._count(self._errand)

    def hold(self) -> None:
        """Something was answered: whoever asked may have more to ask, and will flush again."""
        if self._counting is not None:
            self._counting.cancel()
            self._counting = None
        self._turns = 0

    def close(self) -> None:
        """End all that wait: the run stops. What was submitted goes on at the server."""
        self._closed = True
        self.hold()
        for member in self._gathered:
            member.fail(_unsent())
        self._gathered.clear()
        waiting = [member for members in self._out.values() for member in members if not member.answer.done()]
        for member in waiting:
            member.fail(_unsent() if member.batch is None else _left(member.batch))
        batches = list(dict.fromkeys(member.batch for member in waiting if member.batch is not None))
        if batches:
            log.warning("batches left at the server", batches=batches)
        for task in self._out:
            task.cancel()

    async def aclose(self) -> None:
        """End all that wait, and see it ended."""
        self.close()
        await asyncio.gather(*self._out, return_exceptions=True)

    def _count(self, errand: Errand) -> None:
        """Send what has gathered once all that is under way has waited here for some turns of the loop on end."""
        loop = asyncio.get_running_loop()
        if self._unsettled() > self._waiting:
            self._turns = 0
            self._counting = loop.call_later(_LOOK, self._count, errand)
        elif self._turns < _TURNS:
            self._turns += 1
            self._counting = loop.call_soon(self._count, errand)
        else:
            self.hold()
            self._send(errand)

    def _send(self, errand: Errand) -> None:
        members = [member for member in self._gathered if not member.answer.done()]
        self._gathered.clear()
        if members:
            task = asyncio.ensure_future(errand.run(members))
            self._out[task] = members
            task.add_done_callback(lambda task: self._out.pop(task))


def _unsent() -> RunStopped:
    return RunStopped("the run stops, so this call is not submitted", remedy="resume the run to submit it")


def _left(batch: str) -> RunStopped:
    return RunStopped(
        "the run stops before a batch has ended",
        batch=batch,
        remedy="the batch goes on at the server: resume the run to collect its answers, which are not paid for twice",
    )
