"""How much of an endpoint's limits is made use of, against a stand-in server that enforces them exactly.

    python benchmarks/limits.py [--windows N] [--check]

Three loads, each with more work than its limit allows: bound by requests per minute, by tokens per minute, and by
concurrency. Each is run over ten 5-second windows by three clients: the model stack with the limits configured; the
stack with nothing but the window's length known (concurrency at its default of 64), so that limits have to be learned;
and a plain semaphore of 64 over the SDK with its own retries. Printed: the part of what the limit allows that was
reached (of busy slots, for concurrency), and the part of attempts that were refused (status 429).

Targets: at least 0.98 reached by the stack either way, no refusal when configured, at most 2% when learned. With
``--check`` the exit status says whether all were met. The last line is the least part reached.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import random
import sys
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import structlog

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from standin import Body, Lognormal, StandIn  # noqa: E402
from standin_limits import Limits  # noqa: E402

from simengine.llm import CallStore, LLMSettings, Message, Request, Sampling, build  # noqa: E402

WINDOW = 5.0
WINDOWS = 10
TARGET, TARGET_REFUSED = 0.98, 0.02
MAX_TOKENS = 120
WORKERS = 400
LEAD = 2.0  # seconds, for the client's first request to go out and the last window to be full


@dataclass(frozen=True)
class Load:
    """What the server allows, and how long it takes (median, in seconds)."""

    name: str
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    counts: str = "reserved"
    median: float = 0.5
    sigma: float = 0.5

    def server(self) -> StandIn:
        limits = Limits(self.rpm, self.tpm, self.concurrency, WINDOW, self.counts)  # type: ignore[arg-type]
        return StandIn(reply, latency=Lognormal(self.median, self.sigma, seed=1), limits=limits)

    def reached(self, server: StandIn, start: float, end: float) -> float:
        """The part of what may come in, or be under way, from ``start`` to ``end``."""
        windows = (end - start) / WINDOW
        inside = [tokens for came, tokens in server.limits.entered if start <= came < end]
        if self.rpm is not None:
            return len(inside) / (server.limits.requests_per_window * windows)
        if self.tpm is not None:
            return sum(inside) / (server.limits.tokens_per_window * windows)
        assert self.concurrency is not None
        busy = sum(min(went, end) - max(came, start) for came, went in server.served if went > start and came < end)
        return busy / (self.concurrency * (end - start))


LOADS = (
    Load("requests per minute", rpm=1200),
    Load("tokens per minute", tpm=360_000),
    Load("concurrency", concurrency=40, median=0.8),
)


@dataclass(frozen=True)
class Result:
    """What one client made of one load."""

    reached: float
    refused: float


def prompt(number: int) -> str:
    """A prompt of 80 to 300 words."""
    draws = random.Random(number)
    return " ".join(draws.choices(("jazz", "a", "remastered", "of", "collection", "blue"), k=draws.randint(80, 300)))


def reply(body: Body) -> str:
    """A reply of 20 to 100 words."""
    return "word " * random.Random(str(body["messages"])).randint(20, 100)


def serve(load: Load, pipe: Connection) -> None:
    """The server's process: sends its address, and what came of it when it is told that the client is done."""

    async def run() -> None:
        async with load.server() as server:
            pipe.send(server.url)
            windows = await asyncio.to_thread(pipe.recv)
            # From the first request on. What was still under way at the end has no end of its own.
            start = server.limits.entered[0][0]
            end = start + windows * WINDOW
            server.served += [(came, end) for came in server.open.values()]
            refused = sum(server.limits.refused.values())
            pipe.send(Result(load.reached(server, start, end), refused / (refused + len(server.limits.entered))))

    asyncio.run(run())


async def saturate(ask: Callable[[int], Coroutine[Any, Any, object]], seconds: float) -> None:
    """Ask more at one time than any limit allows, from the first request on for so many seconds."""
    numbers = iter(range(10**9))

    async def work() -> None:
        while True:
            await ask(next(numbers))

    tasks = [asyncio.create_task(work()) for _ in range(WORKERS)]
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def use_stack(url: str, limits: dict[str, float | None], seconds: float) -> None:
    """The stack as a run has it, with a journal."""
    settings = LLMSettings.model_validate({"backend": "openai", "base_url": url, "model": "m", "limits": limits})
    sampling = Sampling(temperature=0.0, max_tokens=MAX_TOKENS)
    with tempfile.TemporaryDirectory() as folder, CallStore(Path(folder) / "calls.sqlite") as store:
        async with build(settings, store) as stack:

            async def ask(number: int) -> None:
                message = Message("user", prompt(number))
                await stack.complete(Request("choose", "m", (message,), sampling, call=f"e{number}/choose"))

            await saturate(ask, seconds)


async def use_semaphore(url: str, seconds: float) -> None:
    """What one writes without a stack: so many at one time, and the SDK's retries for the rest."""
    import openai

    semaphore = asyncio.Semaphore(64)
    async with openai.AsyncOpenAI(api_key="none", base_url=url, http_client=openai.DefaultAioHttpClient()) as client:

        async def ask(number: int) -> None:
            messages = [{"role": "user", "content": prompt(number)}]
            async with semaphore:
                with contextlib.suppress(openai.RateLimitError):  # given up after the SDK's retries: lost
                    await client.chat.completions.create(model="m", messages=messages, max_tokens=MAX_TOKENS)

        await saturate(ask, seconds)


CLIENTS = ("configured", "learned", "semaphore")


def use(client: str, load: Load, url: str, windows: int) -> None:
    """The client's process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    seconds = windows * WINDOW + LEAD
    if client == "semaphore":
        asyncio.run(use_semaphore(url, seconds))
    else:
        given = {"rpm": load.rpm, "tpm": load.tpm, "concurrency": load.concurrency or 64}
        asyncio.run(use_stack(url, {**(given if client == "configured" else {}), "window": WINDOW}, seconds))


def measure(client: str, load: Load, windows: int) -> Result:
    """One client against one server, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    pipe, its = context.Pipe()
    server = context.Process(target=serve, args=(load, its))
    server.start()
    user = context.Process(target=use, args=(client, load, pipe.recv(), windows))
    user.start()
    user.join()
    pipe.send(windows)
    result = pipe.recv()
    server.join()
    if user.exitcode:
        raise SystemExit(f"the client {client} failed under the load {load.name}")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=WINDOWS, help="windows of 5 seconds to measure")
    parser.add_argument("--check", action="store_true", help="exit non-zero when a target is missed")
    options = parser.parse_args()
    missed, least = [], 1.0
    with ThreadPoolExecutor(len(LOADS)) as pool:
        for client in CLIENTS:
            results = pool.map(lambda load, client=client: measure(client, load, options.windows), LOADS)
            for load, result in zip(LOADS, results, strict=True):
                print(
                    f"{client:<11} {load.name:<20} reached {result.reached:.3f}, refused {result.refused:.2%}",
                    flush=True,
                )
                if client == "semaphore":
                    continue
                least = min(least, result.reached)
                if result.reached < TARGET or result.refused > (0.0 if client == "configured" else TARGET_REFUSED):
                    missed.append(f"{client}, {load.name}")
    if missed:
        print(f"missed: {'; '.join(missed)}")
    print(f"least part of a limit that the stack reached: {least:.3f} (target {TARGET})")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
