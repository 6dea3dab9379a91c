"""A small server on loopback that speaks the OpenAI protocol, with limits that it enforces and faults on demand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web
from standin_batches import Batches
from standin_limits import Limits
from standin_replies import Body, agentcf_reply, chat, completions, embeddings, vector_of

__all__ = [
    "CUT",
    "HANG",
    "LOST",
    "MIXED",
    "PAGE",
    "RESET",
    "Batches",
    "Body",
    "Fault",
    "Limits",
    "Lognormal",
    "StandIn",
    "agentcf_reply",
    "alternating",
    "chat",
    "completions",
    "embeddings",
    "error",
    "refuses",
    "vector_of",
]


@dataclass(frozen=True)
class Fault:
    """What one request meets instead of an answer.

    An HTTP status with a JSON body (or raw text), or ``"reset"`` (the connection is dropped), ``"hang"`` (silence),
    ``"cut"`` (an answer whose body ends in its middle), or ``"lost"`` (done, but unanswered; of batches).
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
CUT = Fault("cut")
LOST = Fault("lost")
PAGE = Fault(200, "<html><body>We will be back soon.</body></html>", {"Content-Type": "text/html"})
MIXED = (
    error(429, "slow down", retry_after="0.05"),
    error(500, "internal error"),
    error(503, "no worker is free"),
    error(529, "overloaded"),
    RESET,
    CUT,
    PAGE,
    HANG,
)
"""Every fault of transport that passes."""


@dataclass(frozen=True)
class Lognormal:
    """Latencies of this median (seconds) and sigma, drawn by the seed, what is asked and how often it was asked."""

    median: float
    sigma: float
    seed: int = 0

    def draw(self, what: str) -> float:
        return self.median * math.exp(self.sigma * random.Random(f"{self.seed}/{what}").gauss(0.0, 1.0))


