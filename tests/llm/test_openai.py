"""The openai backend against a stand-in server: what it sends, what it reads, when it opens and closes."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest
from clients import KEY, ask, backend, complete
from standin import StandIn, chat

from simengine.llm.layers.limit import Limit
from simengine.llm.request import Sampling, Usage
from simengine.llm.settings import LimitSettings


class TestSending:
    async def test_the_body_is_what_was_asked_and_nothing_else(self) -> None:
        async with StandIn() as server:
            answer = await complete(server, ask(sampling=Sampling(temperature=0.0, max_tokens=16, top_p=0.5, seed=3)))
            await complete(server, ask(sampling=Sampling()))
        messages = [{"role": "system", "content": "play"}, {"role": "user", "content": "hello"}]
        assert server.bodies[0] == {
            "model": "m", "messages": messages, "temperature": 0.0, "max_tokens": 16, "top_p": 0.5, "seed": 3,
        }  # fmt: skip
        assert server.bodies[1] == {"model": "m", "messages": messages}
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert answer.sent == '{"model":"m","temperature":0.0,"max_tokens":16,"top_p":0.5,"seed":3}'

    async def test_without_a_key_the_one_in_the_environment_stays_at_home(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-real-key")
        async with StandIn() as server:
            await complete(server, api_key="")
        assert "sk-real-key" not in str(server.headers)

    async def test_more_calls_than_the_pool_wait_for_nothing(self) -> None:
        """Field case 23: the pool holds as many as may be under way, also beyond aiohttp's own limit of 100."""
        async with StandIn(together=130) as server:
            model = backend(server, timeout=10, limits={"concurrency": 130})
            await asyncio.gather(*(model.complete(ask(str(n))) for n in range(130)))
            await model.aclose()
        assert server.greatest == 130

    async def test_time_in_the_queue_is_not_counted(self) -> None:
        """Field case 23 in small: eight calls, two at a time, 0.03 s each, time-out 0.1 s; the last is sent at 0.09."""
        async with StandIn(latency=0.03) as server:
            model = backend(server, timeout=0.1, limits={"concurrency": 2})
            await model.complete(ask("first"))  # the SDK's first call looks the platform up
            limited = Limit(model, LimitSettings(concurrency=2))
            started = time.monotonic()
            answers = await asyncio.gather(*(limited.complete(ask(str(n))) for n in range(8)))
            assert time.monotonic() - started > 0.1
            await model.aclose()
        assert len(answers) == 8

    async def test_requests_reuse_connections(self) -> None:
        async with StandIn() as server:
            model = backend(server, limits={"concurrency": 1})
            for n in range(3):
                await model.complete(ask(str(n)))
            await model.aclose()
        assert len(server.sockets) == 1


class TestReading:
    @pytest.mark.parametrize(
        ("usage", "right"),
        [
            (None, Usage()),
            ({"total_tokens": 9}, Usage()),
            ({"prompt_tokens": 7, "completion_tokens": None}, Usage(7, None)),
            (
                {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
                Usage(7, 2, 4),
            ),
            ({"prompt_tokens": 7, "completion_tokens": 0, "prompt_tokens_details": None}, Usage(7, 0)),
        ],
    )
    async def test_usage_that_is_not_told_is_unknown(self, usage: object, right: Usage) -> None:
        async with StandIn(lambda body: {**chat("ok", body), "usage": usage}) as server:
            assert (await complete(server)).usage == right

    async def test_usage_that_is_missing_is_unknown(self) -> None:
        def reply(body: dict) -> dict:
            whole = chat("ok", body)
            del whole["usage"]
            return whole

        async with StandIn(reply) as server:
            answer = await complete(server)
        assert (answer.text, answer.usage) == ("ok", Usage())

    @pytest.mark.parametrize(
        ("message", "text", "reasoning"),
        [
            ({"content": "", "reasoning_content": "B"}, "", "B"),
            ({"content": None, "reasoning": "B"}, "", "B"),
            ({"content": "A", "reasoning_content": None, "reasoning": "B"}, "A", "B"),
            ({"content": "broken \ud800 half"}, "broken ? half", ""),
            (None, "", ""),
        ],
    )
    async def test_null_content_is_an_empty_text(self, message: object, text: str, reasoning: str) -> None:
        def reply(body: dict) -> dict:
            choice = {"index": 0, "finish_reason": "stop"} | ({} if message is None else {"message": message})
            return {**chat("", body), "choices": [choice]}

        async with StandIn(reply) as server:
            answer = await complete(server)
        assert (answer.text, answer.reasoning, answer.finish_reason) == (text, reasoning, "stop")

    async def test_an_answer_that_only_calls_a_tool_says_so(self) -> None:
        """Field case 8: with whatever finish reason, there is no text, and it is plain why."""
        message = {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {}}]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        async with StandIn(lambda body: {**chat("", body), "choices": [choice]}) as server:
            answer = await complete(server)
        assert (answer.text, answer.finish_reason) == ("", "tool_calls")

    @pytest.mark.parametrize(("opted", "text"), [(False, ""), (True, "B")])
    async def test_reasoning_is_an_answer_only_where_the_scenario_says_so(self, opted: bool, text: str) -> None:
        """Field case 8: content empty, the answer in a field of its own."""

        def reply(body: dict) -> dict:
            message = {"content": "", "reasoning_content": "B"}
            return {**chat("", body), "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}

        async with StandIn(reply) as server:
            answer = await complete(server, reasoning_as_answer=opted)
        assert (answer.text, answer.reasoning) == (text, "B")

    @pytest.mark.parametrize("choices", [[], None])
    async def test_no_choices_is_an_empty_text(self, choices: object) -> None:
        async with StandIn(lambda body: {**chat("", body), "choices": choices}) as server:
            answer = await complete(server)
        assert (answer.text, answer.finish_reason) == ("", "unknown")

    async def test_the_finish_reason_and_the_model_are_kept(self) -> None:
        def reply(body: dict) -> dict:
            whole = chat("half an ans", body)
            whole["choices"][0]["finish_reason"] = "length"
            return {**whole, "model": "m-2026"}

        async with StandIn(reply) as server:
            answer = await complete(server)
        assert (answer.finish_reason, answer.model) == ("length", "m-2026")


class TestLoops:
    """Field case 59: sessions are made and closed inside the run; warnings are errors in this suite."""

    def test_a_second_run_in_another_loop(self) -> None:
        with StandIn.in_thread() as server:
            model = backend(server)

            async def run() -> str:
                try:
                    return (await model.complete(ask())).text
                finally:
                    await model.aclose()

            assert [asyncio.run(run()) for _ in range(2)] == ["ok", "ok"]
            gc.collect()
        assert server.requests == 2

    async def test_closing_twice_or_unused_is_harmless(self) -> None:
        async with StandIn() as server:
            model = backend(server)
            await model.aclose()
            await model.complete(ask())
            await model.aclose()
            await model.aclose()
