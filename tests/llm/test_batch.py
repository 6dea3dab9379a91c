"""The batching layer, in virtual time: when packs go out, and what becomes of their members."""

from __future__ import annotations

import asyncio

import pytest
from fakes import ask as ask_one
from standin_clock import run_virtual
from structlog.testing import capture_logs

from simengine.errors import CallFailed, RunStopped
from simengine.llm.layers.batch import Batch
from simengine.llm.layers.limit import Limit
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, Request
from simengine.llm.settings import BatchSettings, LimitSettings, RetrySettings
from simengine.llm.transient import Transient

LINGER = 0.5


class Packer:
    """Answers each text with itself, after ``seconds``; a text that is a key of ``faults`` fails its whole pack once.

    ``packs`` holds the texts and the time of each attempt.
    """

    def __init__(self, seconds: float = 1.0, faults: dict[str, Exception] | None = None) -> None:
        self._seconds = seconds
        self._faults = faults or {}
        self.sent: list[tuple[float, str]] = []
        self.cancelled = 0

    def packs(self, request: Request) -> bool:
        return request.task != "alone"

    async def complete(self, request: Request) -> Completion:
        return (await self.complete_many((request,)))[0]

    async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
        texts = [request.messages[0].content for request in requests]
        self.sent.append((asyncio.get_running_loop().time(), "".join(texts)))
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        for text in texts:
            if text in self._faults:
                raise self._faults[text]
        return tuple(Completion(text) for text in texts)


def layer(packer: Packer, size: int = 3) -> Batch:
    return Batch(packer, BatchSettings(size=size, linger=LINGER))


async def texts_of(batch: object, texts: str) -> list[str]:
    return [answer.text for answer in await asyncio.gather(*(batch.complete(ask_one(text)) for text in texts))]


def test_packs_go_when_full_or_when_the_first_has_waited() -> None:
    packer = Packer()
    assert run_virtual(texts_of(layer(packer), "abcdefgh")) == list("abcdefgh")
    assert packer.sent == [(0, "abc"), (0, "def"), (LINGER, "gh")]


def test_a_flush_sends_what_lingers() -> None:
    async def play() -> list[tuple[float, str]]:
        batch = layer(packer := Packer())
        calls = asyncio.ensure_future(texts_of(batch, "ab"))
        await asyncio.sleep(0.1)
        batch.flush()
        await calls
        batch.flush()
        return packer.sent

    assert run_virtual(play()) == [(0.1, "ab")]


def test_only_what_is_alike_goes_together_and_some_goes_alone() -> None:
    async def play() -> list[str]:
        batch = layer(packer := Packer())
        warm = ask_one("w", temperature=1.0)
        alone = Request("alone", "m", ask_one("x").messages)
        await asyncio.gather(*(batch.complete(each) for each in (ask_one("a"), warm, alone, ask_one("b"))))
        return [texts for _, texts in packer.sent]

    assert run_virtual(play()) == ["x", "ab", "w"]


def test_a_size_of_one_packs_nothing() -> None:
    packer = Packer()
    run_virtual(texts_of(layer(packer, size=1), "ab"))
    assert packer.sent == [(0, "a"), (0, "b")]


def test_what_is_wrong_with_one_is_not_held_against_the_others() -> None:
    async def play() -> list[str]:
        batch = layer(packer)
        got = await asyncio.gather(*(batch.complete(ask_one(text)) for text in "abc"), return_exceptions=True)
        return [each.text if isinstance(each, Completion) else each.reason for each in got]

    packer = Packer(faults={"b": CallFailed("too long", reason="context")})
    with capture_logs() as logs:
        assert run_virtual(play()) == ["a", "context", "c"]
    assert [texts for _, texts in packer.sent] == ["abc", "a", "b", "c"]
    assert [entry["event"] for entry in logs] == ["pack taken apart"]


@pytest.mark.parametrize("fault", [Transient("busy", retry_after=3.0), RunStopped("no key"), KeyError("a bug")])
def test_what_concerns_all_is_raised_to_each(fault: Exception) -> None:
    async def play() -> list[BaseException]:
        batch = layer(Packer(faults={"b": fault}))
        return await asyncio.gather(*(batch.complete(ask_one(text)) for text in "abc"), return_exceptions=True)

    got = run_virtual(play())
    assert [type(each) for each in got] == [type(fault)] * 3
    assert [str(each) for each in got] == [str(fault)] * 3
    assert len({id(each) for each in got}) == 3
    if isinstance(fault, Transient):
        assert [each.retry_after for each in got] == [3.0] * 3


def test_a_failed_pack_is_tried_again_by_its_members() -> None:
    class Once(Packer):
        async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
            if not self.sent:
                self.sent.append((0.0, ""))
                raise Transient("busy")
            return await super().complete_many(requests)

    packer = Once()
    assert run_virtual(texts_of(Retry(layer(packer), RetrySettings()), "abc")) == list("abc")
    assert sorted("".join(texts for _, texts in packer.sent)) == list("abc")


def test_a_cancelled_member_leaves_the_pack_to_the_others() -> None:
    async def play() -> tuple[str, list[tuple[float, str]]]:
        batch = layer(packer := Packer())
        first, second = (asyncio.ensure_future(batch.complete(ask_one(text))) for text in "ab")
        await asyncio.sleep(0.1)
        first.cancel()
        await asyncio.sleep(LINGER)
        return (await second).text, packer.sent

    assert run_virtual(play()) == ("b", [(LINGER, "b")])


@pytest.mark.parametrize("after", [0.1, LINGER + 0.1])
def test_with_its_last_member_a_pack_is_cancelled(after: float) -> None:
    async def play() -> tuple[int, int]:
        batch = layer(packer := Packer())
        calls = [asyncio.ensure_future(batch.complete(ask_one(text))) for text in "ab"]
        await asyncio.sleep(after)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(5)
        return len(packer.sent), packer.cancelled

    assert run_virtual(play()) == ((0, 0) if after < LINGER else (1, 1))


def test_closing_ends_what_lingers_and_what_is_under_way() -> None:
    async def play() -> tuple[list[type[BaseException]], int]:
        batch = layer(packer := Packer())
        calls = [asyncio.ensure_future(batch.complete(ask_one(text))) for text in "abcd"]
        await asyncio.sleep(0.1)
        await batch.aclose()
        got = await asyncio.gather(*calls, return_exceptions=True)
        return [type(each) for each in got], packer.cancelled

    assert run_virtual(play()) == ([asyncio.CancelledError] * 4, 1)


def test_a_pack_is_one_request_to_the_limits_and_lingering_holds_no_slot() -> None:
    async def play() -> tuple[int, int]:
        limit = Limit(packer := Packer(), LimitSettings(concurrency=1, rpm=2))
        batch = Batch(limit, BatchSettings(size=3, linger=LINGER))
        calls = asyncio.ensure_future(texts_of(batch, "abcd"))
        await asyncio.sleep(0.1)
        held = limit.in_flight
        await calls
        assert [time for time, _ in packer.sent] == [0, 1.0]
        return held, limit.started

    assert run_virtual(play()) == (1, 2)
