"""The openai backend with several requests in one attempt: text completions and embeddings."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from pathlib import Path

import pytest
from clients import backend
from standin import Body, Fault, StandIn, completions, embeddings, refuses, vector_of

from simengine.errors import CallFailed
from simengine.llm import CallStore, LLMSettings, build
from simengine.llm.backends.reading import pack, unpack
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Message, Request, Sampling, Usage
from simengine.llm.settings import RetrySettings

EIGHT = [0.5, -0.25, 1.0, 2.0, -3.5, 0.0, 0.125, 8.0]


def ask(*texts: str, **options: object) -> Request:
    messages = tuple(Message("user", text) for text in texts)
    return Request("choose", "m", messages, Sampling(0.0, max_tokens=8), **options)


def embed(text: str) -> Request:
    return Request("embed", "e", (Message("user", text),), Sampling(0.0))


def said(reply: object) -> StandIn:
    """A server whose every reply to an embeddings request has this for ``data``."""
    return StandIn(faults=[_fault(reply)] * 9)


def _fault(data: object) -> Fault:
    return Fault(200, {"object": "list", "model": "e", "data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}})


class TestCompletions:
    async def test_prompts_go_as_a_list_and_answers_come_in_their_order(self) -> None:
        def backwards(body: Body) -> Body:
            whole = completions("ok", body)
            return {**whole, "choices": whole["choices"][::-1]}

        async with StandIn(backwards) as server:
            model = backend(server, api="completions")
            answers = await model.complete_many((ask("play", "a b c"), ask("d")))
            await model.aclose()
        assert server.paths == ["/v1/completions"]
        assert server.bodies == [{"model": "m", "temperature": 0.0, "max_tokens": 8, "prompt": ["play\n\na b c", "d"]}]
        assert [answer.text for answer in answers] == ["ok c", "ok d"]
        assert json.loads(answers[0].sent)["prompt"] == "play\n\na b c"
        # 5 prompt and 4 reply tokens in all, shared out by characters (11 of 12, and 4 of 8).
        assert [answer.usage for answer in answers] == [Usage(4, 2), Usage(1, 2)]

    async def test_one_request_is_a_list_of_one(self) -> None:
        async with StandIn() as server:
            model = backend(server, api="completions")
            assert (await model.complete(ask("a"))).text == "ok a"
            await model.aclose()

    async def test_usage_that_is_missing_is_unknown_for_all(self) -> None:
        async with StandIn(lambda body: {**completions("ok", body), "usage": None}) as server:
            model = backend(server, api="completions")
            answers = await model.complete_many((ask("a"), ask("b")))
            await model.aclose()
        assert [answer.usage for answer in answers] == [Usage(), Usage()]

    async def test_fewer_answers_than_prompts_are_no_answer(self) -> None:
        async with StandIn(lambda body: {**completions("ok", body), "choices": []}) as server:
            model = backend(server, api="completions")
            with pytest.raises(CallFailed, match="0 choices came where 2 were asked for") as caught:
                await model.complete_many((ask("a"), ask("b")))
            await model.aclose()
        assert caught.value.reason == "incomplete"


class TestEmbeddings:
    """Field case 20."""

    async def test_floats_are_asked_for_and_read(self) -> None:
        async with StandIn() as server:
            model = backend(server)
            (answer,) = await model.complete_many((embed("a b"),))
            await model.aclose()
        assert server.bodies == [{"model": "e", "encoding_format": "float", "input": ["a b"]}]
        assert list(unpack(answer.text)) == vector_of("a b")
        assert answer.usage == Usage(2, None)

    @pytest.mark.parametrize(
        "vector", [EIGHT, base64.b64encode(struct.pack("<8f", *EIGHT)).decode()], ids=["list", "base64"]
    )
    async def test_both_encodings_come_to_eight_numbers(self, vector: object) -> None:
        async with said([{"index": 0, "embedding": vector}]) as server:
            model = backend(server)
            answer = await model.complete(embed("a"))
            await model.aclose()
        assert list(unpack(answer.text)) == EIGHT

    async def test_items_are_put_in_order(self) -> None:
        def turned(body: Body) -> Body:
            whole = embeddings(body)
            return {**whole, "data": [whole["data"][at] for at in (2, 0, 1)]}

        async with StandIn(
            faults=[_fault(turned({"input": list("abc"), "encoding_format": "float"})["data"])]
        ) as server:
            model = backend(server)
            answers = await model.complete_many(tuple(map(embed, "abc")))
            await model.aclose()
        assert [list(unpack(answer.text)) for answer in answers] == [vector_of(text) for text in "abc"]

    @pytest.mark.parametrize(
        ("data", "reason", "says"),
        [
            ([], "incomplete", "0 embeddings came where 3 were asked for"),
            ([{"index": at, "embedding": EIGHT} for at in (0, 1)], "incomplete", "2 embeddings came where 3"),
            ([{"index": 0, "embedding": EIGHT}] * 3, "incomplete", "under wrong numbers"),
            ([{"index": at, "embedding": []} for at in range(3)], "embedding", "empty"),
            ([{"index": at, "embedding": None} for at in range(3)], "embedding", "empty"),
            ([{"index": at, "embedding": [0.0] * 8} for at in range(3)], "embedding", "all zeros"),
            ([{"index": at, "embedding": "AAA"} for at in range(3)], "embedding", "cannot be read"),
            ([{"index": at, "embedding": EIGHT[: 8 - at]} for at in range(3)], "embedding", "differ in width"),
        ],
    )
    async def test_what_is_no_embedding_is_named(self, data: object, reason: str, says: str) -> None:
        async with said(data) as server:
            model = backend(server)
            with pytest.raises(CallFailed, match=says) as caught:
                await model.complete_many(tuple(map(embed, "abc")))
            await model.aclose()
        assert caught.value.reason == reason

    async def test_a_width_that_changes_under_way_is_named(self) -> None:
        faults = [_fault([{"index": 0, "embedding": EIGHT[:width]}]) for width in (8, 2)]
        async with StandIn(faults=faults) as server:
            model = backend(server)
            await model.complete(embed("a"))
            with pytest.raises(CallFailed, match="has 2 numbers where others had 8") as caught:
                await model.complete(embed("b"))
            await model.aclose()
        assert caught.value.reason == "embedding"

    async def test_an_encoding_that_is_refused_is_left_out(self) -> None:
        async with StandIn(check=refuses("encoding_format")) as server:
            model = backend(server)
            answer = await Retry(model, RetrySettings(budget=0)).complete(embed("a"))
            await model.aclose()
        assert list(unpack(answer.text)) == vector_of("a")  # the stand-in's own default is base64

    def test_what_was_packed_is_unpacked(self) -> None:
        assert list(unpack(pack(EIGHT))) == EIGHT
        with pytest.raises(ValueError, match="no packed vector"):
            unpack("no base64 at all")

    async def test_a_stack_embeds_in_packs_and_asks_nothing_twice(self, tmp_path: Path) -> None:
        texts = [f"text {n}" for n in range(40)]
        async with StandIn() as server:
            settings = LLMSettings.model_validate({"backend": "openai", "model": "m", "base_url": server.url})
            with CallStore(tmp_path / "calls.sqlite") as store:
                async with build(settings, store) as stack:
                    found = await stack.embed([*texts, texts[0]], "e")
                    again = await stack.embed(texts[:3], "e")
                    spent = stack.stats().spending
        assert [list(vector) for vector in found] == [vector_of(text) for text in [*texts, texts[0]]]
        assert again == found[:3]
        assert sorted(len(body["input"]) for body in server.bodies) == [8, 16, 16]
        assert (spent.calls, spent.tokens, spent.estimated) == (40, 80, 0)


async def test_completions_of_a_stack_go_in_packs(tmp_path: Path) -> None:
    async with StandIn() as server:
        said = {"backend": "openai", "model": "m", "base_url": server.url, "api": "completions", "batch": {"size": 4}}
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with build(LLMSettings.model_validate(said), store) as stack:
                answers = await asyncio.gather(*(stack.complete(ask(str(n))) for n in range(10)))
                stats = stack.stats()
    assert [answer.text for answer in answers] == [f"ok {n}" for n in range(10)]
    assert sorted(len(body["prompt"]) for body in server.bodies) == [2, 4, 4]
    assert (stats.asked, stats.attempts, stats.prompt_tokens, stats.completion_tokens) == (10, 3, 10, 20)
