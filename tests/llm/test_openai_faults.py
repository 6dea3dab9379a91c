"""The openai backend in trouble: what each fault means, which addresses are understood, what is hidden."""

from __future__ import annotations

import asyncio
import base64
import logging
import traceback

import pytest
from clients import KEY, ask, backend, complete
from fakes import Sleeper
from standin import HANG, RESET, Fault, StandIn, chat, error

from simengine.errors import CallFailed, InputError, RunStopped
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.faults import retry_after
from simengine.llm.backends.openai import OpenAI
from simengine.llm.layers.retry import Retry
from simengine.llm.settings import LLMSettings
from simengine.llm.transient import Transient


def filtered_reply(body: dict) -> dict:
    whole = chat("", body)
    whole["choices"][0]["finish_reason"] = "content_filter"
    return whole


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "kind", "says"),
        [
            (error(401, "bad key"), RunStopped, "refused the key"),
            (error(403), RunStopped, "refused the key"),
            (error(404, "model not found"), RunStopped, "model not found"),
            (error(429, code="insufficient_quota"), RunStopped, "no quota left"),
            (error(402, "Insufficient Balance"), RunStopped, "no quota left"),
            (Fault(200, "<html>welcome</html>"), RunStopped, "no chat completion"),
            (Fault(404, "<html>nothing here</html>"), RunStopped, "nothing here"),
        ],
    )
    async def test_what_concerns_all_calls_stops_the_run(self, fault: Fault, kind: type, says: str) -> None:
        async with StandIn(faults=[fault]) as server:
            with pytest.raises(kind, match=says) as caught:
                await complete(server)
        assert caught.value.where["url"] == f"{server.url}/chat/completions"
        assert caught.value.remedy

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            (error(400, code="content_filter"), "filtered"),
            (error(400, code="context_length_exceeded"), "context"),
            (error(400, "This model's maximum context length is 4096 tokens"), "context"),
            (error(400, "unknown parameter"), "rejected"),
            (error(422), "rejected"),
            (Fault(400, {"detail": "x" * 9000}), "rejected"),
        ],
    )
    async def test_what_concerns_one_call_is_its_outcome(self, fault: Fault, reason: str) -> None:
        async with StandIn(faults=[fault]) as server:
            with pytest.raises(CallFailed) as caught:
                await complete(server)
        assert caught.value.reason == reason
        assert len(str(caught.value)) < 700

    async def test_an_answer_that_the_filter_withheld_is_filtered(self) -> None:
        async with StandIn(filtered_reply) as server:
            with pytest.raises(CallFailed) as caught:
                await complete(server)
        assert caught.value.reason == "filtered"

    @pytest.mark.parametrize(
        ("fault", "reason", "wait"),
        [
            (error(408), "overloaded", None),
            (error(409), "overloaded", None),
            (error(429, retry_after="2"), "overloaded", 2.0),
            (error(429, retry_after_ms="1500"), "overloaded", 1.5),
            (error(500), "overloaded", None),
            (Fault(502, "<html>bad gateway</html>"), "overloaded", None),
            (error(529), "overloaded", None),
            (RESET, "connection", None),
            (Fault(200, '{"id": "1", "cho', {"Content-Type": "application/json"}), "connection", None),
            (Fault(200, {"error": {"message": "upstream is down", "code": 502}}), "overloaded", None),
        ],
    )
    async def test_what_may_pass_is_transient(self, fault: Fault, reason: str, wait: float | None) -> None:
        async with StandIn(faults=[fault]) as server:
            with pytest.raises(Transient) as caught:
                await complete(server)
        assert (caught.value.reason, caught.value.retry_after) == (reason, wait)

    async def test_nobody_there(self) -> None:
        async with StandIn() as server:
            pass
        with pytest.raises(Transient, match="Connect call failed") as caught:
            await complete(server)
        assert caught.value.reason == "connection"

    async def test_silence_ends_at_the_time_out(self) -> None:
        """Field case 55: a server that accepts and stays silent costs one attempt of the stated length."""
        async with StandIn(faults=[None, HANG]) as server:
            model = backend(server, timeout=0.1)
            await model.complete(ask("first"))
            with pytest.raises(Transient, match=r"no reply within 0\.1 s") as caught:
                await model.complete(ask())
            assert (await model.complete(ask())).text == "ok"
            await model.aclose()
        assert caught.value.reason == "timeout"
        assert 0.09 <= caught.value.elapsed < 2

    async def test_cancelling_is_not_a_time_out(self) -> None:
        async with StandIn(faults=[HANG]) as server:
            model = backend(server)
            calling = asyncio.ensure_future(model.complete(ask()))
            await server.arrived.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await model.aclose()

    async def test_the_sdk_retries_nothing_of_its_own(self) -> None:
        async with StandIn(faults=[error(503)] * 3) as server:
            with pytest.raises(Transient):
                await complete(server)
        assert server.requests == 1

    async def test_a_socket_dropped_on_its_second_request_costs_a_resend_each(self) -> None:
        """Field case 22: each second request on a kept connection is hung up on; all four calls succeed."""
        async with StandIn(one_per_socket=True) as server:
            model = backend(server, limits={"concurrency": 1})
            retrying = Retry(model, 900, sleep=Sleeper())
            answers = [await retrying.complete(ask(str(n))) for n in range(4)]
            await model.aclose()
        assert [answer.attempts for answer in answers] == [1, 2, 2, 2]
        assert server.requests == 7

    @pytest.mark.parametrize(
        ("headers", "right"),
        [
            ({"retry-after": "2"}, 2.0),
            ({"retry-after": "0.5"}, 0.5),
            ({"retry-after": "75"}, 75.0),
            ({"retry-after": "Thu, 15 Jan 2026 10:30:03 GMT"}, 3.0),
            ({"retry-after": "Thu, 15 Jan 2026 10:29:00 GMT"}, 0.0),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "nan"}, None),
            ({"retry-after-ms": "nan"}, None),
            ({"retry-after-ms": "nan", "retry-after": "2"}, 2.0),
            ({"retry-after-ms": "inf"}, None),
            ({}, None),
        ],
    )
    def test_the_pause_that_a_server_asks_for(self, headers: dict[str, str], right: float | None) -> None:
        assert retry_after(headers, now=1768473000.0) == right  # 2026-01-15 10:30:00 UTC


