"""The batching layer: requests that a model can answer together wait a moment for one another and go as one."""

from __future__ import annotations

import asyncio
import copy
from typing import TypeAlias

import structlog

from simengine.errors import CallFailed
from simengine.llm.layers.packing import PackingModel
from simengine.llm.request import Completion, Request, Sampling
from simengine.llm.settings import BatchSettings
from simengine.llm.transient import headline

log = structlog.get_logger("simengine")

_Kind: TypeAlias = tuple[str, str, Sampling]


class _Pack:
    """Requests that wait to go together, each with those who wait for its answer, and the clock that ends the wait."""

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.timer = timer
        self.members: list[tuple[Request, asyncio.Future[Completion]]] = []
        self.task: asyncio.Task[None] | None = None


class Batch:
    """Packs requests of one task, model and sampling, as far as the next model can take them together.

    A pack goes out when it has ``size`` members, when its first has lingered for ``linger`` seconds, or at
    :meth:`flush`. It is a task that belongs to nobody who waits: a caller that is cancelled leaves it to the rest, and
    it is cancelled with the last of them. What is wrong with one member may fail a whole pack, so the members of a
    pack that ends in :class:`CallFailed` are asked again one by one.
    """

    def __init__(self, following: PackingModel, settings: BatchSettings) -> None:
        self._following = following
        self._settings = settings
        self._open: dict[_Kind, _Pack] = {}
        self._under_way: set[_Pack] = set()

    async def complete(self, request: Request) -> Completion:
        """The next model's completion, asked for alone or among others."""
        if self._settings.size == 1 or not self._following.packs(request):
            return await self._following.complete(request)
        pack, answer = self._join(request)
        try:
            return await answer
        except asyncio.CancelledError:
            self._abandon(pack)
            raise

    def flush(self) -> None:
        """Send what lingers: nothing that could join it will come before something is answered."""
        for kind in list(self._open):
            self._send(kind)

    async def aclose(self) -> None:
        """Cancel what lingers or is under way, and see it ended."""
        packs = [*self._open.values(), *self._under_way]
        self._open.clear()
        for pack in packs:
            pack.timer.cancel()
            for _, answer in pack.members:
                answer.cancel()
            if pack.task is not None:
                pack.task.cancel()
        await asyncio.gather(*(pack.task for pack in packs if pack.task is not None), return_exceptions=True)

    def _join(self, request: Request) -> tuple[_Pack, asyncio.Future[Completion]]:
        loop = asyncio.get_running_loop()
        kind = (request.task, request.model, request.sampling)
        if kind not in self._open:
            self._open[kind] = _Pack(loop.call_later(self._settings.linger, self._send, kind))
        pack = self._open[kind]
        answer: asyncio.Future[Completion] = loop.create_future()
        pack.members.append((request, answer))
        if len(pack.members) >= self._settings.size:
            self._send(kind)
        return pack, answer

    def _send(self, kind: _Kind) -> None:
        pack = self._open.pop(kind)
        pack.timer.cancel()
        pack.members = [(request, answer) for request, answer in pack.members if not answer.done()]
        if pack.members:
            self._under_way.add(pack)
            pack.task = asyncio.ensure_future(self._answer(pack))
            pack.task.add_done_callback(lambda _: self._under_way.discard(pack))

    def _abandon(self, pack: _Pack) -> None:
        if pack.task is not None and all(answer.done() for _, answer in pack.members):
            pack.task.cancel()

    async def _answer(self, pack: _Pack) -> None:
        """Bring each member its answer or its error."""
        try:
            answers = await self._following.complete_many(tuple(request for request, _ in pack.members))
        except Exception as fault:
            if isinstance(fault, CallFailed) and len(pack.members) > 1:
                first = pack.members[0][0]
                told = {"call": first.call, "task": first.task, "reason": fault.reason}
                log.info("pack taken apart", **told, members=len(pack.members), problem=headline(fault.problem))
                await asyncio.gather(*(self._answer_alone(*member) for member in pack.members))
                return
            for _, answer in pack.members:
                _fail(answer, fault)
        else:
            for (_, answer), completion in zip(pack.members, answers, strict=True):
                _give(answer, completion)

    async def _answer_alone(self, request: Request, answer: asyncio.Future[Completion]) -> None:
        try:
            _give(answer, await self._following.complete(request))
        except Exception as fault:
            _fail(answer, fault)


def _give(answer: asyncio.Future[Completion], completion: Completion) -> None:
    if not answer.done():
        answer.set_result(completion)


def _fail(answer: asyncio.Future[Completion], fault: Exception) -> None:
    """Give a member an error of its own: one that is raised in several places gathers the tracebacks of all."""
    if not answer.done():
        answer.set_exception(copy.copy(fault))
