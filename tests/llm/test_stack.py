"""The layers together, as the rest of the house gets them, and what the settings make of a task."""

from __future__ import annotations

import asyncio
import gc
import re
from pathlib import Path

import jinja2
import pytest
from pydantic import ValidationError
from standin import HANG, StandIn, agentcf_reply, error
from structlog.testing import capture_logs

import simengine.llm.layers.retry as retry
from simengine.errors import CallFailed, InputError, ReplayMiss, RunStopped
from simengine.llm import CallStore, Completion, LLMSettings, Message, Request, Sampling, Stack, build, replay
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Usage

PROMPTS = Path(__file__).resolve().parents[2] / "simengine" / "methods" / "prompts" / "agentcf"


def ask(text: str, **options: object) -> Request:
    sampling = Sampling(temperature=0.0)
    return Request(task="choose", model="m", messages=(Message("user", text),), sampling=sampling, **options)


def served(server: StandIn, **options: object) -> LLMSettings:
    return LLMSettings.model_validate({"backend": "openai", "model": "m", "base_url": server.url, **options})


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE", 0.0)


async def test_a_run_and_its_counters(tmp_path: Path, no_pauses: None) -> None:
    """Four calls at most two at a time: a 529 and a 503 are passed (case 24), one is refused, one is asked twice."""
    faults = [error(529), error(503), None, error(400, code="content_filter")]
    async with StandIn(faults=faults) as server:
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(served(server, limits={"concurrency": 2}), store) as model:
                answer = await model.complete(ask("a"))
                assert (answer.text, answer.attempts) == ("ok", 3)
                with pytest.raises(CallFailed) as caught:
                    await model.complete(ask("b", call="e1/choose/r1"))
                assert caught.value.reason == "filtered"
                assert caught.value.where == {"call": "e1/choose/r1", "task": "choose"}
                await asyncio.gather(model.complete(ask("c")), model.complete(ask("c")), model.complete(ask("a")))
                stats = model.stats()
    assert (stats.asked, stats.attempts, stats.completed, stats.failed) == (3, 5, 2, {"filtered": 1})
    assert (stats.journal, stats.shared) == (1, 1)
    assert (stats.in_flight, stats.waiting, stats.greatest) == (0, 0, 1)
    assert (stats.prompt_tokens, stats.completion_tokens, stats.unmetered) == (2, 2, 0)
    assert server.requests == 5


async def test_a_second_run_over_the_journal_asks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    calls = [ask(text) for text in ("a", "b", "bad")]
    model = Scripted(lambda request: CallFailed("no", reason="filtered") if request == calls[2] else "yes")

    async def complete_all(stack: Stack) -> list[Completion | BaseException]:
        return await asyncio.gather(*(stack.complete(call) for call in calls), return_exceptions=True)

    with CallStore(path) as store:
        async with build(LLMSettings(), store, backend=model) as stack:
            first = await complete_all(stack)
    with CallStore(path, read_only=True) as store:
        async with replay(store) as stack:
            again = await complete_all(stack)
            with pytest.raises(ReplayMiss):
                await stack.complete(ask("never asked"))
    assert again[:2] == first[:2]
    assert (str(again[2]), again[2].reason) == (str(first[2]), "filtered")
    assert model.calls == 3


async def test_no_more_than_the_limit_are_under_way_and_urgent_ones_go_first(tmp_path: Path) -> None:
    order: list[str] = []

    async def answer(request: Request) -> str:
        order.append(request.call)
        await asyncio.sleep(0.001)
        return "yes"

    with CallStore(tmp_path / "calls.sqlite") as store:
        async with build(LLMSettings(limits={"concurrency": 2}), store, backend=Scripted(answer)) as stack:
            calls = [ask(str(n), call=str(n), priority=100.0 if n == 9 else 0.0) for n in range(10)]
            await asyncio.gather(*(stack.complete(call) for call in calls))
            assert stack.stats().greatest == 2
    assert order == ["0", "1", "9", *"2345678"]


async def test_one_silent_call_blocks_no_other(tmp_path: Path, no_pauses: None) -> None:
    """Field case 55: of twenty calls one never gets a reply; it fails by its deadline and the rest are answered."""
    async with StandIn(faults=[None, HANG]) as server:
        settings = served(server, timeout=0.3, retry={"budget": 0})
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(settings, store) as model:
                await model.complete(ask("first"))
                calls = [asyncio.ensure_future(model.complete(ask(str(n)))) for n in range(20)]
                answers = await asyncio.gather(*calls, return_exceptions=True)
    failed = [answer for answer in answers if isinstance(answer, Exception)]
    assert [(type(e), e.reason) for e in failed] == [(CallFailed, "timeout")]
    assert sum(isinstance(answer, Completion) for answer in answers) == 19


