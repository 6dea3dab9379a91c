"""Calls of ``mode: offline``: one file for all that gather, what it leaves unanswered, what outlives a process."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fakes import turns
from pydantic import ValidationError
from standin import HANG, LOST, RESET, Batches, Body, Fault, StandIn, error, refuses
from structlog.testing import capture_logs

import simengine.llm.layers.errand as errand
import simengine.llm.layers.offline as offline
import simengine.llm.layers.retry as retry
from simengine.errors import CallFailed, RunStopped
from simengine.llm import CallStore, Completion, LLMSettings, Message, Request, Sampling, Stack, build, make_backend
from simengine.llm.backends.batches import LABEL
from simengine.llm.backends.scripted import Scripted
from simengine.llm.layers.offline import Offline

FILES = ["POST /v1/files", "GET /v1/batches", "POST /v1/batches"]


def ask(text: str, task: str = "rank", model: str = "m", **options: object) -> Request:
    return Request(task, model, (Message("user", text),), Sampling(temperature=0.0, max_tokens=9), **options)


def asks(count: int) -> list[Request]:
    return [ask(f"request {n}", call=f"e{n}/rank") for n in range(count)]


def served(server: StandIn, **options: object) -> LLMSettings:
    said = {"backend": "openai", "model": "m", "base_url": server.url, "offline": {"poll": 0.01}, **options}
    return LLMSettings.model_validate({"roles": {"rank": {"mode": "offline"}}, **said})


def echo(body: Body) -> str:
    return f"to {body['messages'][-1]['content']}"


async def answers(stack: Stack, requests: list[Request]) -> list[Completion | BaseException]:
    """Ask for all at once, and flush whenever nothing else can be done, as the kernel does."""
    asked = [asyncio.ensure_future(stack.complete(request)) for request in requests]
    await asyncio.sleep(0)
    waiting = set(asked)
    while waiting:
        stack.flush()
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    return await asyncio.gather(*asked, return_exceptions=True)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE", 0.001)


@contextmanager
def stack_over(path: Path, settings: LLMSettings) -> Iterator[Stack]:
    with CallStore(path / "calls.sqlite") as store:
        yield build(settings, store)


async def run_all(path: Path, settings: LLMSettings, requests: list[Request]) -> list[Completion | BaseException]:
    with stack_over(path, settings) as stack:
        async with stack:
            return await answers(stack, requests)


async def leave_pending(path: Path, server: StandIn, requests: list[Request]) -> None:
    """A process that submits and dies before it has any answer."""
    server.batches.hold = True
    with stack_over(path, served(server)) as stack:
        async with stack:
            asked = [asyncio.ensure_future(stack.complete(request)) for request in requests]
            await asyncio.sleep(0)
            stack.flush()
            await server.batches.looked.wait()
        ended = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError | RunStopped) for end in ended)
    server.batches.hold = False


# -- the way through -------------------------------------------------------------------------------------------------


async def test_one_batch_says_and_brings_what_single_calls_would(tmp_path: Path) -> None:
    requests = asks(5)
    async with StandIn(echo) as server:
        singly = await run_all(tmp_path, served(server, roles={}), requests)
    async with StandIn(echo) as batching:
        (tmp_path / "b").mkdir()
        with capture_logs() as logs:
            together = await run_all(tmp_path / "b", served(batching), requests)
    assert together == singly
    assert [answer.text for answer in together] == [f"to request {n}" for n in range(5)]
    assert all(answer.usage.prompt_tokens == 2 and answer.attempts == 1 for answer in together)
    (lines,) = batching.batches.uploads
    assert [line["custom_id"] for line in lines] == [request.key() for request in requests]
    assert [line["body"] for line in lines] == sorted(server.bodies, key=lambda body: body["messages"][0]["content"])
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert (batching.requests, batching.batches.calls[:3]) == (0, FILES)
    told = [(log["event"], log.get("status")) for log in logs]
    states = [("batch state", status) for status in ("in_progress", "finalizing", "completed")]
    assert told == [("batch submitted", None), *states, ("batch downloaded", None)]


async def test_answers_are_in_the_journal_and_counted_as_spent(tmp_path: Path) -> None:
    async with StandIn(echo) as server:
        settings = served(server, prices={"m": {"input": 1, "output": 10}})
        with stack_over(tmp_path, settings) as stack:
            async with stack:
                await answers(stack, asks(3))
                stats = stack.stats()
                await answers(stack, asks(3))
                again = stack.stats()
    # two words of prompt and three of reply each, a token a word
    assert (stats.spending.calls, stats.spending.tokens) == (3, 15)
    assert stats.spending.usd == pytest.approx(3 * (2 * 1 + 3 * 10) / 1e6)
    assert (stats.asked, stats.completed, again.journal, server.batches.created) == (3, 3, 3, 1)


async def test_other_tasks_go_by_single_calls_and_nothing_goes_while_they_may_bring_more(tmp_path: Path) -> None:
    async with StandIn(echo, latency=0.1) as server:
        with stack_over(tmp_path, served(server)) as stack:
            async with stack:
                first = asyncio.ensure_future(stack.complete(ask("one")))
                choice = asyncio.ensure_future(stack.complete(ask("now", task="choose")))
                await turns()
                stack.flush()
                assert (await choice).text == "to now"
                assert server.batches.calls == []
                second = asyncio.ensure_future(stack.complete(ask("two")))
                await asyncio.sleep(0)
                stack.flush()
                assert [answer.text for answer in await asyncio.gather(first, second)] == ["to one", "to two"]
    assert [len(lines) for lines in server.batches.uploads] == [2]


async def test_a_flush_is_void_once_something_was_answered(tmp_path: Path) -> None:
    async with StandIn(echo) as server:
        with stack_over(tmp_path, served(server)) as stack:
            async with stack:
                known = (await answers(stack, [ask("known")]))[0]
                waiting = asyncio.ensure_future(stack.complete(ask("one")))
                await asyncio.sleep(0)
                stack.flush()
                assert await stack.complete(ask("known")) == known  # from the journal: its caller may ask for more
                await turns(200)
                assert server.batches.created == 1
                assert len(await answers(stack, [ask("two")])) == 1
                assert (await waiting).text == "to one"
    assert [len(lines) for lines in server.batches.uploads] == [1, 2]


@pytest.mark.parametrize("landing", range(0, 24, 3))
async def test_an_answer_on_its_way_up_holds_the_batch(
    landing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is under way no more, but who asked for it knows only some turns later, and will have more to ask."""
    monkeypatch.setattr(offline, "_LOOK", 0)
    async with StandIn(echo) as server:
        settings, elsewhere = served(server), 1
        with CallStore(tmp_path / "calls.sqlite") as store:
            backend = make_backend(settings)
            layer = Offline(Scripted(lambda request: "no"), backend, store, settings, lambda: elsewhere + 1)
            waiting = asyncio.ensure_future(layer.complete(ask("one")))
            await asyncio.sleep(0)
            layer.flush()
            await turns(landing)
            elsewhere = 0
            await turns(4)
            layer.hold()
            await turns(40)
            assert store.submitted(ask("one").key()) is None
            layer.flush()
            assert (await waiting).text == "to one"
            await layer.aclose()
            await backend.aclose()


