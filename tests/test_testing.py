"""The contracts hold for what the package brings, and catch what breaks them; methods of others are found by name."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest
from runs import ROOT, start
from standin import StandIn

from simengine.errors import InputError
from simengine.kernel import Context
from simengine.llm import Completion, LanguageModel, LLMSettings, Request
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.openai import OpenAI
from simengine.llm.backends.scripted import Scripted
from simengine.llm.task import Task
from simengine.methods import catalog
from simengine.methods.catalog import Registered, register
from simengine.methods.turn import remember
from simengine.scenario import ScenarioFile, read
from simengine.testing import BackendContract, MethodContract
from simengine.world import user

EXAMPLE = ROOT / "docs" / "your_own_method"
sys.path.append(str(EXAMPLE))

import notes  # noqa: E402  (the documentation's example)


class TestAgentCF(MethodContract):
    scenario = """
name: agentcf
data: {format: market, users: 6, items: 12, interests: 3, interactions: 5, seed: 4}
method: {kind: agentcf}
stages: [{optimize: {}}, {rank: {}}]
"""


def test_the_undisturbed_run_is_made_once_for_each_class_and_scenario(tmp_path: Path) -> None:
    first, derived = (type("Contract", (base,), {}) for base in (TestAgentCF, TestAgentCF))
    other = TestAgentCF.scenario.replace("name: agentcf", "name: other")
    again = type("Contract", (first,), {"scenario": other})
    (tmp_path / "first").mkdir()
    run = first()._whole(tmp_path / "first")
    assert first()._whole(tmp_path / "second").path == run.path
    assert derived()._whole(tmp_path / "first").path != run.path
    assert "name: other" in (again()._whole(tmp_path / "first").path / "scenario.yaml").read_text(encoding="utf-8")


class TestLexical(BackendContract):
    def backend(self) -> AbstractContextManager[LanguageModel]:
        return nullcontext(Lexical())


class TestScripted(BackendContract):
    def backend(self) -> AbstractContextManager[LanguageModel]:
        async def answer(request: Request) -> str:
            await asyncio.sleep(0)
            return "1"

        return nullcontext(Scripted(answer))


class TestOpenAI(BackendContract):
    @contextmanager
    def backend(self) -> Iterator[LanguageModel]:
        with StandIn.in_thread(latency=0.001) as server:
            yield OpenAI(LLMSettings(backend="openai", model="m", base_url=server.url))


def test_the_example_of_the_documentation_passes_its_test() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "7 passed" in done.stdout, done.stdout + done.stderr


# -- what is broken is caught -----------------------------------------------------------------------------------------


class Leaky(notes.Notes):
    """Goes by a memory that another event has read."""

    seen: Any = None

    async def _note(self, context: Context) -> None:
        who = user(context.event.data["user"])
        mine = await context.read(who, "notes", by=who)
        remember(context, who, "notes", mine.value, because=[self.seen or mine])
        self.seen = mine


class Counting(notes.Notes):
    """Keeps a count of its own, in order of arrival."""

    count = 0

    async def _note(self, context: Context) -> None:
        who = user(context.event.data["user"])
        await super()._note(context)
        self.count += 1
        remember(context, who, "notes", f"{self.count} notes were taken.", because=[])


class Gullible(notes.Notes):
    """Takes whatever comes back for an answer."""

    async def _note(self, context: Context) -> None:
        who = user(context.event.data["user"])
        mine = await context.read(who, "notes", by=who)
        slots = {"memory": mine.value, "options": ("x", "y"), "titles": ("x", "y"), "preferred": "x", "rejected": "y"}
        taken = Task("reflect.user", "note", lambda text, slots: text)
        remember(context, who, "notes", await self._asker.ask(context, taken, {**slots, "limit": "60"}), because=[mine])


def contract(monkeypatch: pytest.MonkeyPatch, method: type[notes.Notes]) -> MethodContract:
    """The contract over a small scenario of a method that is known as long as the test runs."""
    name = method.__name__.lower()
    settings = type("Settings", (notes.NotesSettings,), {"__annotations__": {"kind": Literal[name]}})
    monkeypatch.setitem(catalog._BY_HAND, name, Registered(settings, method, notes.METHOD.prompts))
    text = (EXAMPLE / "notes.yaml").read_text(encoding="utf-8").replace("kind: notes", f"kind: {name}")
    return type("Contract", (MethodContract,), {"scenario": text})()


def test_a_method_that_goes_by_what_another_event_has_read_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match=r"outside the footprint: interaction/u2/.* goes by user:u1/notes@0"):
        contract(monkeypatch, Leaky).test_it_keeps_to_its_footprints(tmp_path)


def test_a_method_with_state_of_its_own_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="keeps state of its own"):
        contract(monkeypatch, Counting).test_it_resumes_from_any_cut(tmp_path)
    with pytest.raises(AssertionError, match="depends on latencies"):
        contract(monkeypatch, Counting).test_latencies_and_concurrency_change_nothing(tmp_path)


def test_a_method_that_stores_whatever_comes_back_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="changed memories"):
        contract(monkeypatch, Gullible).test_garbage_crashes_nothing_and_changes_no_memory(tmp_path / "all")
    with pytest.raises(AssertionError, match=r"an unreadable answer to reflect\.user was stored"):
        contract(monkeypatch, Gullible).test_garbage_in_one_task_is_never_stored(tmp_path / "one")


class Stubborn:
    """Does not let itself be cancelled."""

    async def complete(self, request: Request) -> Completion:
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            raise ValueError("not now") from None
        return Completion("1")


class Forgetful:
    """Leaves a task behind when it is cancelled."""

    async def complete(self, request: Request) -> Completion:
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.task = asyncio.ensure_future(asyncio.sleep(10))
            raise
        return Completion("1")


class OneLoop:
    """Keeps to the first loop."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: Request) -> Completion:
        self.loop = self.loop or asyncio.get_running_loop()
        done = self.loop.create_future()
        done.set_result(Completion("1"))
        return await done if self.loop is asyncio.get_running_loop() else await self.other()

    async def other(self) -> Completion:
        raise RuntimeError("attached to a different loop")