async def test_leaving_the_stack_ends_what_is_under_way(tmp_path: Path) -> None:
    async with StandIn(faults=[HANG]) as server:
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(served(server), store) as model:
                calling = asyncio.ensure_future(model.complete(ask("a")))
                await server.arrived.wait()
                assert model.stats().in_flight == 1
            with pytest.raises(asyncio.CancelledError):
                await calling
            assert len(store) == 0


def test_two_blocking_runs_in_one_process(tmp_path: Path) -> None:
    """Field case 59, with the server in a thread of its own, which a child process could call as well."""

    async def run(server: StandIn, name: str) -> str:
        with CallStore(tmp_path / name) as store:
            async with build(served(server), store) as model:
                return (await model.complete(ask("a"))).text

    with StandIn.in_thread() as server:
        assert [asyncio.run(run(server, name)) for name in ("one", "two", "two")] == ["ok"] * 3
    gc.collect()
    assert server.requests == 2
    assert list(server.counts.values()) == [2]


def test_a_variable_that_is_not_set_is_told_before_any_call(tmp_path: Path) -> None:
    settings = LLMSettings(backend="openai", model="m", base_url="http://h/v1", api_key="${MY_KEY}")
    with CallStore(tmp_path / "calls.sqlite") as store, pytest.raises(InputError, match="MY_KEY"):
        build(settings, store, environ={})


async def test_rehearsal_delays_the_default_backend(tmp_path: Path) -> None:
    options = ("a jazz record", "a rock record")
    slots = {"noun": "CD", "memory": "I like jazz.", "options": options, "titles": ("One", "Two")}
    settings = LLMSettings(latency={"median": 0.03})
    with CallStore(tmp_path / "calls.sqlite") as store:
        async with build(settings, store) as model:
            answer = await model.complete(ask("choose", slots=slots))
        assert next(iter(store)).latency >= 0.03
    assert answer.text.startswith("Chosen CD: ")


async def test_answers_without_a_count_are_told_apart(tmp_path: Path) -> None:
    usages = {"a": Usage(10, 1), "b": Usage()}
    backend = Scripted(lambda request: Completion("yes", usage=usages[request.messages[0].content]))
    with CallStore(tmp_path / "calls.sqlite") as store:
        async with build(LLMSettings(), store, backend=backend) as model:
            for text in usages:
                await model.complete(ask(text))
            stats = model.stats()
    assert (stats.prompt_tokens, stats.completion_tokens, stats.unmetered) == (10, 1, 1)


async def test_a_refused_key_stops_the_run_and_leaves_no_outcome(tmp_path: Path) -> None:
    async with StandIn(faults=[error(401)]) as server:
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(served(server), store) as model:
                with pytest.raises(RunStopped):
                    await model.complete(ask("a"))
                assert (await model.complete(ask("a"))).text == "ok"


async def test_a_run_through_faults_of_transport_has_the_answers_of_one_without(
    tmp_path: Path, no_pauses: None
) -> None:
    """A fifth of all requests meets a fault: refused, overloaded, reset, cut short, a web page, silence."""

    async def run(name: str, share: float) -> tuple[list[str], int]:
        async with StandIn(lambda body: body["messages"][0]["content"], share=share, seed=2) as server:
            with CallStore(tmp_path / name) as store:
                async with build(served(server, timeout=0.5, limits={"concurrency": 16}), store) as model:
                    answers = await asyncio.gather(*(model.complete(ask(f"answer {n}")) for n in range(150)))
                    assert model.stats().failed == {}
        return [answer.text for answer in answers], server.repeats

    faulty, repeats = await run("faulty", 0.2)
    assert faulty == (await run("plain", 0.0))[0]
    assert repeats == 0


