"""The retrying layer, in virtual time: what is sent again, after which pause, and when that ends."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from fakes import Watch, ask, in_turn, turns
from standin_clock import run_virtual
from structlog.testing import capture_logs

from simengine.errors import CallFailed, RunStopped
from simengine.llm.backends.scripted import Scripted
from simengine.llm.layers.limit import Limit
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, Request
from simengine.llm.settings import LimitSettings, RetrySettings
from simengine.llm.transient import Transient

BUSY = Transient("HTTP 503")


def retry(model: object, **settings: float) -> Retry:
    return Retry(model, RetrySettings(**settings))


def test_what_may_pass_is_sent_again() -> None:
    """Field case 24: 529, 503, 200."""
    model = Watch(Transient("HTTP 529"), BUSY)
    answer = run_virtual(retry(model).complete(ask()))
    assert (answer.text, answer.attempts) == ("yes", 3)
    assert 0.25 <= model.pauses[0] <= 0.5 <= model.pauses[1] <= 1.0


@pytest.mark.parametrize("error", [CallFailed("too long", reason="context"), RunStopped("refused key"), KeyError("x")])
def test_what_will_not_pass_is_not(error: Exception) -> None:
    """Field case 24: a context overflow is not sent again unchanged; a refused key ends the run."""
    model = Watch(error)
    with pytest.raises(type(error)):
        run_virtual(retry(model).complete(ask()))
    assert len(model.times) == 1


def test_pauses_grow_to_half_a_minute_until_the_budget_is_spent() -> None:
    model = Watch(then=BUSY)
    with pytest.raises(CallFailed, match=r"900 s.*HTTP 503") as caught:
        run_virtual(retry(model, budget=900).complete(ask()))
    assert caught.value.reason == "overloaded"
    assert caught.value.where["attempts"] == len(model.times)
    assert 870 <= model.times[-1] <= 900
    assert all(15 <= pause <= 30 for pause in model.pauses[6:])


def test_an_overload_of_a_quarter_of_an_hour_is_survived() -> None:
    """Field case 24: with the default settings, against a server that refuses everything for 15 minutes."""

    async def play() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        calls = 0

        def answer(request: Request) -> str | Exception:
            nonlocal calls
            calls += 1
            return Transient("HTTP 529") if loop.time() < 15 * 60 else "yes"

        answers = await asyncio.gather(*(retry(Scripted(answer)).complete(ask(str(n))) for n in range(64)))
        assert all(each.text == "yes" for each in answers)
        return loop.time(), calls

    ended, calls = run_virtual(play())
    assert 900 <= ended <= 930
    assert calls < 64 * 60, "hammering"


def test_time_lost_in_attempts_counts() -> None:
    """A silent server (case 55): attempts of 120 s each use up 900 s at the eighth."""
    model = Watch(then=Transient("silence", reason="timeout", elapsed=120.0))
    with pytest.raises(CallFailed) as caught:
        run_virtual(retry(model, budget=900).complete(ask()))
    assert (caught.value.reason, caught.value.where["attempts"]) == ("timeout", 8)


def test_the_servers_wish_is_kept() -> None:
    """Field case 15, as the layer sees it: 2, 0.5, 0, 75 and 1.5 s, with up to a second of jitter."""
    waits = [2.0, 0.5, 0.0, 75.0, 1.5]
    model = Watch(*(Transient("HTTP 429", retry_after=wait) for wait in waits))
    run_virtual(retry(model).complete(ask()))
    assert all(wait <= pause <= wait + 1 for wait, pause in zip(waits, model.pauses, strict=True))


def test_a_wish_beyond_the_maximum_stops_the_run_at_once() -> None:
    """Field case 15: not hammering, and not failing call after call either."""
    model = Watch(Transient("HTTP 429: come back tomorrow", retry_after=86_400))
    with pytest.raises(RunStopped, match=r"asks to wait 86400 s.*more than llm.retry.max_wait \(300 s\)") as caught:
        run_virtual(retry(model).complete(ask()))
    assert len(model.times) == 1
    assert "resume" in caught.value.remedy


def test_a_server_that_was_never_reached_stops_the_run() -> None:
    model = Watch(then=Transient("Cannot connect to host h:1", reason="unreachable"))
    with capture_logs() as logs, pytest.raises(RunStopped, match="Cannot connect to host h:1") as caught:
        run_virtual(retry(model, budget=60).complete(ask()))
    assert 30 <= model.times[-1] <= 60
    assert caught.value.remedy
    assert sum(entry["log_level"] == "warning" for entry in logs) == 1


def test_a_first_contact_that_fails_is_tried_for_a_minute_whatever_the_budget() -> None:
    model = Watch(then=Transient("connection refused: nothing listens at http://h/v1", reason="unreachable"))
    with (
        capture_logs() as logs,
        pytest.raises(RunStopped, match="within 60 s, and no call was ever answered") as caught,
    ):
        run_virtual(retry(model).complete(ask()))
    assert 30 <= model.times[-1] <= 60
    assert "llm.base_url" in caught.value.remedy
    (warning,) = (entry for entry in logs if entry["log_level"] == "warning")
    assert (warning["event"], warning["tried_for"]) == ("server not reached", 60)
    assert warning["problem"] == "connection refused: nothing listens at http://h/v1"


@pytest.mark.parametrize("sign", ["yes", BUSY, Transient("silence", reason="timeout"), CallFailed("no")])
def test_a_server_that_was_reached_before_gets_the_whole_budget(sign: str | Exception) -> None:
    model = Watch(sign, then=Transient("connection refused", reason="unreachable"))
    layer = retry(model, budget=600)

    async def play() -> None:
        with contextlib.suppress(CallFailed):
            await layer.complete(ask("first"))
        await layer.complete(ask("second"))

    with pytest.raises(RunStopped, match="within 600 s: connection refused"):
        run_virtual(play())
    assert 570 <= model.times[-1] <= 660


def test_calls_that_pause_are_counted() -> None:
    async def play() -> list[int]:
        layer = retry(in_turn(BUSY, BUSY, "yes", "yes"))
        calls = [asyncio.create_task(layer.complete(ask(text))) for text in ("a", "b")]
        await turns()
        counts = [layer.pausing]
        await asyncio.gather(*calls)
        return [*counts, layer.pausing]

    assert run_virtual(play()) == [2, 0]


def test_what_is_free_is_sent_at_once_and_costs_nothing() -> None:
    """Field case 22: each dropped keep-alive socket costs a resend, but no pause and none of the budget."""
    dropped = Transient("dropped", reason="connection", elapsed=5.0, free=True)
    model = Watch(*[dropped] * 4)
    layer = retry(model, budget=0)
    answer = run_virtual(layer.complete(ask()))
    assert (answer.text, answer.attempts, layer.resent) == ("yes", 5, 4)
    assert model.pauses == [0.0] * 4


def test_pauses_are_spread_and_repeatable() -> None:
    def pause_of(text: str, seed: int = 0) -> float:
        model = Watch(BUSY)
        run_virtual(Retry(model, RetrySettings(), seed=seed).complete(ask(text)))
        return model.pauses[0]

    drawn = [pause_of(str(n)) for n in range(20)]
    assert len(set(drawn)) == 20
    assert drawn == [pause_of(str(n)) for n in range(20)]
    assert pause_of("0", seed=1) != drawn[0]


def test_a_terminal_error_knows_how_many_attempts_it_took() -> None:
    with pytest.raises(CallFailed) as caught:
        run_virtual(retry(in_turn(BUSY, CallFailed("no"))).complete(ask()))
    assert caught.value.where["attempts"] == 2


def test_a_pause_holds_no_slot() -> None:
    """With one slot, a second call is answered while the first pauses."""

    async def play() -> list[str]:
        done: list[str] = []
        limit = Limit(in_turn(BUSY, "second", "first"), LimitSettings(concurrency=1))
        layer = retry(limit)

        async def call(name: str) -> None:
            done.append((await layer.complete(ask(name))).text)

        await asyncio.gather(call("a"), call("b"))
        assert limit.started == 3
        return done

    assert run_virtual(play()) == ["second", "first"]


def test_each_retry_is_told() -> None:
    with capture_logs() as logs:
        run_virtual(retry(in_turn(BUSY, "yes")).complete(ask(call="e1/choose")))
    (told,) = (entry for entry in logs if entry["event"] == "retry")
    assert (told["call"], told["reason"], told["problem"]) == ("e1/choose", "overloaded", "HTTP 503")


def test_completions_pass_unchanged() -> None:
    whole = Completion("yes", sent="{}")
    assert run_virtual(retry(Scripted(lambda request: whole)).complete(ask())) == whole
