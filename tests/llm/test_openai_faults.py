"""The openai backend in trouble: what each fault means, which addresses are understood, what is hidden."""

from __future__ import annotations

import asyncio
import base64
import logging
import traceback

import pytest
from clients import KEY, ask, backend, complete
from standin import CUT, HANG, PAGE, RESET, Fault, StandIn, chat, error
from structlog.testing import capture_logs

from simengine.errors import CallFailed, InputError, RunStopped
from simengine.llm.attempt import Gauge
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.headers import GaugeReader, retry_after, seconds
from simengine.llm.backends.openai import OpenAI
from simengine.llm.layers.limit import Limit
from simengine.llm.layers.retry import Retry
from simengine.llm.settings import LimitSettings, LLMSettings, RetrySettings
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
            (Fault(404, "<html>nothing here</html>"), RunStopped, "nothing here"),
        ],
    )
    async def test_what_concerns_all_calls_stops_the_run(self, fault: Fault, kind: type, says: str) -> None:
        async with StandIn(faults=[fault]) as server:
            with pytest.raises(kind, match=says) as caught:
                await complete(server)
        assert caught.value.where["url"] == f"{server.url}/chat/completions"
        assert caught.value.remedy

    @pytest.mark.parametrize("page", [PAGE, Fault(200, "welcome"), Fault(200, ["a", "b"])])
    async def test_an_address_that_never_speaks_the_protocol_is_wrong(self, page: Fault) -> None:
        async with StandIn(faults=[page] * 3) as server:
            model = backend(server)
            for _ in range(2):
                with pytest.raises(Transient, match="no completion"):
                    await model.complete(ask())
            with pytest.raises(RunStopped, match="no completion") as caught:
                await model.complete(ask())
            await model.aclose()
        assert caught.value.where["url"] == f"{server.url}/chat/completions"
        assert caught.value.remedy

    async def test_a_page_among_answers_passes(self) -> None:
        async with StandIn(faults=[None, *[PAGE] * 9]) as server:
            model = backend(server)
            await model.complete(ask())
            for _ in range(9):
                with pytest.raises(Transient):
                    await model.complete(ask())
            assert (await model.complete(ask())).text == "ok"
            await model.aclose()

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
            (error(429, retry_after="2"), "limited", 2.0),
            (error(429, retry_after_ms="1500"), "limited", 1.5),
            (error(500), "overloaded", None),
            (Fault(502, "<html>bad gateway</html>"), "overloaded", None),
            (error(529), "overloaded", None),
            (RESET, "connection", None),
            (CUT, "connection", None),
            (Fault(200, '{"id": "1", "cho', {"Content-Type": "application/json"}), "connection", None),
            (Fault(200, {"error": {"message": "upstream is down", "code": 502}}), "overloaded", None),
        ],
    )
    async def test_what_may_pass_is_transient(self, fault: Fault, reason: str, wait: float | None) -> None:
        async with StandIn(faults=[fault]) as server:
            with pytest.raises(Transient) as caught:
                await complete(server)
        assert (caught.value.reason, caught.value.retry_after, caught.value.free) == (reason, wait, False)

    @pytest.mark.parametrize(
        ("fault", "limited"),
        [
            (Fault(429, {"error": {"message": "Rate limit reached", "type": "tokens"}}), "tokens"),
            (Fault(429, {"error": {"message": "Rate limit reached", "type": "requests"}}), "requests"),
            (error(429, "Limit on tokens per min (TPM): Limit 10000, Used 9000, Requested 2000."), "tokens"),
            (error(429, "You exceeded 3 requests per minute"), "requests"),
            (error(429, "Too many concurrent requests"), "concurrency"),
            (error(429, "busy", x_ratelimit_remaining_tokens="0", x_ratelimit_remaining_requests="7"), "tokens"),
            (error(429, "busy", x_ratelimit_remaining_requests="0"), "requests"),
            (error(429, "Too Many Requests"), ""),
        ],
    )
    async def test_which_limit_was_met(self, fault: Fault, limited: str) -> None:
        async with StandIn(faults=[fault]) as server:
            with pytest.raises(Transient) as caught:
                await complete(server)
        assert (caught.value.reason, caught.value.limited) == ("limited", limited)

    async def test_nobody_there(self) -> None:
        async with StandIn() as server:
            pass
        with pytest.raises(Transient, match=f"^connection refused: nothing listens at {server.url}$") as caught:
            await complete(server)
        assert caught.value.reason == "unreachable"

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

    @pytest.mark.parametrize("at_once", [1, 4])
    async def test_a_socket_dropped_on_its_second_request_costs_a_resend_each(self, at_once: int) -> None:
        """Field case 22: each second request on a kept connection is hung up on; with no budget at all, all succeed.

        With several connections kept, a resend may meet another of them: as many resends as there are connections.
        """
        async with StandIn(one_per_socket=True, together=at_once) as server:
            model = backend(server)
            retrying = Retry(model, RetrySettings(budget=0))
            await asyncio.gather(*(retrying.complete(ask(f"first {n}")) for n in range(at_once)))
            answers = [await retrying.complete(ask(str(n))) for n in range(3)]
            await model.aclose()
        assert [answer.attempts - 1 for answer in answers] == ([1, 1, 1] if at_once == 1 else [4, 1, 1])
        assert retrying.resent == sum(answer.attempts - 1 for answer in answers)

    async def test_a_reset_on_a_new_connection_is_a_fault_like_others(self) -> None:
        async with StandIn(faults=[RESET]) as server:
            with pytest.raises(Transient) as caught:
                await complete(server)
        assert not caught.value.free

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

    @pytest.mark.parametrize(
        ("said", "right"),
        [
            ("6m0s", 360.0),
            ("1m30.5s", 90.5),
            ("250ms", 0.25),
            ("17", 17.0),
            ("2026-01-15T10:30:00Z", 10.0),
            ("2026-01-15T10:30:00", 10.0),
            ("2026-01-15T11:30:00+01:00", 10.0),
            ("1768473003", 13.0),
            ("1768473003000", 13.0),
            ("2026-01-15T10:29:00Z", 0.0),
            ("1h2m", 3720.0),
            ("1d", 86_400.0),
            ("soon", None),
            ("", None),
            ("m", None),
        ],
    )
    def test_the_spellings_of_a_reset(self, said: str, right: float | None) -> None:
        """Field case 17; 10 s before 2026-01-15 10:30:00 UTC."""
        assert seconds(said, now=1768472990.0) == right

    def test_gauges_are_read_and_what_is_illegible_is_warned_of_once(self) -> None:
        reader = GaugeReader()
        headers = {
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "499",
            "x-ratelimit-reset-requests": "120ms",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "when hell freezes over",
        }
        with capture_logs() as logs:
            read = [reader.read(headers, 0.0) for _ in range(3)]
        assert read == [{"requests": Gauge(500, 499, 0.12), "tokens": Gauge(None, 0, None)}] * 3
        assert [(entry["log_level"], entry["said"]) for entry in logs] == [("warning", "when hell freezes over")]

    async def test_gauges_reach_the_layer_that_minds_them(self) -> None:
        limit_of = {"x_ratelimit_limit_requests": "30", "x_ratelimit_remaining_requests": "29"}
        async with StandIn(faults=[error(503, **limit_of)]) as server:
            model = backend(server)
            limit = Limit(model, LimitSettings())
            with pytest.raises(Transient):
                await limit.complete(ask())
            await model.aclose()
        assert limit.rates().most_requests == 30


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

    async def test_an_azure_deployment_gets_its_key_where_it_looks_for_it(self) -> None:
        async with StandIn() as server:
            address = server.url.replace("/v1", "/openai/deployments/x?api-version=2024-10-21")
            with pytest.raises(RunStopped):
                await complete(server, base_url=address)
            await complete(server)
        assert server.headers[0]["api-key"] == KEY
        assert "api-key" not in server.headers[1]
        assert server.paths[0] == "/openai/deployments/x/chat/completions?api-version=2024-10-21"

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


class TestProxies:
    """Field case 27: a proxy that is not there, and a server on loopback."""

    @pytest.fixture(autouse=True)
    def _proxy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("NO_PROXY", "no_proxy", "http_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def test_without_the_switch_no_proxy_is_asked(self) -> None:
        async with StandIn() as server:
            assert (await complete(server)).text == "ok"

    async def test_with_the_switch_the_error_names_the_proxy(self) -> None:
        async with StandIn() as server:
            with pytest.raises(Transient, match=r"127\.0\.0\.1:9\b") as caught:
                await complete(server, trust_env=True)
        assert caught.value.reason == "unreachable"
        with pytest.raises(Transient, match=r"127\.0\.0\.1:9\b"):
            await complete(server, trust_env=True, base_url="http://models.example/v1")

    async def test_with_the_switch_exceptions_are_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
        async with StandIn() as server:
            assert (await complete(server, trust_env=True)).text == "ok"


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
            Fault(200, f'{{"echo": "{ECHO}', {"Content-Type": "application/json"}),
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
