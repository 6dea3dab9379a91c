"""The limiting layer against a server that enforces its limits exactly, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable

import pytest
from fakes import Watch, ask
from standin_clock import run_virtual
from standin_limits import Limits
from structlog.testing import capture_logs

from simengine.llm import attempt
from simengine.llm.attempt import Gauge
from simengine.llm.backends.delay import Delay
from simengine.llm.backends.headers import GaugeReader
from simengine.llm.backends.scripted import Scripted
from simengine.llm.layers.limit import Limit, Rates
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, Message, Request, Sampling, Usage
from simengine.llm.settings import LimitSettings, RetrySettings
from simengine.llm.transient import Transient

WINDOW = 5.0
WINDOWS = 10


class Server:
    """A backend with a stand-in's limits: requests travel for up to ``travel`` s and are answered after a latency.

    A prompt has one token for each ``characters_per_token``, a reply 20 to 80, whatever ``max_tokens`` says.
    """

    def __init__(
        self, limits: Limits, *, latency: float = 0.3, travel: float = 0.02, characters_per_token: float = 5.5
    ) -> None:
        self.limits = limits
        self.travel = travel
        self.latency = latency
        self.characters_per_token = characters_per_token
        self.under_way = 0
        self.busy = 0.0
        self._random = random.Random(1)
        self._gauges = GaugeReader()

    async def complete(self, request: Request) -> Completion:
        current = attempt.current.get()
        assert current is not None
        current.sent()
        await asyncio.sleep(self._random.uniform(0, self.travel))
        loop = asyncio.get_running_loop()
        size = sum(len(message.content) for message in request.messages)
        prompt, reply = round(size / self.characters_per_token), self._random.randint(20, 80)
        counted = reply if self.limits.counts == "used" else request.sampling.max_tokens or reply
        met = self.limits.enter(loop.time(), prompt + counted, self.under_way)
        current.gauges.update(self._gauges.read(self.limits.headers(loop.time()), loop.time()))
        if met is not None:
            kind, wait = met
            raise Transient(f"{kind} limit", reason="limited", retry_after=wait or None, limited=kind)
        self.under_way += 1
        began = loop.time()
        await asyncio.sleep(self.latency * self._random.uniform(0.5, 1.5))
        self.under_way -= 1
        self.busy += min(loop.time(), WINDOW * WINDOWS) - began if began < WINDOW * WINDOWS else 0.0
        return Completion("yes", usage=Usage(prompt, reply))


def prompt(number: int) -> Request:
    """Prompts of 600 to 1400 characters: about 110 to 250 tokens."""
    text = "x" * random.Random(number).randint(600, 1400)
    return Request("choose", "m", (Message("user", text),), Sampling(0.0, max_tokens=100), call=str(number))


async def saturate(model: object, make: Callable[[int], Request] = prompt, workers: int = 400) -> None:
    """More calls at a time than any limit allows, until the measured windows are over."""
    loop = asyncio.get_running_loop()
    numbers = iter(range(10**6))

    async def work() -> None:
        while loop.time() < WINDOW * WINDOWS:
            await model.complete(make(next(numbers)))

    tasks = [asyncio.ensure_future(work()) for _ in range(workers)]
    await asyncio.sleep(WINDOW * WINDOWS + 0.001)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def achieved(server: Server, settings: LimitSettings) -> tuple[float, float]:
    """The part of what the server allows that was made use of, and the part of attempts that it refused."""
    limits = server.limits

    async def play() -> None:
        await saturate(Retry(Limit(server, settings), RetrySettings()))

    run_virtual(play())
    inside = [tokens for time, tokens in limits.entered if time < WINDOW * WINDOWS]
    if limits.rpm is not None:
        part = len(inside) / (limits.requests_per_window * WINDOWS)
    elif limits.tpm is not None:
        part = sum(inside) / (limits.tokens_per_window * WINDOWS)
    else:
        assert limits.concurrency is not None
        part = server.busy / (limits.concurrency * WINDOW * WINDOWS)
    refused = sum(limits.refused.values())
    return part, refused / (refused + len(limits.entered))


LOADS: dict[str, Callable[[], Limits]] = {
    "requests": lambda: Limits(rpm=1200, window=WINDOW),
    "tokens, reserved": lambda: Limits(tpm=400_000, window=WINDOW, counts="reserved"),
    "tokens, used": lambda: Limits(tpm=400_000, window=WINDOW, counts="used"),
    "concurrency": lambda: Limits(concurrency=40, window=WINDOW),
}


def server(load: str, gauges: bool = True) -> Server:
    limits = LOADS[load]()
    limits.gauges = gauges
    # Time on the way is time in which a slot of the server stands empty, whoever fills it.
    return Server(limits, travel=0.005 if limits.concurrency else 0.02)


@pytest.mark.parametrize("load", LOADS)
def test_what_is_configured_is_reached_and_never_exceeded(load: str) -> None:
    there = server(load)
    given = {"rpm": there.limits.rpm, "tpm": there.limits.tpm, "concurrency": there.limits.concurrency or 100}
    part, refused = achieved(there, LimitSettings.model_validate({**given, "window": WINDOW}))
    assert refused == 0
    assert part >= 0.98


@pytest.mark.parametrize("load", LOADS)
def test_what_is_only_learned_is_reached_with_few_refusals(load: str) -> None:
    part, refused = achieved(server(load), LimitSettings(window=WINDOW))
    assert refused <= 0.02
    assert part >= 0.98


@pytest.mark.parametrize("load", LOADS)
def test_refusals_alone_teach_enough(load: str) -> None:
    """A server without ``x-ratelimit-*`` headers."""
    part, refused = achieved(server(load, gauges=False), LimitSettings(window=WINDOW))
    assert refused <= 0.04
    assert part >= 0.95


def test_a_reserving_server_without_headers_is_found_out_by_its_refusals() -> None:
    """Configured at what the server allows; replies take less than they might, which is seen to count for nothing."""
    there = server("tokens, reserved", gauges=False)
    part, refused = achieved(there, LimitSettings(tpm=there.limits.tpm, window=WINDOW))
    assert 0 < refused <= 0.02
    assert part >= 0.98


def test_prompts_in_another_script_than_expected_are_measured() -> None:
    """Two characters to a token, where four were supposed: what goes out before the first replies is too much."""
    there = Server(Limits(tpm=600_000, window=WINDOW, counts="used"), characters_per_token=2)
    part, refused = achieved(there, LimitSettings(tpm=600_000, window=WINDOW))
    assert refused <= 0.02
    assert part >= 0.98


class Teller:
    """A backend that answers at once, with gauges of its own for each request, and notes when it was asked."""

    def __init__(self, gauges: Callable[[Request], dict[str, Gauge]] = lambda request: {}) -> None:
        self._gauges = gauges
        self.asked: list[tuple[str, float]] = []

    async def complete(self, request: Request) -> Completion:
        current = attempt.current.get()
        assert current is not None
        current.sent()
        self.asked.append((request.call, asyncio.get_running_loop().time()))
        current.gauges.update(self._gauges(request))
        return Completion("yes", usage=Usage(10, 10))


async def ask_all(limit: Limit, *requests: Request) -> None:
    await asyncio.gather(*(limit.complete(request) for request in requests))


def of(model: str, call: str, **options: object) -> Request:
    return Request("choose", model, (Message("user", "x" * 40),), Sampling(0.0, max_tokens=10), call=call, **options)


def test_a_pause_that_is_asked_for_holds_for_everyone() -> None:
    """Field case 15: 64 workers, one of which is told to wait 20 s; the others are held back too, and come apart."""

    async def play() -> list[float]:
        loop, times = asyncio.get_running_loop(), []

        def answer(request: Request) -> str | Exception:
            times.append(loop.time())
            return Transient("HTTP 429", reason="limited", retry_after=20.0) if len(times) == 1 else "yes"

        limit = Limit(Scripted(answer), LimitSettings())
        with pytest.raises(Transient):
            await limit.complete(ask("refused"))
        began = loop.time()
        await asyncio.gather(*(limit.complete(ask(str(n))) for n in range(64)))
        return [time - began for time in times[1:]]

    waited = run_virtual(play())
    assert len(waited) == 64
    assert min(waited) >= 20
    assert max(waited) <= 22
    assert len({round(time, 6) for time in waited}) == 64


def test_the_shares_of_two_models_are_their_own() -> None:
    """A limit that headers tell is the model's: the other goes on while the first waits for its window."""

    def gauges(request: Request) -> dict[str, Gauge]:
        return {"requests": Gauge(limit=2 if request.model == "strong" else 100)}

    async def play() -> dict[str, float]:
        teller = Teller(gauges)
        limit = Limit(teller, LimitSettings(window=10))
        await ask_all(limit, of("strong", "s0"), of("cheap", "c0"))
        await ask_all(
            limit, *(of("strong", f"s{n}") for n in range(1, 4)), *(of("cheap", f"c{n}") for n in range(1, 4))
        )
        return {call: round(time, 3) for call, time in teller.asked}

    # The window of 10 s is kept for 10.2 s.
    assert run_virtual(play()) == {
        "s0": 0, "c0": 0, "s1": 0, "c1": 0, "c2": 0, "c3": 0, "s2": 10.2, "s3": 10.2,
    }  # fmt: skip