class StandIn:
    """An async context manager: while it is entered, ``url`` (ending in ``/v1``) answers.

    ``reply`` makes the answer from the request's body: a text, or a whole response object. ``latency`` is in seconds,
    or a :class:`Lognormal`. ``limits`` are enforced exactly. ``check`` looks at each body and may find a fault with it
    (see :func:`refuses`, :func:`alternating`). ``faults`` are met by the first requests, in order (``None``: no fault);
    after that, ``share`` of all requests, drawn by ``seed``, meet one of ``mixed``. ``one_per_socket`` drops the
    connection on its second request, unanswered, as a server does that closes idle connections. ``together`` holds
    answers back until so many requests are under way at one time; the event ``arrived`` tells that they are.
    ``batches`` is the Batch API, which answers its lines by ``reply`` and ``check``, and is not counted here.

    Recorded: the number of ``requests`` and the ``greatest`` at one time, the ``bodies``, ``headers`` and ``paths`` of
    each, ``counts`` by a digest of the body (``repeats``: how many were asked again after an answer), the ``sockets``
    that were used, and ``served``, the times at which each request that was let in came and went, beside those of the
    ``open`` ones. Violations of the limits are in ``limits.refused``.
    """

    def __init__(
        self,
        reply: Callable[[Body], str | Body] = lambda body: "ok",
        *,
        latency: float | Lognormal = 0.0,
        limits: Limits | None = None,
        check: Callable[[Body], Fault | None] = lambda body: None,
        faults: Sequence[Fault | None] = (),
        mixed: Sequence[Fault] = MIXED,
        share: float = 0.0,
        seed: int = 0,
        one_per_socket: bool = False,
        together: int = 1,
        batches: Batches | None = None,
    ) -> None:
        self.reply = reply
        self.batches = batches or Batches()
        self.batches.answer = self._answer_line
        self.latency = latency
        self.limits = limits or Limits()
        self.check = check
        self.faults = list(faults)
        self.mixed = mixed
        self.share = share
        self.one_per_socket = one_per_socket
        self.together = together
        self.url = ""
        self.open: dict[int, float] = {}
        self.greatest = 0
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.counts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.sockets: set[object] = set()
        self.served: list[tuple[float, float]] = []
        self._random = random.Random(seed)

    @property
    def under_way(self) -> int:
        """How many requests are being answered now."""
        return len(self.open)

    @property
    def repeats(self) -> int:
        """How many requests were answered that had been answered before."""
        return sum(self.answered.values()) - len(self.answered)

    @property
    def requests(self) -> int:
        """How many requests came in, faults included."""
        return len(self.bodies)

    async def __aenter__(self) -> StandIn:
        self._closing = asyncio.Event()
        self.arrived = asyncio.Event()
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/v1/{path:(files|batches)(/.*)?}", self._serve_batches)
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
        digest = self._record(request, body)
        if self.one_per_socket and request.transport in self.sockets:
            return self._drop(request)
        self.sockets.add(request.transport)
        fault = self._fault(body)
        made = None if fault is not None else self._make(request.path, body)
        if made is not None and (refusal := self._enter(made[1])) is not None:
            return await self._fail(request, refusal)
        number, came = self.requests, asyncio.get_running_loop().time()
        self.open[number] = came
        self.greatest = max(self.greatest, self.under_way)
        if self.greatest >= self.together:
            self.arrived.set()
        try:
            if fault is not None:
                return await self._fail(request, fault)
            await self.arrived.wait()
            await asyncio.sleep(self._delay(digest))
        finally:
            del self.open[number]
            now = asyncio.get_running_loop().time()
            self.served.append((came, now))
        if made is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        self.answered[digest] += 1
        return web.json_response(made[0], headers=self.limits.headers(now))

    async def _serve_batches(self, request: web.Request) -> web.StreamResponse:
        fault = self.batches.faults.pop(0) if self.batches.faults else None
        if fault is not None and fault.kind != "lost":
            return await self._fail(request, fault)
        made = await self.batches.serve(request)
        return made if fault is None else self._drop(request)

    def _answer_line(self, path: str, body: Body) -> tuple[int, object]:
        """The answer to a line of a batch: a status and a body."""
        if (fault := self.check(body)) is not None:
            assert isinstance(fault.kind, int)
            return fault.kind, fault.body
        made = self._make(path, body)
        return (200, made[0]) if made is not None else (404, {"error": {"message": "Not Found"}})

    def _make(self, path: str, body: Body) -> tuple[Body, int] | None:
        """The reply to a body and the tokens that count against the limit; nothing for an address that is unknown."""
        if path == "/v1/embeddings":
            made = embeddings(body)
        elif path in ("/v1/chat/completions", "/v1/completions"):
            answer = self.reply(body)
            make = chat if path.startswith("/v1/chat") else completions
            made = make(answer, body) if isinstance(answer, str) else answer
        else:
            return None
        usage = made.get("usage") or {}
        prompt, told = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        most = body.get("max_tokens", body.get("max_completion_tokens", told))
        return made, prompt + (told if self.limits.counts == "used" else most)

    def _enter(self, tokens: int) -> Fault | None:
        now = asyncio.get_running_loop().time()
        met = self.limits.enter(now, tokens, self.under_way)
        if met is None:
            return None
        kind, wait = met
        words = {"concurrency": "too many concurrent requests"}.get(kind, f"limit of {kind} per min reached")
        headers = self.limits.headers(now)
        if wait > 0:
            headers["retry-after-ms"] = str(math.ceil(wait * 1000))
        return Fault(429, {"error": {"message": words, "code": "rate_limit_exceeded"}}, headers)

    def _fault(self, body: Body) -> Fault | None:
        if self.faults:
            return self.faults.pop(0)
        if self._random.random() < self.share:
            return self._random.choice(self.mixed)
        return self.check(body)

    def _delay(self, digest: str) -> float:
        if isinstance(self.latency, Lognormal):
            return self.latency.draw(f"{digest}/{self.counts[digest]}")
        return self.latency

    def _record(self, request: web.Request, body: Body) -> str:
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        self.paths.append(request.path_qs)
        digest = hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()
        self.counts[digest] += 1
        return digest

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.kind == "reset":
            return self._drop(request)
        if fault.kind == "hang":
            await self._closing.wait()
            return self._drop(request)
        if fault.kind == "cut":
            cut = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "200"})
            await cut.prepare(request)
            await cut.write(b'{"id": "1", "choices": [')
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


def refuses(name: str, unless: object = None) -> Callable[[Body], Fault | None]:
    """A check that finds fault with a parameter, whatever its value or unless it has the one that is right."""

    def check(body: Body) -> Fault | None:
        if name not in body or (unless is not None and body[name] == unless):
            return None
        return Fault(400, {"error": {"message": f"'{name}' is not supported with this model.", "param": name}})

    return check


def alternating(body: Body) -> Fault | None:
    """A check that takes user and assistant in turn, and nothing else."""
    roles = [message["role"] for message in body["messages"]]
    if roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2):
        return None
    return error(400, "Conversation roles must alternate user/assistant/user/assistant/...")
