"""The openai backend: any server that speaks the OpenAI protocol, through the official SDK, one attempt at a time."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from simengine.errors import CallFailed, RunStopped
from simengine.llm import attempt
from simengine.llm.attempt import Gauge
from simengine.llm.backends.adaptation import Adaptations
from simengine.llm.backends.batches import Batches, reply_of, status_error
from simengine.llm.backends.client import Sending, open_client, sending
from simengine.llm.backends.endpoint import Endpoint
from simengine.llm.backends.faults import adaptable, brief, from_connection, from_status, stopped, words
from simengine.llm.backends.headers import GaugeReader
from simengine.llm.backends.reading import read_chat, read_completions, read_embeddings, unpack
from simengine.llm.layers.filing import Line, Written
from simengine.llm.request import Completion, Message, Request
from simengine.llm.settings import LLMSettings
from simengine.llm.tokens import EMBED
from simengine.llm.transient import Transient, headline

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, AsyncOpenAI

    from simengine.llm.backends.batches import Asking, Refused

log = structlog.get_logger("simengine")

_CHAT, _COMPLETIONS, _EMBEDDINGS = "chat/completions", "completions", "embeddings"
_ENOUGH_PAGES = 3  # replies that are none of the protocol, before the first that is: the address is wrong then


@dataclass(frozen=True)
class _Body:
    """What goes out in one attempt: ``sent`` is what each completion will say of it."""

    path: str
    whole: dict[str, Any]
    sent: tuple[str, ...]
    version: int


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
        self._stopped = False
        self._client: AsyncOpenAI | None = None
        self.batches = Batches(self._exchange, self._endpoint, settings.timeout)

    async def complete(self, request: Request) -> Completion:
        """One attempt at this request."""
        return (await self.complete_many((request,)))[0]

    def packs(self, request: Request) -> bool:
        """Embeddings and text completions can share an attempt."""
        return request.task == EMBED or self._settings.api == "completions"

    async def complete_many(self, requests: tuple[Request, ...]) -> tuple[Completion, ...]:
        """One attempt at several requests of one task, model and sampling, for each of which :meth:`packs` holds."""
        body = self._body(requests)
        outcome = await self._post(body)
        if isinstance(outcome, RunStopped) and not self._stopped:
            self._stopped = True  # calls under way beside this one will meet the same
            first, reason = requests[0], headline(outcome.problem)
            log.warning("stopped by the server", call=first.call, task=first.task, model=first.model, reason=reason)
        # Raised out here, so that it does not hold on to the SDK's error and, through it, to the key in its request.
        if isinstance(outcome, Exception):
            raise outcome
        return self._answers(requests, outcome, body.sent)

    def write(self, request: Request) -> Written:
        """The request as a line of a file for the Batch API."""
        body = self._body((request,))
        return Written(body.path, body.whole, body.sent[0], body.version)

    def read(self, request: Request, sent: str, version: int, line: Line | None) -> Completion:
        """The completion in a line of results; raises like :meth:`complete`."""
        found = reply_of(line)
        if isinstance(found, Transient):
            raise found
        (status, raw), path = found, self._path(request)
        if status == 200:
            outcome = self._sound(raw)
        else:
            error = status_error(status, raw, self._endpoint.url(path))
            outcome = self._from_status(error, path, {"model": request.model, **json.loads(sent)}, version)
        if isinstance(outcome, Exception):
            raise outcome
        return self._answers((request,), outcome, (sent,))[0]

    async def aclose(self) -> None:
        """Close the client and its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _path(self, request: Request) -> str:
        if request.task == EMBED:
            return _EMBEDDINGS
        return _COMPLETIONS if self._settings.api == "completions" else _CHAT

    def _body(self, requests: tuple[Request, ...]) -> _Body:
        """What goes out for requests of one task, model and sampling, as the server is known to take it."""
        first = requests[0]
        model, version, path = first.model, self._adaptations.version(first.model), self._path(first)
        # None of the sampling parameters is there where it is None: not sent is not the same as any value.
        asked = {"encoding_format": "float"} if path == _EMBEDDINGS else msgspec.to_builtins(first.sampling)
        if path == _CHAT:
            asked |= _response_format(first)
        parameters = {"model": model, **self._adaptations.parameters(model, asked)}
        if path == _CHAT:
            messages = self._adaptations.messages(model, first.messages)
            content: dict[str, Any] = {"messages": [msgspec.to_builtins(message) for message in messages]}
            sent = [parameters if messages is first.messages else parameters | content]
        else:
            texts = [self._prompt(request.messages) for request in requests]
            content = {"input" if path == _EMBEDDINGS else "prompt": texts}
            sent = [parameters if path == _EMBEDDINGS else parameters | {"prompt": text} for text in texts]
        return _Body(path, {**parameters, **content}, tuple(_json(each) for each in sent), version)

    def _answers(
        self, requests: tuple[Request, ...], raw: dict[str, Any], sent: tuple[str, ...]
    ) -> tuple[Completion, ...]:
        """The completions in a reply's object, in the order of their requests."""
        path = self._path(requests[0])
        if path == _CHAT:
            return (read_chat(raw, sent[0], self._settings.reasoning_as_answer),)
        texts = [self._prompt(request.messages) for request in requests]
        if path == _COMPLETIONS:
            return read_completions(raw, texts, sent)
        answers = read_embeddings(raw, texts, sent)
        self._check_width(requests[0].model, answers)
        return answers

    async def _post(self, body: _Body) -> dict[str, Any] | Exception:
        """The reply's object, or what its failure means."""

        async def ask(client: AsyncOpenAI) -> Response:
            import httpx2

            return await client.post(f"/{body.path}", body=body.whole, cast_to=httpx2.Response)

        def refused(error: APIStatusError) -> Exception:
            return self._from_status(error, body.path, body.whole, body.version)

        outcome = await self._exchange(ask, refused, self._settings.timeout)
        return outcome if isinstance(outcome, Exception) else self._object(outcome, body.path)

    async def _exchange(self, ask: Asking, refused: Refused, seconds: float) -> Response | Exception:
        """One HTTP request: its reply, or what its failure means (``refused`` tells that of a status)."""
        import aiohttp
        import openai

        if self._client is None:
            self._client = open_client(self._endpoint, self._settings.trust_env)
        way: Sending | None = None
        try:
            async with asyncio.timeout(seconds) as clock:
                way = Sending(clock, seconds)
                sending.set(way)
                return await ask(self._client)
        except TimeoutError:
            fault: Exception = Transient(f"no reply within {seconds:g} s", reason="timeout")
        except openai.APIStatusError as error:
            fault = refused(error)
        except (openai.APIConnectionError, aiohttp.ClientError) as error:
            fault = from_connection(error, self._endpoint, way is not None and way.reused)
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
        return self._sound(raw)

    def _sound(self, raw: dict[str, Any]) -> dict[str, Any] | Exception:
        """The object, unless it holds an error in place of an answer."""
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


def _response_format(request: Request) -> dict[str, Any]:
    """The field by which a server is held to a JSON schema, where one is asked for."""
    if not request.schema:
        return {}
    name = re.sub(r"\W", "_", request.task)[:64]
    schema = {"name": name, "strict": True, "schema": json.loads(request.schema)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _json(body: Mapping[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