def test_configured_limits_are_shared_by_all_models() -> None:
    async def play() -> list[float]:
        teller = Teller()
        await ask_all(Limit(teller, LimitSettings(rpm=12, window=10)), *(of(f"m{n}", str(n)) for n in range(4)))
        return [round(time, 3) for _, time in teller.asked]

    assert run_virtual(play()) == [0, 0, 10.2, 10.2]


@pytest.mark.parametrize(("reset", "right"), [(6.5, 6.5), (360.0, 0.0)])
def test_nothing_left_of_a_limit_that_is_not_known(reset: float, right: float) -> None:
    """Field case 17: none remaining, though we know of no limit: wait for the reset, unless that is out of bounds."""

    async def play() -> list[float]:
        teller = Teller(lambda request: {"tokens": Gauge(remaining=0, reset=reset)})
        limit = Limit(teller, LimitSettings(), longest=300)
        for call in ("a", "b"):
            await limit.complete(of("m", call))
        return [time for _, time in teller.asked]

    first, second = run_virtual(play())
    assert right <= second - first <= right + 2


def test_priority_goes_first_and_a_great_need_is_not_passed_by_small_ones() -> None:
    async def play() -> list[str]:
        teller = Teller()
        limit = Limit(teller, LimitSettings(tpm=60, window=60))
        great = Request("rank", "m", (Message("user", "x" * 160),), Sampling(0.0, max_tokens=15), call="great")
        small = [of("m", f"small{n}") for n in range(5)]
        urgent = of("m", "urgent", priority=9)
        await ask_all(limit, small[0], small[1], great, *small[2:], urgent)
        return [call for call, _ in teller.asked]

    # 20 tokens each and 55 for the great one; it is next in line, so that nothing small goes before it.
    assert run_virtual(play()) == ["small0", "urgent", "small1", "great", "small2", "small3", "small4"]


