"""What becomes of requests that are answered offline: from a file, through one batch or more, to their outcomes."""

from __future__ import annotations

import asyncio
import copy
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import structlog

from simengine.errors import CallFailed, RunStopped
from simengine.llm.calls import CallStore
from simengine.llm.layers.filing import BatchState, Line, OfflineModel
from simengine.llm.layers.retry import pause_after
from simengine.llm.request import Completion, Request
from simengine.llm.settings import LLMSettings
from simengine.llm.transient import Transient, headline

T = TypeVar("T")

log = structlog.get_logger("simengine")

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""What OpenAI allows in the file of one batch."""

ROUNDS = 3
"""How many batches a request goes into before it ends as :class:`CallFailed`, refusals that teach something aside."""

_FIRST_LOOK = 1.0  # seconds between the first two looks at a batch
_GROWTH = 1.5  # of each pause between looks over the one before


class Member:
    """A request with the one who waits for its answer, and where it is: in ``batch``, after so many ``rounds``."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.key = request.key()
        self.answer: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self.batch: str | None = None
        self.sent = ""
        self.version = 0
        self.rounds = 0

    def give(self, completion: Completion) -> None:
        """Answer the request."""
        if not self.answer.done():
            self.answer.set_result(msgspec.structs.replace(completion, attempts=self.rounds))

    def fail(self, fault: Exception) -> None:
        """End it with an error of its own: one that is raised in several places gathers the tracebacks of all."""
        if not self.answer.done():
            self.answer.set_exception(copy.copy(fault))


