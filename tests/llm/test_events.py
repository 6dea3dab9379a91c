"""Log events of the layers: each by name, level and keys, once where many calls meet the same, without prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes import ask, in_turn
from standin import Fault, StandIn, error
from standin_clock import run_virtual
from structlog.testing import capture_logs

import simengine.llm.layers.retry as retry_layer
from simengine.errors import CallFailed, RunStopped
from simengine.llm import CallStore, LLMSettings, build
from simengine.llm import attempt as attempts
from simengine.llm.attempt import Gauge
from simengine.llm.backends.delay import Delay
from simengine.llm.backends.scripted import Scripted
from simengine.llm.layers.batch import Batch
from simengine.llm.layers.budget import Budget
from simengine.llm.layers.journal import Journal
from simengine.llm.layers.limit import Limit
from simengine.llm.layers.meter import Basis
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, LanguageModel, Request
from simengine.llm.settings import BatchSettings, BudgetSettings, LimitSettings, RetrySettings
from simengine.llm.tokens import Estimator
from simengine.llm.transient import Transient, headline

Event = Mapping[str, Any]
WHO = {"call": "e1#choose/r1", "task": "choose"}
PROMPT = "what the prompt says"
BUSY = Transient(f"HTTP 503: no worker for {PROMPT!r}")


def call(number: int = 1) -> Request:
    return ask(str(number), call=f"e{number}#choose/r1")


def told(model: LanguageModel, calls: int = 1) -> list[Event]:
    """What is told of so many calls at one time, in virtual time, however they end."""

    async def play() -> None:
        asked = (model.complete(call(number)) for number in range(1, calls + 1))
        await asyncio.gather(*asked, return_exceptions=True)

    with capture_logs() as logs:
        run_virtual(play())
    return logs


class Teller:
    """A model whose replies come with gauges."""

    def __init__(self, **gauges: Gauge) -> None:
        self._gauges = gauges

    async def complete(self, request: Request) -> Completion:
        current = attempts.current.get()
        assert current is not None
        current.gauges.update(self._gauges)
        return Completion("yes")


def test_a_headline_leaves_out_the_servers_words() -> None:
    assert headline(BUSY.problem) == "HTTP 503"
    assert headline("no reply within 120 s") == "no reply within 120 s"


# -- retry ----------------------------------------------------------------------------------------------------------


def test_a_retry_tells_its_pause() -> None:
    (event,) = told(Retry(in_turn(BUSY, "yes"), RetrySettings()))
    assert 0.25 <= event.pop("seconds") <= 0.5
    assert event == {
        **WHO, "event": "retry", "log_level": "info", "reason": "overloaded", "problem": "HTTP 503", "attempt": 1,
    }  # fmt: skip


def test_a_pause_that_the_server_asks_for_is_in_the_retry() -> None:
    (event,) = told(Retry(in_turn(Transient("HTTP 429", reason="limited", retry_after=75.0), "yes"), RetrySettings()))
    assert (event["event"], event["reason"]) == ("retry", "limited")
    assert 75 <= event["seconds"] <= 76


def test_what_is_sent_again_at_once_is_told() -> None:
    dropped = Transient("ServerDisconnectedError: closed", reason="connection", free=True)
    (event,) = told(Retry(in_turn(dropped, "yes"), RetrySettings()))
    assert event == {
        **WHO, "event": "resent", "log_level": "info", "reason": "connection", "problem": "ServerDisconnectedError",
        "attempt": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "event", "more"),
    [
        (
            Transient("ClientConnectorError: Cannot connect to host h:1", reason="unreachable"),
            "server not reached",
            {"problem": "ClientConnectorError: Cannot connect to host h:1", "reason": "unreachable", "tried_for": 1.0},
        ),
        (
            Transient(f"HTTP 429: later, {PROMPT}", reason="limited", retry_after=86_400.0),
            "pause too long",
            {"problem": "HTTP 429", "reason": "limited", "seconds": 86_400.0, "most": 300.0},
        ),
    ],
)
def test_what_may_end_the_run_is_a_warning_for_the_first_of_many(fault: Transient, event: str, more: Event) -> None:
    events = told(Retry(Scripted(lambda request: fault), RetrySettings(budget=1)), calls=8)
    warnings = [entry for entry in events if entry["log_level"] != "info"]
    assert warnings == [{**WHO, **more, "event": event, "log_level": "warning"}]


# -- limit ----------------------------------------------------------------------------------------------------------


def test_a_wait_for_a_limit_is_told_with_its_seconds() -> None:
    """Ten requests may go in any 60 s, and half of them at once: the other five come one by one, 3.06 s apart."""
    events = told(Limit(in_turn(*["yes"] * 11), LimitSettings(rpm=10)), calls=11)
    assert {entry["event"] for entry in events} == {"rate limit wait"}
    last = events[-1]
    assert last.pop("seconds") == pytest.approx(61.2, abs=0.1)  # a window of 60 s, and a margin of 2% of it
    assert last == {
        "event": "rate limit wait", "log_level": "info", "call": "e11#choose/r1", "task": "choose", "model": "m",
        "reason": "limit",
    }  # fmt: skip
    assert all(entry["seconds"] > 1 for entry in events[:-1])


def test_a_wait_for_a_slot_is_no_wait_for_a_limit() -> None:
    """The last of five waits for forty seconds, but only for those before it."""
    assert told(Limit(Delay(Scripted(lambda request: "yes"), 10.0, 0.0, 0), LimitSettings(concurrency=1)), 5) == []


def test_a_pause_is_told_with_what_waits_for_it() -> None:
    busy = Transient(f"HTTP 503: {PROMPT}", retry_after=7.0)
    paused, waited = told(Limit(in_turn(busy, "yes"), LimitSettings(concurrency=1)), calls=2)
    assert paused == {
        **WHO, "event": "endpoint paused", "log_level": "info", "model": "m", "reason": "HTTP 503", "seconds": 7.0,
    }  # fmt: skip
    assert (waited["event"], waited["call"], waited["reason"]) == ("rate limit wait", "e2#choose/r1", "pause")
    assert waited["seconds"] == 7.0


def test_an_empty_gauge_is_a_pause() -> None:
    (learned, paused) = told(Limit(Teller(requests=Gauge(100, 0, 2.5)), LimitSettings()))
    assert learned == {"event": "limit learned", "log_level": "info", "limit": "requests", "value": 100, "model": "m"}
    assert (paused["event"], paused["reason"], paused["seconds"]) == ("endpoint paused", "no requests left", 2.5)


@pytest.mark.parametrize(("kind", "most"), [("requests", 3), ("tokens", None), ("concurrency", 3), ("", float("inf"))])
def test_a_refusal_tells_which_limit_and_what_it_is_taken_for(kind: Any, most: float | None) -> None:
    """The fourth of four at one time is refused; one refusal that names no limit shows none."""

    async def answer(request: Request) -> Completion:
        if request.call == "e4#choose/r1":
            await asyncio.sleep(0.5)
            raise Transient(f"HTTP 429: {PROMPT}", reason="limited", limited=kind)
        await asyncio.sleep(1)
        return Completion("yes")

    class Model:
        complete = staticmethod(answer)

    (event,) = told(Limit(Model(), LimitSettings()), calls=4)
    known = event.pop("most")
    assert known == most if most is not None else 0 < known < float("inf")
    assert event == {
        "event": "refused", "log_level": "info", "call": "e4#choose/r1", "task": "choose", "model": "m",
        "reason": kind or "unnamed",
    }  # fmt: skip


def test_what_a_server_counts_is_told_when_it_shows() -> None:
    basis = Basis()
    with capture_logs() as logs:
        for heard in (None, None, False, True, True, False):
            basis.heard(heard)
    assert [(entry["event"], entry["counted"]) for entry in logs] == [
        ("token count learned", "as asked for"),  # the careful guess, while nothing shows
        ("token count learned", "as used"),
        ("token count learned", "as asked for"),
    ]


# -- budget, journal, batch -----------------------------------------------------------------------------------------


def test_a_budget_tells_who_waits_and_that_it_is_reached() -> None:
    """Two calls are allowed, and two are under way; one of them is stopped and costs nothing, so a third is asked."""
    answers = iter([RunStopped("stopped"), "yes", "yes"])

    async def answer(request: Request) -> Completion:
        await asyncio.sleep(1)
        if isinstance(said := next(answers), Exception):
            raise said
        return Completion(said)

    class Model:
        complete = staticmethod(answer)

    events = told(Budget(Model(), BudgetSettings(calls=2), {}, Estimator()), calls=5)
    waits, reached = events[:-1], events[-1]
    assert [(entry["event"], entry["call"], entry["reason"], entry["log_level"]) for entry in waits] == [
        ("budget wait", f"e{number}#choose/r1", "calls", "info") for number in (3, 4, 5)
    ]
    assert reached == {
        "event": "budget reached", "log_level": "warning", "call": "e4#choose/r1", "task": "choose", "reason": "calls",
        "most": 2, "spent": 2,
    }  # fmt: skip


def test_the_first_failure_of_each_reason_is_a_warning(tmp_path: Path) -> None:
    reasons = ["context", "context", "filtered", "context"]
    errors = [CallFailed(f"refused: {PROMPT}", reason=reason, attempts=3) for reason in reasons]
    with CallStore(tmp_path / "calls.sqlite") as store:
        events = told(Journal(store, in_turn(*errors)), calls=4)
    assert [(entry["call"], entry["reason"], entry["log_level"]) for entry in events] == [
        ("e1#choose/r1", "context", "warning"),
        ("e2#choose/r1", "context", "info"),
        ("e3#choose/r1", "filtered", "warning"),
        ("e4#choose/r1", "context", "info"),
    ]
    first = events[0]
    assert first.pop("seconds") >= 0
    assert first == {
        **WHO, "event": "call failed", "log_level": "warning", "model": "m", "reason": "context", "attempts": 3,
        "problem": "refused",
    }  # fmt: skip


def test_a_failure_that_is_written_down_is_told_once(tmp_path: Path) -> None:
    with CallStore(tmp_path / "calls.sqlite") as store:
        journal = Journal(store, in_turn(CallFailed("no", reason="filtered")))
        assert [entry["event"] for entry in told(journal)] == ["call failed"]
        assert told(journal) == []


def test_a_pack_that_is_taken_apart_is_told() -> None:
    class Packer:
        def packs(self, request: Request) -> bool:
            return True

        async def complete(self, request: Request) -> Completion:
            return Completion("yes")

        async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
            raise CallFailed(f"HTTP 400: {PROMPT}", reason="context")

    (event,) = told(Batch(Packer(), BatchSettings(size=3)), calls=3)
    assert event == {
        **WHO, "event": "pack taken apart", "log_level": "info", "reason": "context", "members": 3,
        "problem": "HTTP 400",
    }  # fmt: skip


# -- the whole stack, against a server ------------------------------------------------------------------------------


async def _told_by_server(tmp_path: Path, faults: list[Any], calls: int, **options: object) -> list[Event]:
    settings = {"backend": "openai", "model": "m", "api_key": "sk-secret-1", **options}
    async with StandIn(faults=faults) as server:
        with CallStore(tmp_path / "calls.sqlite") as store, capture_logs() as logs:
            async with build(LLMSettings.model_validate({**settings, "base_url": server.url}), store) as model:
                asked = (model.complete(ask(f"{PROMPT} {number}", call=f"e{number}")) for number in range(calls))
                await asyncio.gather(*asked, return_exceptions=True)
    return logs


async def test_a_refused_key_is_told_for_the_first_of_many(tmp_path: Path) -> None:
    (event,) = await _told_by_server(tmp_path, [error(401, f"no sk-secret-1 for {PROMPT}")] * 6, 6)
    assert event.pop("call") in {f"e{number}" for number in range(6)}
    assert event == {
        "event": "stopped by the server", "log_level": "warning", "task": "choose", "model": "m",
        "reason": "the server refused the key",
    }  # fmt: skip


async def test_no_event_repeats_a_prompt_or_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fault in turn, each of which repeats what it was sent."""
    monkeypatch.setattr(retry_layer, "_FIRST_PAUSE", 0.0)
    echo = f"cannot do {PROMPT} 0 with Bearer sk-secret-1"
    page = f"<html>{echo}</html>"
    faults = [
        error(503, echo),
        error(429, echo, retry_after="0.01"),
        Fault(502, page, {"Content-Type": "text/html"}),
        Fault(200, page, {"Content-Type": "text/html"}),
        Fault(200, {"error": echo}),
        error(400, f"'temperature' is not supported. {echo}"),
        error(400, echo),
    ]
    logs = await _told_by_server(tmp_path, faults, 1)
    names = [entry["event"] for entry in logs]
    assert sorted(names) == sorted(
        ["retry"] * 5 + ["refused", "endpoint paused", "parameter refused", "resent", "call failed"]
    )
    assert PROMPT not in str(logs)
    assert "sk-secret-1" not in str(logs)