async def test_one_batch_is_for_one_model_and_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errand, "MOST_REQUESTS", 2)
    requests = [ask(f"{model}{n}", model=model) for n in range(3) for model in ("a", "b")]
    async with StandIn(echo) as server:
        found = await run_all(tmp_path, served(server), requests)
        assert [answer.text for answer in found] == [f"to {model}{n}" for n in range(3) for model in ("a", "b")]
        files = sorted([line["body"]["model"] for line in lines] for lines in server.batches.uploads)
        assert files == [["a"], ["a", "a"], ["b"], ["b", "b"]]
        size = len(server.batches.files["file-0"][1])
    monkeypatch.setattr(errand, "MOST_REQUESTS", 50_000)
    monkeypatch.setattr(errand, "MOST_BYTES", size)
    async with StandIn(echo) as server:
        (tmp_path / "b").mkdir()
        await run_all(tmp_path / "b", served(server), requests)
        assert sorted(map(len, server.batches.uploads)) == [1, 1, 2, 2]


async def test_what_fills_a_file_goes_without_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "MOST_REQUESTS", 3)
    async with StandIn(echo) as server:
        with stack_over(tmp_path, served(server)) as stack:
            async with stack:
                found = await asyncio.gather(*map(stack.complete, asks(3)))
    assert len(found) == len(server.batches.uploads[0]) == 3


async def test_text_completions_go_the_same_way(tmp_path: Path) -> None:
    async with StandIn(lambda body: "said") as server:
        found = await run_all(tmp_path, served(server, api="completions"), asks(2))
    assert [answer.text for answer in found] == ["said 0", "said 1"]  # the stand-in repeats a prompt's last word
    assert [line["url"] for line in server.batches.uploads[0]] == ["/v1/completions"] * 2


