"""The openai backend: any server that speaks the OpenAI chat completions protocol, through the official SDK."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from simengine.errors import CallFailed
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.faults import brief, from_connection, from_status, stopped
from simengine.llm.request import Completion, Request, Usage
from simengine.llm.settings import LLMSettings
from simengine.llm.transient import Transient

if TYPE_CHECKING:
    from openai import AsyncOpenAI

# Servers on uvicorn drop an idle connection after 5 s. Letting go of it earlier avoids most of the race in which a
# request is sent into a socket that is being closed.
_KEEP_IDLE = 4.0


class OpenAI:
    """Sends each request as one attempt, with a time-out of its own that counts from the moment of sending.

    Raises :class:`Transient` for what may pass, :class:`CallFailed` for what concerns this request alone,
    :class:`RunStopped` for what concerns them all, and at construction :class:`InputError` for an address or a key
    that cannot be resolved. The SDK's client is made inside the running loop at the first call; after :meth:`aclose`
    the backend can be used again, in another loop too.
    """

    def __init__(self, settings: LLMSettings, environ: Mapping[str, str] = os.environ) -> None:
        self._timeout = settings.timeout
        self._connections = settings.limits.concurrency
        self._endpoint = Endpoint(settings.base_url, settings.api_key, environ)
        self._client: AsyncOpenAI | None = None

    async def complete(self, request: Request) -> Completion:
        """One attempt at this request."""
        import aiohttp
        import openai

        if self._client is None:
            self._client = self._open()
        chat = self._client.chat.completions
        # None of these is in the body where it is None: not sent is not the same as any value.
        body: dict[str, Any] = {"model": request.model, **msgspec.to_builtins(request.sampling)}
        messages = [msgspec.to_builtins(message) for message in request.messages]
        started = time.monotonic()
        fault: Exception
        try:
            async with asyncio.timeout(self._timeout):
                reply = await chat.create(messages=messages, **body)
        except TimeoutError:
            elapsed = time.monotonic() - started
            fault = Transient(f"no reply within {self._timeout:g} s", reason="timeout", elapsed=elapsed)
        except openai.APIStatusError as error:
            fault = from_status(error, self._endpoint, time.monotonic() - started)
        except (openai.APIConnectionError, aiohttp.ClientError, ValueError) as error:  # ValueError: JSON cut short
            fault = from_connection(error, self._endpoint, time.monotonic() - started)
        else:
            return self._read(reply, msgspec.json.encode(body).decode())
        # Raised out here, so that it does not hold on to the SDK's error and, through it, to the key in its request.
        raise fault

    def _open(self) -> AsyncOpenAI:
        """The client, with a pool that never makes a request wait, and without time-outs and retries of its own."""
        import httpx2
        import openai

        # It would log every address in full, with whatever key stands in its query.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        pool = self._connections
        transport = openai.DefaultAioHttpClient(
            timeout=None,
            auth=self._endpoint.login,
            limits=httpx2.Limits(max_connections=pool, max_keepalive_connections=pool, keepalive_expiry=_KEEP_IDLE),
        )
        return openai.AsyncOpenAI(
            # Never None or empty: the SDK would then send whatever OPENAI_API_KEY holds to whatever server this is.
            api_key=self._endpoint.key or "none",
            base_url=self._endpoint.base,
            default_query=self._endpoint.query,
            timeout=None,
            max_retries=0,
            http_client=transport,
        )

    def _read(self, reply: object, sent: str) -> Completion:
        """The completion in a reply, from whatever of the protocol's fields the server filled."""
        raw = reply.to_dict(warnings=False) if hasattr(reply, "to_dict") else None
        if raw is None:
            problem = f"the address answers, but with no chat completion: {brief(str(reply), self._endpoint)}"
            raise stopped(problem, self._endpoint, "check llm.base_url (it usually ends in /v1), then resume the run")
        choices = raw.get("choices")
        if not choices and raw.get("error"):
            raise Transient(f"an error inside a reply of status 200: {brief(str(raw['error']), self._endpoint)}")
        choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
        message = _mapping(choice.get("message"))
        text = _text(message.get("content"))
        finish = _text(choice.get("finish_reason")) or "unknown"
        if finish == "content_filter" and not text:
            raise CallFailed("the server's content filter withheld the answer", reason="filtered")
        return Completion(
            text=text,
            finish_reason=finish,
            usage=_usage(_mapping(raw.get("usage"))),
            reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
            model=_text(raw.get("model")),
            sent=sent,
        )

    async def aclose(self) -> None:
        """Close the client and its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _usage(usage: dict[str, Any]) -> Usage:
    details = _mapping(usage.get("prompt_tokens_details"))
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    """A text field of a reply; lone surrogates, which JSON can spell and no file can hold, become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
