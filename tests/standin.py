"""A small server on loopback that speaks the OpenAI chat completions protocol, with faults on demand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

Body = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What one request meets instead of an answer.

    An HTTP status with a JSON body (or raw text), or ``"reset"`` (the connection is dropped), or ``"hang"`` (silence).
    """

    kind: int | str
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


def error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Fault:
    """A fault in the form in which servers of this protocol report errors; header names with ``_`` for ``-``."""
    body = {"error": {"message": message, "type": None, "param": None, "code": code}}
    return Fault(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


RESET = Fault("reset")
HANG = Fault("hang")


class StandIn:
    """An async context manager: while it is entered, ``url`` (ending in ``/v1``) answers.

    ``reply`` makes the answer from the request's body: a text, or a whole response object. ``latency`` is in seconds.
    ``faults`` are met by the first requests, in order (``None``: no fault). ``one_per_socket`` drops the connection on
    its second request, unanswered, as a server does that closes idle connections. ``together`` holds answers back
    until so many requests are under way at one time; the event ``arrived`` tells that they are.

    Recorded: the number of ``requests`` and the ``greatest`` at one time, the ``bodies``, ``headers`` and ``paths`` of
    each, ``counts`` by a digest of the body, and the ``sockets`` that were used.
    """

    def __init__(
        self,
        reply: Callable[[Body], str | Body] = lambda body: "ok",
        *,
        latency: float = 0.0,
        faults: Sequence[Fault | None] = (),
        one_per_socket: bool = False,
        together: int = 1,
    ) -> None:
        self.reply = reply
        self.latency = latency
        self.faults = list(faults)
        self.one_per_socket = one_per_socket
        self.together = together
        self.url = ""
        self.under_way = 0
        self.greatest = 0
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.counts: Counter[str] = Counter()
        self.sockets: set[object] = set()

    @property
    def requests(self) -> int:
        """How many requests came in, faults included."""
        return len(self.bodies)

    async def __aenter__(self) -> StandIn:
        self._closing = asyncio.Event()
        self.arrived = asyncio.Event()
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closing.set()
        await self._runner.cleanup()

    @classmethod
    @contextmanager
    def in_thread(cls, *args: Any, **options: Any) -> Iterator[StandIn]:
        """The same in a thread of its own, for tests whose client is another process or another loop."""
        ready: list[tuple[StandIn, asyncio.AbstractEventLoop, asyncio.Event]] = []
        started = threading.Event()

        async def serve() -> None:
            stop = asyncio.Event()
            async with cls(*args, **options) as server:
                ready.append((server, asyncio.get_running_loop(), stop))
                started.set()
                await stop.wait()

        def run() -> None:
            try:
                asyncio.run(serve())
            finally:
                started.set()

        thread = threading.Thread(target=run, name="stand-in")
        thread.start()
        started.wait()
        if not ready:
            thread.join()
            raise RuntimeError("the stand-in server did not start")
        server, loop, stop = ready[0]
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self._record(request, body)
        if self.one_per_socket and request.transport in self.sockets:
            return self._drop(request)
        self.sockets.add(request.transport)
        fault = self.faults.pop(0) if self.faults else None
        self.under_way += 1
        self.greatest = max(self.greatest, self.under_way)
        if self.greatest >= self.together:
            self.arrived.set()
        try:
            if fault is not None:
                return await self._fail(request, fault)
            await self.arrived.wait()
            await asyncio.sleep(self.latency)
        finally:
            self.under_way -= 1
        if request.path != "/v1/chat/completions":
            return web.json_response({"detail": "Not Found"}, status=404)
        answer = self.reply(body)
        return web.json_response(chat(answer, body) if isinstance(answer, str) else answer)

    def _record(self, request: web.Request, body: Body) -> None:
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        self.paths.append(request.path_qs)
        self.counts[hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()] += 1

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.kind == "reset":
            return self._drop(request)
        if fault.kind == "hang":
            await self._closing.wait()
            return self._drop(request)
        assert isinstance(fault.kind, int)
        if isinstance(fault.body, str):
            return web.Response(status=fault.kind, text=fault.body, headers=fault.headers)
        return web.json_response(fault.body, status=fault.kind, headers=fault.headers)

    @staticmethod
    def _drop(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


def chat(text: str, body: Body) -> Body:
    """A response object as servers send it, with token counts of one for each word."""
    asked = sum(len(str(message["content"]).split()) for message in body["messages"])
    told = len(text.split())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", ""),
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told},
    }


_TITLES = re.compile(r"^Their titles:\n((?:(?:\d+\.|-) .+\n?)+)", re.MULTILINE)
_TITLE = re.compile(r"^(?:\d+\.|-) (.+)$", re.MULTILINE)
_CHOICE = re.compile(r"^Chosen (.+?): <", re.MULTILINE)
_DESCRIPTION = re.compile(r"^The updated description of the first (.+?) is:", re.MULTILINE)
_SELF_INTRODUCTION = re.compile(r"^My updated self-introduction:", re.MULTILINE)
_RANK = re.compile(r"^Rank:", re.MULTILINE)


def agentcf_reply(body: Body) -> str:
    """An answer to an AgentCF prompt in the format that it asks for, drawn by a digest of all that the prompt says."""
    told = "\n".join(str(message["content"]) for message in body["messages"])
    digest = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
    shown = _TITLES.search(str(body["messages"][-1]["content"]))
    titles = _TITLE.findall(shown[1]) if shown else []
    if choice := _CHOICE.search(told):
        at = int(digest, 16) % len(titles)
        return f"Chosen {choice[1]}: {at + 1}. {titles[at]}\nExplanation: It has the features of pattern {digest}."
    if _SELF_INTRODUCTION.search(told):
        return f"My updated self-introduction: I like features of pattern {digest}. I dislike plain ones."
    if described := _DESCRIPTION.search(told):
        return "\n".join(
            f"The updated description of the {which} {described[1]} is: It suits people who like {which} {digest}."
            for which in ("first", "second")
        )
    if _RANK.search(told):
        turn = int(digest, 16) % len(titles)
        order = titles[turn:] + titles[:turn]
        return "\n".join(["Rank:", *(f"{place}. {title}" for place, title in enumerate(order, start=1))])
    raise AssertionError(f"a prompt of no known format: {told[:200]}")