def untyped(request: Request) -> str:
    return {"choose": "1"}[request.task]


@pytest.mark.parametrize(
    ("model", "test", "problem"),
    [
        (Scripted(lambda request: ""), BackendContract.test_it_answers, "no text"),
        (
            Scripted(untyped),
            BackendContract.test_an_odd_request_ends_in_an_answer_or_a_typed_error,
            r"'no\.such\.task' ended in KeyError",
        ),
        (Stubborn(), BackendContract.test_a_cancelled_call_leaves_nothing_behind, "ended in ValueError"),
        (Forgetful(), BackendContract.test_a_cancelled_call_leaves_nothing_behind, "tasks are left"),
        (OneLoop(), BackendContract.test_it_is_used_again_in_another_loop, "different loop"),
    ],
)
def test_a_broken_backend_is_caught(
    model: LanguageModel, test: Callable[[BackendContract], None], problem: str
) -> None:
    broken = type("Contract", (BackendContract,), {"backend": lambda self: nullcontext(model)})()
    with pytest.raises((AssertionError, RuntimeError), match=problem):
        test(broken)


# -- methods of others ------------------------------------------------------------------------------------------------


def test_an_installed_method_is_found_by_its_entry_point(tmp_path: Path) -> None:
    installed = tmp_path / "site" / "their_method-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: their-method\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[simengine.methods]\nnotes = notes:METHOD\n")
    path = f"{ROOT}:{EXAMPLE}:{installed.parent}"
    for command in (["run", EXAMPLE / "notes.yaml"], ["replay", "replays/notes"]):
        process = start(*command, cwd=tmp_path, PYTHONPATH=path)
        out, err = process.communicate()
        assert process.returncode == 0, err
    assert out.startswith("identical: "), out


def test_the_settings_of_a_registered_method_are_checked_like_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog._BY_HAND, "notes", notes.METHOD)
    text = (EXAMPLE / "notes.yaml").read_text(encoding="utf-8")
    scenario, _ = read("notes.yaml", text=text)
    assert scenario.method == notes.NotesSettings(kind="notes", words=60)
    assert scenario.semantic()["method"] == {"kind": "notes"}  # 60 words are the default
    assert scenario.model_dump()["method"] == {"kind": "notes", "words": 60}
    with pytest.raises(InputError, match=r"field method\.words, value -1: expected a value more than 0"):
        read("notes.yaml", ["method.words=-1"], text)
    with pytest.raises(
        InputError, match=r"field method\.kind, value nots: expected .*'notes'\n  Did you mean `notes`\?"
    ):
        read("notes.yaml", ["method.kind=nots"], text)
    with pytest.raises(InputError, match=r"the key `rounds` is not known here\n  Keys known here: kind, words\."):
        read("notes.yaml", ["method.rounds=2"], text)
    kinds = ScenarioFile.model_json_schema()["properties"]["method"]["discriminator"]["mapping"]
    assert set(kinds) == {*catalog.METHODS, "notes"}


@pytest.mark.parametrize(
    ("kind", "method", "problem"),
    [
        ("agentcf", notes.METHOD, "taken by a method of simengine"),
        ("diary", notes.METHOD, r"need the field `kind: Literal\['diary'\]`"),
        ("notes", notes.Notes, "made known by a Registered, not by type"),
    ],
)
def test_a_method_that_cannot_be_registered_says_why(kind: str, method: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        register(kind, method)


def test_a_method_that_was_registered_before_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_BY_HAND", {})
    again = Registered(notes.NotesSettings, Leaky, notes.METHOD.prompts)
    register("notes", notes.METHOD)
    register("notes", again)
    assert catalog.known()["notes"] is again
