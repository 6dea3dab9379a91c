"""The stand-in server keeps what it promises, since other tests and benchmarks are held against it."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from standin import MIXED, Lognormal, StandIn
from standin_limits import Limits


def body(text: str = "a b c", **options: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **options}


async def post(server: StandIn, *bodies: dict[str, object]) -> list[int]:
    async with aiohttp.ClientSession() as session:

        async def one(said: dict[str, object]) -> int:
            try:
                async with session.post(f"{server.url}/chat/completions", json=said) as reply:
                    await reply.read()
                    return reply.status
            except aiohttp.ClientError:
                return 0

        return list(await asyncio.gather(*map(one, bodies)))


def admitted(limits: Limits, *arrivals: tuple[float, int]) -> list[bool]:
    return [limits.enter(time, tokens, 0) is None for time, tokens in arrivals]


class TestLimits:
    def test_requests_over_any_window(self) -> None:
        """Two in any 10 s: a slot is free again exactly 10 s after it was taken, not when a minute turns."""
        limits = Limits(rpm=12, window=10)
        times = [0.0, 9.0, 9.9, 10.0, 18.9, 19.0]
        assert admitted(limits, *((time, 1) for time in times)) == [True, True, False, True, False, True]
        assert limits.refused == {"requests": 2}

    def test_tokens_over_any_window(self) -> None:
        limits = Limits(tpm=600, window=10)
        assert admitted(limits, (0, 60), (1, 40), (2, 1), (10, 60), (10, 1), (11, 40)) == [
            True, True, False, True, False, True,
        ]  # fmt: skip
        assert limits.enter(12, 50, 0) == ("tokens", 8.0)

    def test_headers_tell_how_things_stand(self) -> None:
        limits = Limits(rpm=12, tpm=600, window=10)
        limits.enter(5, 30, 0)
        assert limits.headers(7) == {
            "x-ratelimit-limit-requests": "2",
            "x-ratelimit-remaining-requests": "1",
            "x-ratelimit-reset-requests": "8.000s",
            "x-ratelimit-limit-tokens": "100",
            "x-ratelimit-remaining-tokens": "70",
            "x-ratelimit-reset-tokens": "8.000s",
        }

    async def test_concurrency(self) -> None:
        async with StandIn(latency=0.1, limits=Limits(concurrency=2)) as server:
            statuses = await post(server, *(body(str(n)) for n in range(5)))
            again = await post(server, body("6"))
        assert sorted(statuses) == [200, 200, 429, 429, 429]
        assert again == [200]
        assert (server.limits.refused, server.greatest) == ({"concurrency": 3}, 2)

    @pytest.mark.parametrize(("counts", "right"), [("reserved", 3 + 50), ("used", 3 + 1)])
    async def test_which_tokens_count(self, counts: str, right: int) -> None:
        async with StandIn(limits=Limits(counts=counts)) as server:
            await post(server, body(max_tokens=50))
        assert [tokens for _, tokens in server.limits.entered] == [right]


async def test_latencies_are_seeded_and_lognormal() -> None:
    draws = sorted(Lognormal(0.8, 0.5, seed=3).draw(str(n)) for n in range(2000))
    assert draws == sorted(Lognormal(0.8, 0.5, seed=3).draw(str(n)) for n in range(2000))
    assert draws[1000] == pytest.approx(0.8, abs=0.05)
    assert draws[round(2000 * 0.8413)] == pytest.approx(1.319, abs=0.09)


async def test_a_share_of_requests_meets_a_fault_and_repeats_are_counted() -> None:
    mixed = [fault for fault in MIXED if fault.kind != "hang"]
    async with StandIn(share=0.2, mixed=mixed, seed=1) as server:
        statuses = await post(server, *(body(str(n)) for n in range(200)))
        assert server.repeats == 0
        assert 0 < statuses.count(200) - len(server.answered) < 20, "a page comes with status 200 and is no answer"
        await post(server, *(body(str(n)) for n in range(30)))
        repeats = server.repeats
    assert {0, 200, 429, 500, 503, 529} == set(statuses)
    assert 120 <= statuses.count(200) <= 190
    assert 10 <= repeats <= 30
