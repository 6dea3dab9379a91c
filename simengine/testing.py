"""Contracts that every method and every backend keeps, as base classes: inherit one in a test, and pytest runs it.

They need no plugin: each test is a plain function that runs an event loop of its own. What a contract finds wrong it
says in the message of its ``AssertionError``.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from simengine import llm
from simengine.errors import CallFailed, RunStopped
from simengine.kernel import Committed
from simengine.llm import CallStore, Completion, LanguageModel, Message, Request, Sampling
from simengine.llm.backends.delay import Delay
from simengine.llm.backends.scripted import Scripted
from simengine.llm.transient import Transient
from simengine.runlog import EventLine, Reader
from simengine.scenario import Finished, Scenario, Setup, read, replay, resume, run
from simengine.scenario.drive import drive
from simengine.scenario.tools import tools_of

T = TypeVar("T")

GARBAGE = ("", "???", "I'm sorry, but I can't help with that.", '{"answer": null}', "lorem ipsum " * 200)
"""Replies that hold no answer to anything."""

_TURNS = (0, 1, 2, 10, 100)  # how many turns of the loop a call has had when it is cancelled
_VERSION = re.compile(r"([^#]+)/[^/#]+@\d+")


class MethodContract:
    """What a method keeps, whatever it does. Say ``scenario`` (a YAML file, or its text) and inherit.

    Take a scenario that is small (a few dozen events) and in which users meet at items, so that events wait for one
    another. Override ``model`` where the scenario's own backend is not to be asked.
    """

    scenario: Path | str
    _undisturbed: ClassVar[dict[Path | str, Finished]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._undisturbed = {}  # of this class alone: a class derived from it may ask another model

    def model(self) -> LanguageModel:
        """The model to ask; it must answer alike whenever it is asked alike."""
        return llm.make_backend(self._read()[0].llm)

    def test_it_runs_to_the_end(self, tmp_path: Path) -> None:
        """Every event is committed, and with this model no unit fails."""
        finished = self._whole(tmp_path)
        assert finished.report.events > 0, "the scenario has no events"
        assert not finished.report.failures, f"units failed: {finished.report.failures}"

    def test_it_replays_identically(self, tmp_path: Path) -> None:
        """Executed again from its journal, it does the same without asking a model."""
        finished = self._whole(tmp_path)
        assert _wait(replay(finished.path)).hash == finished.report.hash

    def test_it_resumes_from_any_cut(self, tmp_path: Path) -> None:
        """Cut behind its header, in the middle of a line or before its end, the log grows to the same bytes again."""
        whole = self._whole(tmp_path).path
        log = (whole / "events.jsonl").read_bytes()
        lines = log.splitlines(keepends=True)
        ends = [sum(map(len, lines[:count])) for count in (2, len(lines) // 2, len(lines) - 1)]
        for number, size in enumerate([*ends, ends[1] + len(lines[len(lines) // 2]) // 2]):
            cut = tmp_path / f"cut-{number}"
            shutil.copytree(whole, cut)
            (cut / "report.json").unlink()
            (cut / "events.jsonl").write_bytes(log[:size])
            _wait(resume(cut, backend=Scripted(_not_asked)))
            found = (cut / "events.jsonl").read_bytes()
            assert found == log, f"resumed from byte {size}, the log is another: the method keeps state of its own"

    def test_latencies_and_concurrency_change_nothing(self, tmp_path: Path) -> None:
        """Answers come in another order, and one at a time; the log stays the same."""
        hashes = {self._whole(tmp_path).report.hash}
        for number, concurrency in enumerate((1, 16)):
            slow = Delay(self.model(), median=0.002, sigma=1.5, seed=number)
            finished = self._run(tmp_path / f"run-{number}", slow, f"llm.limits.concurrency={concurrency}")
            hashes.add(finished.report.hash)
        assert len(hashes) == 1, "the log depends on latencies: the method keeps state outside memories and messages"

    def test_it_keeps_to_its_footprints(self, tmp_path: Path) -> None:
        """No event writes an agent, or goes by a memory version, that its footprint does not name."""
        witness = _Witness()
        setup = Setup.of(self._read()[0])
        with CallStore(tmp_path / "calls.sqlite") as store:
            stack = llm.build(setup.scenario.llm, store, backend=self.model(), tools=tools_of(setup))
            _wait(drive(setup, stack, witness))
        assert not witness.strayed, f"outside the footprint: {', '.join(witness.strayed[:5])}"

    def test_garbage_crashes_nothing_and_changes_no_memory(self, tmp_path: Path) -> None:
        """A model that never gives a readable answer costs every choice and leaves every memory as it was."""
        for number, garbage in enumerate(GARBAGE):
            finished = self._run(tmp_path / f"run-{number}", _says(garbage))
            assert finished.report.failures, f"{garbage[:40]!r} was taken for an answer: no unit failed"
            changed = [version.ref for line in _lines(finished) for version in line.memories]
            assert not changed, f"{garbage[:40]!r} changed memories: {changed[:5]}"

    def test_garbage_in_one_task_is_never_stored(self, tmp_path: Path) -> None:
        """While all other tasks are answered, unreadable answers to one of them get into no memory."""
        finished = self._whole(tmp_path)
        with CallStore(finished.path / "calls.sqlite", read_only=True) as store:
            tasks = sorted({row.request.task for row in store})
        for task in tasks:
            broken = self._run(tmp_path / task, _Broken(self.model(), task))
            kept = [version for line in _lines(broken) for version in line.memories]
            stored = [version.ref for version in kept if GARBAGE[1] in str(version.value)]
            assert not stored, f"an unreadable answer to {task} was stored: {stored[:5]}"

    def _read(self, *sets: str) -> tuple[Scenario, dict[str, Any]]:
        if isinstance(self.scenario, Path):
            return read(self.scenario, sets)
        return read("scenario", sets, self.scenario)

    def _whole(self, tmp_path: Path) -> Finished:
        """The undisturbed run, which no test may change: made by the first that needs it, beside that test's folder."""
        if self.scenario not in self._undisturbed:
            folder = Path(tempfile.mkdtemp(prefix="undisturbed-", dir=tmp_path.parent))
            self._undisturbed[self.scenario] = self._run(folder / "run")
        return self._undisturbed[self.scenario]

    def _run(self, out: Path, model: LanguageModel | None = None, *sets: str) -> Finished:
        scenario, data = self._read(*sets)
        return _wait(run(scenario, data, out=out, backend=model or self.model()))