def test_a_need_beyond_the_whole_limit_goes_alone() -> None:
    async def play() -> list[float]:
        teller = Teller()
        huge = Request("rank", "m", (Message("user", "x" * 4000),), Sampling(0.0), call="huge")
        await ask_all(Limit(teller, LimitSettings(tpm=60, window=60)), of("m", "a"), huge, of("m", "b"))
        return [round(time, 1) for _, time in teller.asked]

    # A minute is kept for 61.2 s. The whole of it, at twice the mean rate, takes 30.6 s, of which 6.1 may be ahead.
    assert run_virtual(play()) == [0, 61.2, 85.7]


def test_a_window_is_not_emptied_in_one_burst() -> None:
    """600 a minute: a tenth of half a minute's at once, the rest at 20 a second, and nothing after 600 until 61.2 s."""

    async def play() -> list[float]:
        teller = Teller()
        limit = Limit(teller, LimitSettings(rpm=600))
        await ask_all(limit, *(of("m", str(n)) for n in range(700)))
        return [time for _, time in teller.asked]

    times = run_virtual(play())
    assert sum(time == 0 for time in times) == 120
    assert sum(0 < time <= 10 for time in times) == pytest.approx(196, abs=2)
    assert sum(time < 61.2 for time in times) == 600


def test_a_refusal_now_and_then_that_names_no_limit_teaches_none() -> None:
    """Every fifth attempt is refused, whatever the rate; a thousand calls are not slowed down for it."""

    async def play() -> tuple[float, Rates]:
        count = 0

        def answer(request: Request) -> str | Exception:
            nonlocal count
            count += 1
            return Transient("HTTP 429: slow down", reason="limited") if count % 5 == 0 else "yes"

        limit = Limit(Scripted(answer), LimitSettings())
        retry = Retry(limit, RetrySettings())
        await asyncio.gather(*(retry.complete(ask(str(n))) for n in range(1000)))
        return asyncio.get_running_loop().time(), limit.rates()

    time, rates = run_virtual(play())
    assert time < 10
    assert rates.most_requests == math.inf