# -- what a batch leaves unanswered ----------------------------------------------------------------------------------


def _once(answer: object) -> Callable[[int, Body], object]:
    """In the first batch, the second request meets this."""
    return lambda number, line: answer if number == 0 and "request 1" in str(line["body"]) else None


@pytest.mark.parametrize(
    ("batches", "reason", "again"),
    [
        (Batches(spoil=_once((500, {"error": {"message": "oops"}}))), "overloaded", 1),
        (Batches(spoil=_once((429, {"error": {"message": "slow down"}}))), "limited", 1),
        (Batches(spoil=_once((200, {"error": {"message": "oops"}}))), "overloaded", 1),
        (Batches(spoil=_once("missing")), "missing", 1),
        (Batches(ends=["expired"], unfinished=2), "expired", 2),
        (Batches(ends=["cancelled"], unfinished=3), "cancelled", 3),
        (Batches(ends=["expired"], unfinished=4), "expired", 4),
    ],
)
async def test_what_may_pass_is_submitted_again_and_only_that(
    batches: Batches, reason: str, again: int, tmp_path: Path
) -> None:
    async with StandIn(echo, batches=batches) as server:
        with capture_logs() as logs:
            found = await run_all(tmp_path, served(server), asks(4))
    assert [answer.text for answer in found] == [f"to request {n}" for n in range(4)]
    assert [len(lines) for lines in server.batches.uploads] == [4, again]
    assert sorted(answer.attempts for answer in found) == [1] * (4 - again) + [2] * again
    assert server.batches.repeats == 0
    assert [log["reasons"] for log in logs if log["event"] == "batch resubmitted"] == [{reason: again}]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, {"error": {"message": "no", "code": "content_filter"}}), "filtered"),
        ((400, {"error": {"message": "maximum context length", "code": "context_length_exceeded"}}), "context"),
        ((400, {"error": {"message": "bad"}}), "rejected"),
        ((200, {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}), "filtered"),
    ],
)
async def test_a_terminal_error_is_the_outcome_of_its_call_alone(answer: object, reason: str, tmp_path: Path) -> None:
    async with StandIn(echo, batches=Batches(spoil=_once(answer))) as server:
        found = await run_all(tmp_path, served(server), asks(3))
        assert [getattr(end, "reason", "") for end in found] == ["", reason, ""]
        assert isinstance(found[1], CallFailed)
        assert found[1].where["call"] == "e1/rank"
        again = await run_all(tmp_path, served(server), asks(3))
        assert str(again[1]) == str(found[1])
    assert server.batches.created == 1, "the journal holds errors too"


async def test_a_call_goes_into_so_many_batches_and_no_more(tmp_path: Path) -> None:
    batches = Batches(spoil=lambda number, line: "missing" if "request 1" in str(line["body"]) else None)
    async with StandIn(echo, batches=batches) as server:
        found = await run_all(tmp_path, served(server), asks(2))
    assert found[0].text == "to request 0"
    assert (found[1].reason, batches.created) == ("missing", errand.ROUNDS)
    with CallStore(tmp_path / "calls.sqlite", read_only=True) as store:
        assert [row.outcome.attempts for row in store] == [1, 3]


async def test_a_refused_parameter_is_learned_from_the_file_of_errors(tmp_path: Path) -> None:
    async with StandIn(echo, check=refuses("max_tokens")) as server:
        found = await run_all(tmp_path, served(server), asks(3))
        assert [answer.text for answer in found] == [f"to request {n}" for n in range(3)]
        sent = [set(line["body"]) for lines in server.batches.uploads for line in lines]
        common = {"model", "messages", "temperature"}
        assert sent == [common | {"max_tokens"}] * 3 + [common | {"max_completion_tokens"}] * 3
        assert all("max_completion_tokens" in answer.sent for answer in found)
        # what single calls have learned holds for batches from the first on
        (tmp_path / "b").mkdir()
        with stack_over(tmp_path / "b", served(server)) as stack:
            async with stack:
                await stack.complete(ask("now", task="choose"))
                await answers(stack, asks(3))
    assert [set(line["body"]) for line in server.batches.uploads[-1]] == [common | {"max_completion_tokens"}] * 3
    assert server.batches.created == 3