async def test_the_key_is_in_no_journal_event_or_message(
    tmp_path: Path, no_pauses: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Field case 63, through all layers: servers that echo the key when they refuse, overload, adapt and stop."""
    key = "sk-test-123"
    echo = f"not with {key}: max_tokens is not supported"
    faults = [error(503, echo), error(429, echo, retry_after="0"), error(400, echo), None]
    async with StandIn(faults=[*faults, error(401, echo)]) as server:
        settings = served(server, api_key="${MY_KEY}", max_tokens=5)
        with CallStore(tmp_path / "calls.sqlite") as store, capture_logs() as logs:
            async with build(settings, store, environ={"MY_KEY": key}) as model:
                sampling = Sampling(temperature=0.0, max_tokens=5)
                calls = [Request("choose", "m", (Message("user", text),), sampling) for text in "ab"]
                assert (await model.complete(calls[0])).attempts == 4
                with pytest.raises(RunStopped) as caught:
                    await model.complete(calls[1])
    assert {entry["event"] for entry in logs} >= {"retry", "refused", "parameter refused"}
    told = f"{logs} {caught.value} {capsys.readouterr()}".encode()
    assert key.encode() not in told + contents(tmp_path)
    assert all(f"Bearer {key}" == headers["Authorization"] for headers in server.headers)


async def test_lingering_requests_go_when_the_caller_knows_of_no_more(tmp_path: Path) -> None:
    async with StandIn() as server:
        settings = served(server, api="completions", batch={"linger": 60})
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(settings, store) as model:
                calls = [asyncio.ensure_future(model.complete(ask(text))) for text in "abc"]
                await asyncio.sleep(0.01)
                assert model.stats().attempts == 0
                model.flush()
                await asyncio.wait_for(asyncio.gather(*calls), 30)
                late = asyncio.ensure_future(model.complete(ask("late")))
                await asyncio.sleep(0.01)
                model.stop_sending()
                with pytest.raises(RunStopped):
                    await late
    assert [body["prompt"] for body in server.bodies] == [["a", "b", "c"]]


class TestSettings:
    ROLES = LLMSettings(
        model="small",
        temperature=0.2,
        max_tokens=100,
        roles={
            "reflect": {"model": "large", "temperature": None},
            "reflect.item": {"max_tokens": 300},
            "rank": {"temperature": 0.0, "seed": 5},
        },
    )

    @pytest.mark.parametrize(
        ("task", "model", "sampling"),
        [
            ("choose", "small", Sampling(0.2, 100)),
            ("reflect.user", "large", Sampling(None, 100)),
            ("reflect.item", "large", Sampling(None, 300)),
            ("reflect", "large", Sampling(None, 100)),
            ("rank", "small", Sampling(0.0, 100, seed=5)),
            ("ranking", "small", Sampling(0.2, 100)),
        ],
    )
    def test_a_role_covers_its_tasks(self, task: str, model: str, sampling: Sampling) -> None:
        assert self.ROLES.sampling_for(task) == (model, sampling)

    def test_the_defaults_are_deterministic_and_need_no_server(self) -> None:
        settings = LLMSettings()
        assert (settings.backend, settings.timeout, settings.limits.concurrency, settings.retry.budget) == (
            "lexical", 120, 64, 1200,
        )  # fmt: skip
        assert settings.sampling_for("choose") == ("", Sampling(temperature=0.0))
        assert settings.sampling_for("choose")[1].deterministic

    def test_the_default_and_a_written_zero_make_the_same_key(self) -> None:
        """A zero without a point would be another text in the key, and another call."""
        said = [LLMSettings(), LLMSettings(temperature=0), LLMSettings(roles={"choose": {"temperature": 0}})]
        keys = {
            Request(task="choose", model="", messages=(), sampling=one.sampling_for("choose")[1]).key() for one in said
        }
        assert len(keys) == 1

    @pytest.mark.parametrize(
        "said",
        [
            {"tempereture": 0},
            {"roles": {"rank": {"models": "x"}}},
            {"temperature": -1},
            {"temperature": float("nan")},
            {"max_tokens": 0},
            {"timeout": 0},
            {"limits": {"concurrency": 0}},
            {"limits": {"rpm": 0}},
            {"limits": {"window": 0}},
            {"retry": {"max_wait": -1}},
            {"batch": {"size": 0}},
            {"budget": {"euros": 5}},
            {"prices": {"m": {"input": 1}}},
            {"api": "responses"},
            {"backend": "openai", "model": "m"},
            {"backend": "openai", "base_url": "http://h/v1"},
            {"latency": {"sigma": 0.5}},
        ],
    )
    def test_what_is_refused(self, said: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            LLMSettings.model_validate(said)


class TestStandIn:
    """The stand-in's answers to the prompts of AgentCF: other tests rely on their form."""

    TITLES = ("Kind of Blue", "Blue (Remastered)", "Blue: Live")

    def body(self, name: str) -> dict[str, object]:
        template = jinja2.Environment(trim_blocks=True).from_string((PROMPTS / name).read_text(encoding="utf-8"))
        values = {"noun": "CD", "memory": "I like jazz.", "titles": self.TITLES, "options": self.TITLES, "limit": 50}
        context = template.new_context(values)
        texts = ["".join(template.blocks[block](context)) for block in ("system", "user")]
        roles = ("system", "user")
        return {"messages": [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]}

    @pytest.mark.parametrize(
        ("name", "form"),
        [
            ("choose.j2", r"Chosen CD: (\d)\. .+\nExplanation: .+"),
            ("reflect.user.right.j2", r"My updated self-introduction: .+"),
            ("reflect.user.wrong.j2", r"My updated self-introduction: .+"),
            ("reflect.item.right.j2", r"The updated description of the first CD is: .+\nThe .+ second CD is: .+"),
            ("reflect.item.wrong.j2", r"The updated description of the first CD is: .+\nThe .+ second CD is: .+"),
            ("rank.j2", r"Rank:\n1\. .+\n2\. .+\n3\. .+"),
        ],
    )
    def test_each_prompt_is_answered_in_its_form(self, name: str, form: str) -> None:
        reply = agentcf_reply(self.body(name))
        assert re.fullmatch(form, reply)
        assert reply == agentcf_reply(self.body(name))
        if name == "rank.j2":
            assert sorted(line.partition(". ")[2] for line in reply.splitlines()[1:]) == sorted(self.TITLES)