class BackendContract(ABC):
    """What a backend keeps. Give ``backend`` and inherit; give ``request`` where it cannot answer the one here."""

    request = Request(
        task="choose",
        model="m",
        messages=(Message("user", 'Take "Kind of Blue" or "Nevermind".\nChosen album: <title>\nExplanation: <why>'),),
        sampling=Sampling(temperature=0.0),
        slots={"memory": "I like: jazz.", "options": ("jazz", "rock"), "titles": ("Kind of Blue", "Nevermind")},
        call="event#choose",
    )

    @abstractmethod
    def backend(self) -> AbstractContextManager[LanguageModel]:
        """The backend, with whatever it needs round it (a server, for instance)."""

    def test_it_answers(self) -> None:
        """A request has a completion with a text."""
        with self.backend() as model:
            completion = _wait(_closing(model, model.complete(self.request)))
        assert isinstance(completion, Completion), f"this is no completion: {completion!r}"
        assert completion.text, "the completion has no text"

    def test_an_odd_request_ends_in_an_answer_or_a_typed_error(self) -> None:
        """An unknown task, an empty prompt, a long one, signs of all kinds: no other error than the seam's own."""
        with self.backend() as model:
            for request in _odd(self.request):
                outcome = _wait(_closing(model, _outcome(model.complete(request))))
                typed = isinstance(outcome, Completion | CallFailed | RunStopped | Transient)
                assert typed, f"{request.task!r} ended in {type(outcome).__name__}: {outcome}"

    def test_many_calls_are_answered_side_by_side(self) -> None:
        """Calls that wait at one time do not get into one another's way."""

        async def ask(model: LanguageModel) -> Sequence[Completion]:
            return await asyncio.gather(*(model.complete(self.request) for _ in range(32)))

        with self.backend() as model:
            answers = _wait(_closing(model, ask(model)))
        assert all(isinstance(answer, Completion) and answer.text for answer in answers)

    def test_a_cancelled_call_leaves_nothing_behind(self) -> None:
        """Cancelled at any time, a call ends there, leaves no task, and the next one is answered."""

        async def cancel(model: LanguageModel, turns: int) -> None:
            call = asyncio.ensure_future(model.complete(self.request))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            outcome = await _outcome(call)
            ended = isinstance(outcome, asyncio.CancelledError | Completion)
            assert ended, f"cancelled after {turns} turns it ended in {outcome!r}"
            assert (await model.complete(self.request)).text, "after a cancelled call, the next had no answer"

        async def alone(model: LanguageModel, turns: int) -> None:
            await _closing(model, cancel(model, turns))
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert not left, f"tasks are left: {left}"

        with self.backend() as model:
            for turns in _TURNS:
                _wait(alone(model, turns))

    def test_it_is_used_again_in_another_loop(self) -> None:
        """After its loop has ended, the same object answers in a new one."""
        with self.backend() as model:
            first, second = (_wait(_closing(model, model.complete(self.request))) for _ in range(2))
        assert first.text
        assert second.text