async def test_a_batch_that_fails_as_a_whole_stops_the_run_and_is_forgotten(tmp_path: Path) -> None:
    batches = Batches(problem="Enqueued token limit reached for m.")
    async with StandIn(echo, batches=batches) as server:
        found = await run_all(tmp_path, served(server), asks(2))
        assert {type(end) for end in found} == {RunStopped}
        assert "Enqueued token limit reached" in str(found[0])
        assert "then resume the run" in str(found[0])
        batches.problem = ""
        found = await run_all(tmp_path, served(server), asks(2))
    assert [answer.text for answer in found] == ["to request 0", "to request 1"]
    assert batches.created == 2


async def test_an_exhausted_quota_stops_the_run_and_what_was_answered_stays(tmp_path: Path) -> None:
    quota = (429, {"error": {"message": "you are out of money", "code": "insufficient_quota"}})
    async with StandIn(echo, batches=Batches(spoil=_once(quota))) as server:
        found = await run_all(tmp_path, served(server), asks(3))
        assert [type(end) for end in found] == [Completion, RunStopped, Completion]
        assert "no quota left" in str(found[1])
        again = await run_all(tmp_path, served(server), asks(3))
        assert [answer.text for answer in again] == [f"to request {n}" for n in range(3)]
    assert [len(lines) for lines in server.batches.uploads] == [3, 1]


# -- faults of the service -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [error(500), error(429, retry_after="0.01"), RESET, Fault(200, "<html>"), LOST])
@pytest.mark.parametrize("at", range(7))
async def test_a_passing_fault_at_any_step_leaves_no_trace(fault: Fault, at: int, tmp_path: Path) -> None:
    """Upload, list, create, three looks, download; a batch is created once even where the reply to that was lost."""
    async with StandIn(echo, batches=Batches(faults=[*[None] * at, fault])) as server:
        found = await run_all(tmp_path, served(server), asks(3))
    assert [answer.text for answer in found] == [f"to request {n}" for n in range(3)]
    assert (server.batches.created, server.batches.repeats, server.batches.faults) == (1, 0, [])


async def test_a_server_without_batches_is_named_with_advice(tmp_path: Path) -> None:
    async with StandIn(echo, batches=Batches(faults=[error(404)])) as server:
        (found,) = await run_all(tmp_path, served(server), asks(1))
    assert isinstance(found, RunStopped)
    assert f"url {server.url}/files" in str(found)
    assert "take `mode: offline` out" in str(found)


async def test_a_service_that_stays_away_stops_the_run(tmp_path: Path) -> None:
    async with StandIn(echo, batches=Batches(faults=[error(503, "away")] * 100)) as server:
        (found,) = await run_all(tmp_path, served(server, retry={"budget": 0.01}), asks(1))
    assert isinstance(found, RunStopped)
    assert "away" in str(found)


async def test_silence_is_a_fault_too(tmp_path: Path) -> None:
    async with StandIn(echo, batches=Batches(faults=[None, HANG])) as server:
        (found,) = await run_all(tmp_path, served(server, timeout=0.2), asks(1))
    assert found.text == "to request 0"


# -- across processes ------------------------------------------------------------------------------------------------


async def test_a_later_process_attaches_to_the_batch_and_pays_nothing(tmp_path: Path) -> None:
    async with StandIn(echo, batches=Batches(spoil=_once("missing"))) as server:
        await leave_pending(tmp_path, server, asks(4))
        with CallStore(tmp_path / "calls.sqlite") as store:
            assert (len(store), store.outstanding()) == (0, ["batch_0"])
        with capture_logs() as logs:
            found = await run_all(tmp_path, served(server), asks(5))
        with CallStore(tmp_path / "calls.sqlite") as store:
            assert store.outstanding() == []
    assert [answer.text for answer in found] == [f"to request {n}" for n in range(5)]
    # the fifth is new, and the second was not answered by the batch that was found
    assert [len(lines) for lines in server.batches.uploads] == [4, 1, 1]
    assert server.batches.repeats == 0
    assert [(log["batch"], log["requests"]) for log in logs if log["event"] == "batch attached"] == [("batch_0", 4)]


async def test_a_refusal_in_a_batch_of_another_process_is_learned_from(tmp_path: Path) -> None:
    async with StandIn(echo, check=refuses("temperature")) as server:
        await leave_pending(tmp_path, server, asks(2))
        found = await run_all(tmp_path, served(server), asks(2))
    assert [answer.text for answer in found] == ["to request 0", "to request 1"]
    assert [len(lines) for lines in server.batches.uploads] == [2, 2]


