"""The openai backend: any server that speaks the OpenAI protocol, through the official SDK, one attempt at a time."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from simengine.errors import CallFailed
from simengine.llm import attempt
from simengine.llm.attempt import Gauge
from simengine.llm.backends.adaptation import Adaptations
from simengine.llm.backends.client import Sending, open_client, sending
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.faults import adaptable, brief, from_connection, from_status, stopped, words
from simengine.llm.backends.headers import GaugeReader
from simengine.llm.backends.reading import read_chat, read_completions, read_embeddings, unpack
from simengine.llm.request import Completion, Message, Request
from simengine.llm.settings import LLMSettings
from simengine.llm.tokens import EMBED
from simengine.llm.transient import Transient

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, AsyncOpenAI

_CHAT, _COMPLETIONS, _EMBEDDINGS = "chat/completions", "completions", "embeddings"
_ENOUGH_PAGES = 3  # replies that are none of the protocol, before the first that is: the address is wrong then


class OpenAI:
    """Sends each request as one attempt, with a time-out of its own that counts from the moment of sending.

    Raises :class:`Transient` for what may pass (or will, with what was just learned about the server),
    :class:`CallFailed` for what concerns this request alone, :class:`RunStopped` for what concerns them all, and at
    construction :class:`InputError` for an address or a key that cannot be resolved. ``sent`` of a completion is the
    body that went out, without what can be read off the request: messages that went out as they are.

    The SDK's client is made inside the running loop at the first call; after :meth:`aclose` the backend can be used
    again, in another loop too.
    """

    def __init__(self, settings: LLMSettings, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings.base_url, settings.api_key, environ)
        self._adaptations = Adaptations(settings.merge_roles)
        self._gauges = GaugeReader()
        self._widths: dict[str, int] = {}
        self._understood = False
        self._pages = 0
        self._client: AsyncOpenAI | None = None

    async def complete(self, request: Request) -> Completion:
        """One attempt at this request."""
        if self.packs(request):
            return (await self.complete_many((request,)))[0]
        messages = self._adaptations.messages(request.model, request.messages)
        told = {"messages": [msgspec.to_builtins(message) for message in messages]}
        raw, parameters = await self._post(_CHAT, request, told)
        sent = parameters if messages is request.messages else parameters | told
        return read_chat(raw, _json(sent), self._settings.reasoning_as_answer)

    def packs(self, request: Request) -> bool:
        """Embeddings and text completions can share an attempt."""
        return request.task == EMBED or self._settings.api == "completions"

    async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
        """One attempt at several requests of one task, model and sampling, for each of which :meth:`packs` holds."""
        first = requests[0]
        texts = [self._prompt(request.messages) for request in requests]
        if first.task == EMBED:
            raw, parameters = await self._post(_EMBEDDINGS, first, {"input": texts}, {"encoding_format": "float"})
            answers = read_embeddings(raw, texts, [_json(parameters)] * len(texts))
            self._check_width(first.model, answers)
            return answers
        raw, parameters = await self._post(_COMPLETIONS, first, {"prompt": texts})
        return read_completions(raw, texts, [_json(parameters | {"prompt": text}) for text in texts])

    async def aclose(self) -> None:
        """Close the client and its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(
        self, path: str, request: Request, content: Mapping[str, Any], extra: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The reply's object, and the parameters (all but ``content``) as they went out."""
        model, version = request.model, self._adaptations.version(request.model)
        # None of the sampling parameters is there where it is None: not sent is not the same as any value.
        asked = {} if request.task == EMBED else msgspec.to_builtins(request.sampling)
        parameters = {"model": model, **self._adaptations.parameters(model, {**asked, **(extra or {})})}
        outcome = await self._send(path, {**parameters, **content}, version)
        # Raised out here, so that it does not hold on to the SDK's error and, through it, to the key in its request.
        if isinstance(outcome, Exception):
            raise outcome
        return outcome, parameters

    async def _send(self, path: str, body: dict[str, Any], version: int) -> dict[str, Any] | Exception:
        """The reply's object, or what its failure means."""
        import aiohttp
        import httpx2
        import openai

        if self._client is None:
            self._client = open_client(self._endpoint, self._settings.trust_env)
        timeout = self._settings.timeout
        way: Sending | None = None
        try:
            async with asyncio.timeout(timeout) as clock:
                way = Sending(clock, timeout)
                sending.set(way)
                reply = await self._client.post(f"/{path}", body=body, cast_to=httpx2.Response)
        except TimeoutError:
            fault: Exception = Transient(f"no reply within {timeout:g} s", reason="timeout")
        except openai.APIStatusError as error:
            fault = self._from_status(error, path, body, version)
        except (openai.APIConnectionError, aiohttp.ClientError) as error:
            fault = from_connection(error, self._endpoint, way is not None and way.reused)
        else:
            return self._object(reply, path)
        if isinstance(fault, Transient) and way is not None:
            fault.elapsed = way.elapsed
        return fault

    def _from_status(self, error: APIStatusError, path: str, body: dict[str, Any], version: int) -> Exception:
        problem = f"HTTP {error.status_code}: {words(error, self._endpoint)}"
        if adaptable(error) and self._adaptations.learn(body["model"], body, version, error.param, problem):
            return Transient(problem, reason="rejected", free=True)
        return from_status(error, self._endpoint, path, self._hear(error.response))

    def _object(self, reply: Response, path: str) -> dict[str, Any] | Exception:
        """The JSON object in a reply of status 200, or what it means that there is none."""
        self._hear(reply)
        said = brief(reply.text, self._endpoint)
        try:
            raw = json.loads(reply.content)  # unlike stricter readers, it takes the lone surrogates that models write
        except ValueError:
            if "json" in reply.headers.get("content-type", ""):
                return Transient(f"a reply that was cut short: {said}", reason="connection")
            raw = None
        if not isinstance(raw, dict):
            return self._page(said, path)
        if raw.get("error") and not raw.get("choices") and not raw.get("data"):
            return Transient(f"an error inside a reply of status 200: {brief(str(raw['error']), self._endpoint)}")
        self._understood = True
        return raw

    def _page(self, said: str, path: str) -> Exception:
        """Something else than the protocol: a gateway's passing page, or the wrong address from the beginning."""
        problem = f"the address answers, but with no completion: {said}"
        self._pages += 1
        if self._understood or self._pages < _ENOUGH_PAGES:
            return Transient(problem)
        remedy = "check llm.base_url (it usually ends in /v1), then resume the run"
        return stopped(problem, self._endpoint, path, remedy)

    def _hear(self, reply: Response) -> dict[str, Gauge]:
        """What the headers say about limits, told to the layer that minds them."""
        gauges = self._gauges.read(reply.headers, time.time())
        if (current := attempt.current.get()) is not None:
            current.gauges.update(gauges)
        return gauges

    @staticmethod
    def _prompt(messages: Sequence[Message]) -> str:
        return "\n\n".join(message.content for message in messages)

    def _check_width(self, model: str, answers: Sequence[Completion]) -> None:
        """All embeddings of one model are of one width; if that changes, they cannot be compared any more."""
        width = len(unpack(answers[0].text))
        if self._widths.setdefault(model, width) != width:
            raise CallFailed(
                f"an embedding of {model} has {width} numbers where others had {self._widths[model]}",
                reason="embedding",
                remedy="see whether the server changed the model under way",
            )


def _json(body: Mapping[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