class TestAddress:
    @pytest.mark.parametrize(
        ("said", "path"),
        [
            ("{root}/v1", "/v1/chat/completions"),
            ("{root}/v1/", "/v1/chat/completions"),
            ("{root}", "/v1/chat/completions"),
            ("{root}/", "/v1/chat/completions"),
            ("{root}/api/v1//", "/api/v1/chat/completions"),
            ("{root}/openai/deployments/x?api-version=1", "/openai/deployments/x/chat/completions?api-version=1"),
        ],
    )
    async def test_spellings_of_the_base_url(self, said: str, path: str) -> None:
        """Field case 21. The stand-in answers 404 for all but ``/v1``: then the error shows the whole address."""
        async with StandIn() as server:
            root = server.url.removesuffix("/v1")
            try:
                await complete(server, base_url=said.format(root=root))
            except RunStopped as stopped:
                assert stopped.where["url"] == root + path
        assert server.paths == [path]

    @pytest.mark.parametrize("said", ["localhost:8000/v1", "127.0.0.1:1", "ftp://h/v1", "http://", "http://h:port/v1"])
    def test_what_is_no_address(self, said: str) -> None:
        with pytest.raises(InputError, match="no http or https address") as caught:
            Endpoint(said, "", {})
        assert caught.value.where["field"] == "llm.base_url"

    @pytest.mark.parametrize(
        ("address", "key", "environ", "says"),
        [
            ("http://h/v1", "${MY_KEY}", {}, "MY_KEY is not set"),
            ("http://h/v1", "${MY_KEY}", {"MY_KEY": " "}, "MY_KEY is empty"),
            ("http://${HOST}/v1", "", {}, "HOST is not set"),
            ("http://h/v1", "sk\u2013test", {}, "no header can carry"),
        ],
    )
    def test_variables_and_keys_are_seen_to_before_any_call(
        self, address: str, key: str, environ: dict[str, str], says: str
    ) -> None:
        with pytest.raises(InputError, match=says) as caught:
            OpenAI(LLMSettings(backend="openai", model="m", base_url=address, api_key=key), environ)
        assert caught.value.remedy

    async def test_a_login_in_the_address_is_sent_as_such(self) -> None:
        async with StandIn() as server:
            await complete(server, base_url=server.url.replace("http://", "http://me:p%40ss@"), api_key="")
        token = base64.b64encode(b"me:p@ss").decode()
        assert server.headers[0]["Authorization"] == f"Basic {token}"


class TestSecrets:
    """Field case 63: the key is nowhere to be read, whatever the server echoes."""

    ECHO = f"Incorrect API key provided: {KEY}, or {KEY[:4]}"

    @pytest.mark.parametrize(
        "fault",
        [
            error(401, ECHO),
            error(400, ECHO),
            error(503, ECHO),
            error(429, ECHO, code="insufficient_quota"),
            Fault(404, ECHO),
            Fault(500, "x" * 455 + ECHO),  # a cut before the hiding would halve the key
            Fault(200, ECHO),
            Fault(200, {"error": ECHO}),
        ],
    )
    @pytest.mark.parametrize("place", ["key", "login", "query"])
    async def test_the_key_is_in_no_text(self, fault: Fault, place: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        async with StandIn(faults=[fault]) as server:
            said = {
                "key": {},
                "login": {"base_url": server.url.replace("http://", f"http://me:{KEY}@")},
                "query": {"base_url": f"{server.url}?code={KEY}"},
            }[place]
            with pytest.raises((RunStopped, CallFailed, Transient)) as caught:
                await complete(server, **said)
        told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(vars(caught.value))
        assert KEY not in told
        assert "***" in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert KEY not in caplog.text

    async def test_a_login_as_sent_is_hidden_too(self) -> None:
        endpoint = Endpoint(f"http://me:{KEY}@h/v1", "", {})
        token = base64.b64encode(f"me:{KEY}".encode()).decode()
        assert endpoint.scrub(f"Basic {token} for me:{KEY}") == "Basic *** for ***"

    def test_settings_keep_the_variable_and_not_its_value(self) -> None:
        said = LLMSettings(backend="openai", model="m", base_url="http://h/v1", api_key="${MY_KEY}")
        OpenAI(said, {"MY_KEY": KEY})
        assert said.model_dump()["api_key"] == "${MY_KEY}"
        assert KEY not in said.model_dump_json() + repr(said)

    def test_placeholders_are_not_hidden(self) -> None:
        assert Endpoint("http://h/v1", "no", {}).scrub("there is nothing") == "there is nothing"