@pytest.mark.parametrize("created", [True, False])
async def test_a_process_that_died_while_it_submitted(created: bool, tmp_path: Path) -> None:
    """It had written down its intention, and not the batch's id, which only the server's list can tell."""
    requests = asks(2)
    async with StandIn(echo) as server:
        if created:
            await leave_pending(tmp_path, server, requests)
            (label,) = {job.told["metadata"][LABEL] for job in server.batches.jobs.values()}
        else:
            label = "never created"
        with CallStore(tmp_path / "calls.sqlite") as store:
            sent = {request.key(): '{"model":"m"}' for request in requests}
            store.submit(label, sent)
        found = await run_all(tmp_path, served(server), requests)
    assert [answer.text for answer in found] == ["to request 0", "to request 1"]
    assert len(server.batches.uploads) == server.batches.created == 1


async def test_a_batch_that_the_server_has_forgotten_is_submitted_again(tmp_path: Path) -> None:
    async with StandIn(echo) as server:
        await leave_pending(tmp_path, server, asks(2))
        server.batches.jobs.clear()
        found = await run_all(tmp_path, served(server), asks(2))
    assert [answer.text for answer in found] == ["to request 0", "to request 1"]


async def test_a_stopped_run_leaves_the_batch_and_does_not_wait(tmp_path: Path) -> None:
    async with StandIn(echo, batches=Batches(hold=True)) as server:
        with stack_over(tmp_path, served(server)) as stack:
            async with stack:
                submitted = [asyncio.ensure_future(stack.complete(request)) for request in asks(2)]
                await asyncio.sleep(0)
                stack.flush()
                await server.batches.looked.wait()
                gathered = asyncio.ensure_future(stack.complete(ask("more")))
                await turns()
                stopping = time.monotonic()
                with capture_logs() as logs:
                    stack.stop_sending()
                ends = await asyncio.gather(*submitted, gathered, stack.complete(ask("late")), return_exceptions=True)
                assert time.monotonic() - stopping < 1
        assert {type(end) for end in ends} == {RunStopped}
        assert "batch batch_0" in str(ends[0])
        assert "the batch goes on at the server: resume the run" in str(ends[0])
        assert ["not submitted" in str(end) for end in ends] == [False, False, True, True]
        assert [log["batches"] for log in logs] == [["batch_0"]]
        server.batches.hold = False
        found = await run_all(tmp_path, served(server), asks(2))
        assert [answer.text for answer in found] == ["to request 0", "to request 1"]
    assert len(server.batches.uploads) == 1


async def test_a_journal_of_an_earlier_version_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    async with StandIn(echo) as server:
        await run_all(tmp_path, served(server, roles={}), asks(1))
        db = sqlite3.connect(path)
        db.execute("DROP TABLE submitted")
        db.close()
        with CallStore(path, read_only=True) as store:
            assert len(store) == 1
        assert len(await run_all(tmp_path, served(server), asks(3))) == 3
    assert [len(lines) for lines in server.batches.uploads] == [2]


# -- budget and settings ---------------------------------------------------------------------------------------------


async def test_a_budget_is_held(tmp_path: Path) -> None:
    async with StandIn(echo) as server:
        with ExitStack() as opened:
            stack = opened.enter_context(stack_over(tmp_path, served(server, budget={"calls": 2})))
            async with stack:
                found = await answers(stack, asks(3))
    assert [type(end) for end in found] == [Completion, Completion, RunStopped]
    assert [len(lines) for lines in server.batches.uploads] == [2]


async def test_a_backend_without_batches_is_asked_online(tmp_path: Path) -> None:
    settings = LLMSettings.model_validate({"roles": {"rank": {"mode": "offline"}}})
    with CallStore(tmp_path / "calls.sqlite") as store, capture_logs() as logs:
        async with build(settings, store, backend=Scripted(lambda request: "yes")) as stack:
            assert (await stack.complete(ask("x"))).text == "yes"  # without a flush
    assert [(log["event"], log["tasks"]) for log in logs] == [("asked online", ["rank"])]


def test_a_mode_is_no_part_of_what_is_asked() -> None:
    roles = {"reflect": {"mode": "offline", "max_tokens": 5}, "reflect.item": {"mode": "online"}, "rank": {}}
    settings = LLMSettings.model_validate({"roles": roles})
    tasks = ["reflect", "reflect.user", "reflect.item", "rank", "choose"]
    assert [settings.is_offline(task) for task in tasks] == [True, True, False, False, False]
    assert settings.sampling_for("reflect.item") == ("", Sampling(temperature=0.0, max_tokens=5))


def test_embeddings_have_no_such_mode() -> None:
    with pytest.raises(ValidationError, match="embeddings are needed at once"):
        LLMSettings.model_validate({"roles": {"embed": {"mode": "offline"}}})