class _Witness:
    """A sink that notes what events touch outside their footprints."""

    def __init__(self) -> None:
        self.strayed: list[str] = []

    def commit(self, record: Committed) -> None:
        """Look at one event."""
        footprint = {*record.event.writes, *record.event.reads}
        causes = [str(cause) for note in record.notes for cause in note.because]
        for version in record.versions:
            causes += map(str, version.because)
            if version.agent not in record.event.writes:
                self.strayed.append(f"{record.event.id} writes {version.ref}")
        for cause in causes:
            named = _VERSION.fullmatch(cause)
            if named is not None and named[1] not in footprint:
                self.strayed.append(f"{record.event.id} goes by {cause}")


class _Broken:
    """A model whose answers to one task cannot be read."""

    def __init__(self, model: LanguageModel, task: str) -> None:
        self._model = model
        self._task = task

    async def complete(self, request: Request) -> Completion:
        return Completion(GARBAGE[1]) if request.task == self._task else await self._model.complete(request)

    async def aclose(self) -> None:
        await _close(self._model)


def _says(text: str) -> Scripted:
    return Scripted(lambda request: text)


def _not_asked(request: Request) -> str:
    raise AssertionError(f"resumed, {request.call} asks for something else: the method keeps state of its own")


def _odd(request: Request) -> Iterator[Request]:
    """The request with a part of it changed into something that no method asks."""

    def prompt(text: str) -> tuple[Message, ...]:
        return (Message("user", text),)

    signs = "\u2028 \U0001f3b7 \x00 </s> {{ x }} \u202e"
    changes: list[dict[str, Any]] = [
        {"task": "no.such.task"},
        {"slots": {}},
        {"messages": prompt(""), "slots": {"memory": "", "options": (), "titles": ()}},
        {"messages": prompt("word " * 20_000)},
        {"messages": prompt(signs), "slots": {"memory": signs}},
        {"sampling": Sampling(temperature=2.0, max_tokens=1, top_p=0.1, seed=1)},
    ]
    for change in changes:
        yield msgspec.structs.replace(request, **change)


def _lines(finished: Finished) -> Iterator[EventLine]:
    with Reader(finished.path / "events.jsonl") as reader:
        yield from reader


async def _outcome(awaitable: Any) -> object:
    """What comes of it, errors and cancellation included."""
    try:
        return await awaitable
    except (Exception, asyncio.CancelledError) as error:
        return error


async def _closing(model: LanguageModel, coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return await coroutine
    finally:
        await _close(model)


async def _close(model: LanguageModel) -> None:
    aclose = getattr(model, "aclose", None)
    if aclose is not None:
        await aclose()


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)