def test_a_streak_of_refusals_that_name_no_limit_is_one_of_requests() -> None:
    """A limit of 30 in 10 s, refused with a bare "Too Many Requests"."""
    limits = Limits(rpm=180, window=10)

    async def play() -> None:
        loop = asyncio.get_running_loop()

        def answer(request: Request) -> str | Exception:
            met = limits.enter(loop.time(), 0, 0)
            return Transient("HTTP 429: Too Many Requests", reason="limited") if met else "yes"

        retry = Retry(Limit(Scripted(answer), LimitSettings(window=10)), RetrySettings())
        await asyncio.gather(*(retry.complete(ask(str(n))) for n in range(300)))
        assert loop.time() < 115  # 90 s of waiting, were the limit known

    run_virtual(play())
    assert sum(limits.refused.values()) < 80  # of which up to 64 before the first is answered


def test_a_rehearsal_keeps_to_the_limits_too() -> None:
    """Delayed answers, 30 in any 10 s: the window runs from the sending, not from the answer 4 s later."""

    async def play() -> float:
        limit = Limit(Delay(Scripted(lambda request: "yes"), 4.0, 0.0, 0), LimitSettings(rpm=180, window=10))
        await asyncio.gather(*(limit.complete(ask(str(n), call=str(n))) for n in range(61)))
        return asyncio.get_running_loop().time()

    assert 20.4 + 4 <= run_virtual(play()) <= 25


def test_rates_are_told_per_minute() -> None:
    async def play() -> Rates:
        limit = Limit(Teller(), LimitSettings(rpm=120, tpm=6000, window=30))
        await ask_all(limit, *(of("m", str(n)) for n in range(15)))
        return limit.rates()

    assert run_virtual(play()) == Rates(requests=30, tokens=600, most_requests=120, most_tokens=6000)


def test_a_refusal_and_a_pause_are_told() -> None:
    busy = Transient("HTTP 429: limit of requests per min", reason="limited", retry_after=2.0, limited="requests")
    with capture_logs() as logs, pytest.raises(Transient):
        run_virtual(Limit(Watch(busy), LimitSettings()).complete(ask()))
    assert [entry["event"] for entry in logs] == ["refused", "endpoint paused"]
