"""What thousands of calls in flight take in one process: memory for each, and whether queueing ever times one out.

    python benchmarks/inflight.py [--calls N] [--check]

Two loads of 5,000 chat requests (300 words each), all asked at once of the model stack over the openai backend, with a
journal. The stand-in server runs in another process, and each client in one of its own.

In flight: concurrency is as great as the number of calls, and the server answers none before all of them are under way
at one time. Printed: the greatest number in flight, and for each call the resident memory of the client at its peak,
less that before the first of them (when another call was done, so that all is loaded and open). So it is everything
that there is to a call: request, tasks in every layer, socket, answer, row in the journal. Read from /proc: Linux only.

Queueing: a tenth as many may be under way at one time, an answer takes 2 seconds, and the time-out is 8 seconds, while
the last calls wait for more than 16. Time-outs count from the moment of sending, so none may happen.

Targets: all calls in flight at one time, at most 64 KiB for each, and in neither load a call that failed or took a
second attempt. With ``--check`` the exit status says whether all were met. The last line is the memory for each call.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from standin import StandIn  # noqa: E402

from simengine.llm import CallStore, LLMSettings, Message, Request, Sampling, Stack, Stats, build  # noqa: E402

CALLS = 5000
TARGET = 64.0  # KiB for each call in flight
PROMPT = "a remastered collection of late and early recordings " * 38
ANSWER = "The first of them suits me better, since it holds more of what I like. " * 4
SPARE = 200  # files beside the sockets


@dataclass(frozen=True)
class Load:
    """How many calls may be under way, the seconds that an answer takes, and the client's time-out.

    ``together``: how many calls are under way before the server answers the first.
    """

    name: str
    calls: int
    concurrency: int
    timeout: float
    latency: float = 0.0
    together: int = 1


@dataclass(frozen=True)
class Result:
    """The stack's counters, seconds from the first call to the last answer, and KiB for each call at the peak."""

    stats: Stats
    seconds: float
    memory: float

    def faultless(self, load: Load) -> bool:
        """Whether every call was answered at its first attempt."""
        return self.stats.completed == self.stats.attempts == load.calls


def memory(name: str) -> int:
    """A line of this process's status in KiB: ``VmRSS``, what is resident now, or ``VmHWM``, the most that ever was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise SystemExit(f"there is no {name} in /proc/self/status")


def allow_sockets(count: int) -> None:
    """Let this process open so many sockets, if the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + SPARE:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count + SPARE, hard))
        except ValueError:
            raise SystemExit(f"{count} sockets are needed, and the system allows {hard} open files") from None


def serve(load: Load, pipe: Connection) -> None:
    """The server's process: sends its address, and serves until it is told to end."""
    allow_sockets(load.concurrency)

    async def run() -> None:
        async with StandIn(lambda body: ANSWER, latency=load.latency, together=load.together) as server:
            pipe.send(server.url)
            await asyncio.to_thread(pipe.recv)

    asyncio.run(run())


@asynccontextmanager
async def opened(url: str, load: Load) -> AsyncIterator[Stack]:
    """The stack as a run has it, with a journal."""
    settings = LLMSettings.model_validate(
        {
            "backend": "openai",
            "base_url": url,
            "model": "m",
            "timeout": load.timeout,
            "limits": {"concurrency": load.concurrency},
        }
    )
    with tempfile.TemporaryDirectory() as folder, CallStore(Path(folder) / "calls.sqlite") as store:
        async with build(settings, store) as stack:
            yield stack


async def ask(stack: Stack, number: int) -> None:
    """One call, like no other; its answer is let go of at once, as it is by whoever waits for one among thousands."""
    message = Message("user", f"{number}: {PROMPT}")
    await stack.complete(Request("choose", "m", (message,), Sampling(temperature=0.0), call=f"e{number}/choose"))


async def client(url: str, load: Load) -> Result:
    """All calls at once, and what came of them."""
    async with StandIn(lambda body: ANSWER) as near, opened(near.url, load) as stack:
        await ask(stack, 0)
    async with opened(url, load) as stack:
        gc.collect()
        before, start = memory("VmRSS"), time.perf_counter()
        await asyncio.gather(*(ask(stack, number) for number in range(load.calls)), return_exceptions=True)
        seconds = time.perf_counter() - start
        return Result(stack.stats(), seconds, (memory("VmHWM") - before) / load.calls)


def use(load: Load, url: str, pipe: Connection) -> None:
    """The client's process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    allow_sockets(load.concurrency)
    pipe.send(asyncio.run(client(url, load)))


def measure(load: Load) -> Result:
    """One client against one server, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    (server_pipe, its), (client_pipe, far) = context.Pipe(), context.Pipe()
    server = context.Process(target=serve, args=(load, its))
    server.start()
    its.close()
    user = context.Process(target=use, args=(load, server_pipe.recv(), far))
    user.start()
    far.close()
    try:
        result: Result = client_pipe.recv()
    except EOFError:
        raise SystemExit(f"the client failed: {load.name}") from None
    finally:
        server_pipe.send(None)
        user.join()
        server.join()
    print(
        f"{load.name:<10} at most {result.stats.greatest:,} of {load.calls:,} calls in flight, "
        f"{result.seconds:.1f} s in all, time-out {load.timeout:g} s: {result.stats.attempts:,} attempts, "
        f"{result.stats.completed:,} answers, failures {result.stats.failed or 'none'}",
        flush=True,
    )
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each load, a multiple of ten")
    parser.add_argument("--check", action="store_true", help="exit non-zero when a target is missed")
    options = parser.parse_args()
    calls = options.calls
    flying = Load("in flight", calls, concurrency=calls, timeout=120, together=calls)
    queueing = Load("queueing", calls, concurrency=calls // 10, timeout=8, latency=2)
    flown, queued = measure(flying), measure(queueing)
    missed = [load.name for load, result in ((flying, flown), (queueing, queued)) if not result.faultless(load)]
    if flown.stats.greatest < calls:
        missed.append("all in flight at one time")
    if queued.seconds < 2 * queueing.timeout:
        missed.append("a queue that is longer than the time-out")
    if flown.memory > TARGET:
        missed.append("memory")
    if missed:
        print(f"missed: {'; '.join(missed)}")
    print(f"peak memory for each of {calls:,} calls in flight: {flown.memory:.1f} KiB (target at most {TARGET:g})")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