class _Pack:
    """The members of one batch and the lines of its file. All are for one part of the protocol and one model."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.members: list[Member] = []
        self.lines = bytearray()

    def takes(self, line: bytes) -> bool:
        return len(self.members) < MOST_REQUESTS and len(self.lines) + len(line) <= MOST_BYTES

    def add(self, member: Member, line: bytes) -> None:
        self.members.append(member)
        self.lines += line


class Errand:
    """Brings each of its members an answer or an error, over as many batches as that takes.

    A member whose key was submitted before, by this process or an earlier one, is looked for in that batch and not
    submitted again. What a batch leaves unanswered for a passing reason goes into another, up to :data:`ROUNDS`; what
    was refused but taught something about the server goes again in any case. Each batch has a label, which is written
    down before the batch is created: so it is found again even if the process dies before it is told the batch's id.

    Events: ``batch submitted``, ``batch attached``, ``batch state`` at each change, ``batch downloaded``, ``batch
    resubmitted``; ``retry`` for a request to the server that failed; ``batch unknown``.
    """

    def __init__(self, model: OfflineModel, store: CallStore, settings: LLMSettings) -> None:
        self._model = model
        self._service = model.batches
        self._store = store
        self._settings = settings

    async def run(self, members: Sequence[Member]) -> None:
        """See all members answered. Raises nothing: what goes wrong is theirs."""
        await self._guard(partial(self._sort, members), members)

    async def _sort(self, members: Sequence[Member]) -> None:
        new: list[Member] = []
        known: dict[tuple[str, str | None], list[Member]] = {}
        for member in members:
            place = self._store.submitted(member.key)
            if place is None:
                new.append(member)
            else:
                member.sent, member.rounds = place.sent, 1
                known.setdefault((place.label, place.batch), []).append(member)
        attached = [self._guard(partial(self._attach, *place, group), group) for place, group in known.items()]
        await asyncio.gather(self._submit(new), *attached)

    async def _guard(self, work: Callable[[], Awaitable[None]], members: Sequence[Member]) -> None:
        try:
            await work()
        except Exception as fault:
            for member in members:
                member.fail(fault)

    async def _submit(self, members: Sequence[Member]) -> None:
        await asyncio.gather(*(self._guard(partial(self._send, pack), pack.members) for pack in self._packed(members)))

    def _packed(self, members: Sequence[Member]) -> Iterator[_Pack]:
        """The members as files, in their order, each within the bounds."""
        filling: dict[tuple[str, str], _Pack] = {}
        for member in members:
            written = self._model.write(member.request)
            member.sent, member.version = written.sent, written.version
            member.rounds += 1
            line = {"custom_id": member.key, "method": "POST", "url": f"/v1/{written.path}", "body": written.body}
            text, kind = msgspec.json.encode(line) + b"\n", (written.path, member.request.model)
            if kind in filling and not filling[kind].takes(text):
                yield filling.pop(kind)
            filling.setdefault(kind, _Pack(written.path)).add(member, text)
        yield from filling.values()

    async def _send(self, pack: _Pack) -> None:
        """Create a batch and see it through."""
        label = uuid.uuid4().hex
        self._store.submit(label, {member.key: member.sent for member in pack.members})
        file = await self._insist(lambda: self._service.upload(bytes(pack.lines)))
        state = await self._insist(lambda: self._create(pack.path, file, label))
        log.info("batch submitted", batch=state.id, requests=len(pack.members), bytes=len(pack.lines))
        pack.lines.clear()
        self._store.name_batch(label, state.id)
        await self._collect(state.id, pack.members)

    async def _create(self, path: str, file: str, label: str) -> BatchState:
        """The batch that an attempt before this one created although its reply was lost, or else a new one."""
        return await self._service.find(label) or await self._service.create(path, file, label)

    async def _attach(self, label: str, batch: str | None, members: Sequence[Member]) -> None:
        """See a batch through that was submitted before, perhaps by a process that died in that moment."""
        if batch is None:
            found = await self._insist(lambda: self._service.find(label))
            if found is None:
                for member in members:
                    member.rounds = 0
                await self._submit(members)
                return
            batch = found.id
            self._store.name_batch(label, batch)
        log.info("batch attached", batch=batch, requests=len(members))
        await self._collect(batch, members)

    async def _collect(self, batch: str, members: Sequence[Member]) -> None:
        """Wait for a batch to end, hand out what it brought, and submit the rest again."""
        for member in members:
            member.batch = batch
        state = await self._watch(batch)
        if state is not None and state.status == "failed":
            self._store.withdraw_batch(batch)
            raise RunStopped(
                f"the server found fault with a batch as a whole: {state.problem or 'it does not say why'}",
                batch=batch,
                remedy="see to that (for a limit on queued tokens: wait until other batches are done), then resume the "
                "run, which submits it again; or take `mode: offline` out of llm.roles",
            )
        lines: dict[str, Line] = {}
        for file in () if state is None else state.files:
            lines |= await self._insist(partial(self._service.download, file))
        reasons: Counter[str] = Counter()
        again = self._hand_out(members, lines, reasons)
        log.info("batch downloaded", batch=batch, requests=len(members), again=len(again))
        if again:
            log.warning("batch resubmitted", batch=batch, requests=len(again), reasons=dict(sorted(reasons.items())))
            await self._submit(again)

    def _hand_out(self, members: Sequence[Member], lines: dict[str, Line], reasons: Counter[str]) -> list[Member]:
        """Give members what the lines hold for them; the others, to be submitted again, and their reasons counted."""
        again: list[Member] = []
        stopped: list[Member] = []
        stop: RunStopped | None = None
        for member in members:
            try:
                line = lines.get(member.key)
                member.give(self._model.read(member.request, member.sent, member.version, line))
            except Transient as fault:
                if fault.free or member.rounds < ROUNDS:
                    reasons[fault.reason] += 1
                    again.append(member)
                else:
                    member.fail(_given_up(fault))
            except CallFailed as failed:
                failed.where["attempts"] = member.rounds
                member.fail(failed)
            except RunStopped as reason:
                stop = stop or reason
                stopped.append(member)
        if stop is None:
            return again
        # A resumed run would only find the same in the same place.
        self._store.withdraw(member.key for member in stopped)
        raise stop

    async def _watch(self, batch: str) -> BatchState | None:
        """The batch once it has ended; ``None`` where the server does not know it."""
        poll, seen = self._settings.offline.poll, ""
        pause = min(_FIRST_LOOK, poll)
        while True:
            state = await self._insist(lambda: self._service.look(batch))
            if state is None:
                log.warning("batch unknown", batch=batch, instead="its requests are submitted again")
                return None
            if state.status != seen:
                seen = state.status
                log.info("batch state", batch=batch, status=seen, completed=state.completed, failed=state.failed)
            if state.ended:
                return state
            await asyncio.sleep(pause)
            pause = min(pause * _GROWTH, poll)

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The server's reply, asked for until the retry budget is lost to failed attempts in a row."""
        spent, failures, budget = 0.0, 0, self._settings.retry.budget
        while True:
            try:
                return await ask()
            except Transient as fault:
                if fault.free:
                    continue
                failures += 1
                pause = pause_after(failures, fault.retry_after, random.Random(failures))
                spent += fault.elapsed + pause
                if spent > budget:
                    raise RunStopped(
                        f"no use of the Batch API within the retry budget of {budget:g} s: {fault.problem}",
                        remedy="see whether the server is well, then resume the run: what was submitted is collected",
                    ) from None
                log.info("retry", reason=fault.reason, seconds=round(pause, 3), problem=headline(fault.problem))
            await asyncio.sleep(pause)


def _given_up(fault: Transient) -> CallFailed:
    return CallFailed(
        f"no answer in {ROUNDS} batches; the last: {fault.problem}",
        reason=fault.reason,
        remedy="see whether the server keeps pace with its batches",
        attempts=ROUNDS,
    )
