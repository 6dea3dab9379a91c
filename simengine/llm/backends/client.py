"""The SDK's client on an aiohttp session of our own: it tells when a request is sent, and never makes one wait."""

from __future__ import annotations

import asyncio
import logging
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from simengine.llm import attempt
from simengine.llm.backends.endpoint import Endpoint

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import AsyncOpenAI

# Servers on uvicorn drop an idle connection after 5 s. Letting go of it earlier avoids most of the race in which a
# request is sent into a socket that is being closed.
_KEEP_IDLE = 4.0


class Sending:
    """One HTTP request on its way: ``clock`` is its deadline, which is moved to ``timeout`` seconds from the sending.

    ``reused`` tells that it went out on a connection that had been used before.
    """

    def __init__(self, clock: asyncio.Timeout, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._since = time.monotonic()
        self.reused = False

    @property
    def elapsed(self) -> float:
        """Seconds since it was sent (before that, since it was about to be)."""
        return time.monotonic() - self._since

    def sent(self) -> None:
        """It is on the wire now."""
        self._since = time.monotonic()
        self._clock.reschedule(asyncio.get_running_loop().time() + self._timeout)
        if (current := attempt.current.get()) is not None:
            current.sent()


sending: ContextVar[Sending] = ContextVar("sending")


def open_client(endpoint: Endpoint, trust_env: bool) -> AsyncOpenAI:
    """A client for this endpoint, without time-outs and retries of its own; to be closed in the loop it is used in."""
    import openai
    from openai._vendor.httpx_aiohttp import AiohttpTransport

    # It would log every address in full, with whatever key stands in its query.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return openai.AsyncOpenAI(
        # Never None or empty: the SDK would then send whatever OPENAI_API_KEY holds to whatever server this is.
        api_key=endpoint.key or "none",
        base_url=endpoint.base,
        default_query=endpoint.query,
        default_headers=endpoint.headers,
        timeout=None,
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(
            timeout=None,
            auth=endpoint.login,
            trust_env=trust_env,
            transport=AiohttpTransport(client=lambda: _open_session(trust_env)),
        ),
    )


def _open_session(trust_env: bool) -> ClientSession:
    """A session with no limit on connections: how many are under way is the limiting layer's business alone."""
    import aiohttp
    import httpx2

    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(_on_sent)
    tracing.on_connection_reuseconn.append(_on_reused)
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=_KEEP_IDLE, ssl=httpx2.create_ssl_context(trust_env=trust_env)
    )
    return aiohttp.ClientSession(connector=connector, trust_env=trust_env, trace_configs=[tracing])


async def _on_sent(*_: object) -> None:
    sending.get().sent()


async def _on_reused(*_: object) -> None:
    sending.get().reused = True
