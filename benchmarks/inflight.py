"""What thousands of calls in flight take in one process: memory for each, and whether queueing ever times one out.

    python benchmarks/inflight.py [--calls N] [--check]

Three loads of 5,000 chat requests, all asked at once over the openai backend, with a journal. The stand-in server runs
in another process, and each client in one of its own.

Stack: 300 words each, asked of the model stack. Concurrency is as great as the number of calls, and the server answers
none before all of them are under way at one time. The resident memory of the client at its peak, less that before the
first of them (when another call was done, so that all is loaded), is everything that there is to a call: request, tasks
in every layer, socket, answer, row in the journal. It is read from /proc: Linux only.

Run: the same for a whole run, the window of its engine raised: each of as many users of a market ranks ten candidates.
Its memory, up to the last event, holds the data set, the events and the agents' messages too.

Queueing: the stack again, but a tenth as many may be under way at one time, an answer takes 2 seconds, and the time-out
is 8 seconds, while the last calls wait for more than 16. Time-outs count from the sending, so none may happen.

Targets: all calls in flight at one time; at most 64 KiB for each in the stack and 80 in a run; and in no load a call
that failed or took a second attempt. With ``--check`` the exit status says whether all were met. The last line is the
memory for each call in the stack.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import structlog

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from standin import Body, StandIn, agentcf_reply  # noqa: E402

from simengine import scenario as scenarios  # noqa: E402
from simengine.errors import CallFailed  # noqa: E402
from simengine.llm import CallStore, LLMSettings, Message, Request, Sampling, Stack, build  # noqa: E402
from simengine.scenario.drive import Snapshot  # noqa: E402

CALLS = 5000
TARGET, TARGET_RUN = 64.0, 80.0  # KiB for each call in flight
PROMPT = "A remastered collection of late and early recordings. " * 38
ANSWER = "The first of them suits me better, since it holds more of what I like. " * 4
SPARE = 200  # files beside the sockets
MARKET = """
name: inflight
data: {format: market, users: 10, items: 200, interests: 5, interactions: 5, seed: 4}
method: {kind: agentcf}
llm: {backend: openai, model: m, temperature: 0.7}
stages:
  - rank: {}
"""
"""At this temperature no two calls share an answer."""


@dataclass(frozen=True)
class Load:
    """Who asks, how many may be under way, the seconds that an answer takes, and the client's time-out.

    ``together``: how many calls are under way before the server answers the first.
    """

    name: str
    client: Callable[[str, Load], Coroutine[Any, Any, Result]]
    calls: int
    concurrency: int
    timeout: float
    latency: float = 0.0
    together: int = 1


@dataclass(frozen=True)
class Result:
    """Attempts, calls that ended without an answer, seconds from first to last, and KiB for each call at the peak."""

    attempts: int
    failed: dict[str, int]
    seconds: float
    memory: float

    def faultless(self, load: Load) -> bool:
        """Whether every call was answered at its first attempt."""
        return self.attempts == load.calls and not self.failed


def memory(name: str) -> int:
    """A line of this process's status in KiB: ``VmRSS``, what is resident now, or ``VmHWM``, the most that ever was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise SystemExit(f"there is no {name} in /proc/self/status")


def allow_sockets(count: int) -> None:
    """Let this process, and those that it starts, open so many sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + SPARE:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count + SPARE, hard))
        except ValueError:
            raise SystemExit(f"{count} sockets are needed, and the system allows {hard} open files") from None


def reply(body: Body) -> str:
    return agentcf_reply(body) if body["messages"][0]["role"] == "system" else ANSWER


def serve(load: Load, pipe: Connection) -> None:
    """The server's process: sends its address, and the most that it saw under way when it is told to end."""

    async def run() -> None:
        async with StandIn(reply, latency=load.latency, together=load.together) as server:
            pipe.send(server.url)
            await asyncio.to_thread(pipe.recv)
            pipe.send(server.greatest)

    asyncio.run(run())


@contextlib.asynccontextmanager
async def opened(url: str, load: Load) -> AsyncIterator[Stack]:
    """The stack as a run has it, with a journal."""
    told = {"base_url": url, "timeout": load.timeout, "limits": {"concurrency": load.concurrency}}
    settings = LLMSettings.model_validate({"backend": "openai", "model": "m", **told})
    with tempfile.TemporaryDirectory() as folder, CallStore(Path(folder) / "calls.sqlite") as store:
        async with build(settings, store) as stack:
            yield stack


async def ask(stack: Stack, number: int) -> None:
    """One call, like no other. The stack counts it where it fails."""
    message = Message("user", f"{number}: {PROMPT}")
    with contextlib.suppress(CallFailed):
        await stack.complete(Request("choose", "m", (message,), Sampling(temperature=0.0), call=f"e{number}/choose"))


async def use_stack(url: str, load: Load) -> Result:
    """All calls at once, behind one that is asked of a server nearby."""
    async with StandIn(reply) as near, opened(near.url, load) as stack:
        await ask(stack, 0)
    async with opened(url, load) as stack:
        gc.collect()
        before, start = memory("VmRSS"), time.perf_counter()
        await asyncio.gather(*(ask(stack, number) for number in range(load.calls)))
        seconds, most = time.perf_counter() - start, memory("VmHWM")
        stats = stack.stats()
    return Result(stats.attempts, stats.failed, seconds, (most - before) / load.calls)


async def use_run(url: str, load: Load) -> Result:
    """A run whose users all rank at once, behind one of ten users with a server nearby."""
    most = 0

    def observe(snapshot: Snapshot) -> None:
        nonlocal most
        most = memory("VmHWM")  # the last time is behind the last event, before anything is measured

    async def run(url: str, out: Path, *sets: str) -> scenarios.Report:
        told = [f"llm.base_url={url}", f"llm.timeout={load.timeout}", f"llm.limits.concurrency={load.concurrency}"]
        scenario, plain = scenarios.read(out.with_suffix(".yaml"), [*told, *sets], MARKET)
        return (await scenarios.run(scenario, plain, out=out, observe=observe)).report

    with tempfile.TemporaryDirectory() as name:
        async with StandIn(reply) as near:
            await run(near.url, Path(name) / "near")
        gc.collect()
        before, start = memory("VmRSS"), time.perf_counter()
        report = await run(url, Path(name) / "run", f"data.users={load.calls}", f"engine.window={load.calls}")
        seconds = time.perf_counter() - start
    return Result(report.costs.attempts, report.failures, seconds, (most - before) / load.calls)


def use(load: Load, url: str, pipe: Connection) -> None:
    """The client's process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    pipe.send(asyncio.run(load.client(url, load)))


def measure(load: Load) -> tuple[Result, int]:
    """One client against one server, each in a process of its own; and the most calls that the server saw at a time."""
    context = multiprocessing.get_context("spawn")
    (server_pipe, its), (client_pipe, far) = context.Pipe(), context.Pipe()
    server = context.Process(target=serve, args=(load, its))
    server.start()
    user = context.Process(target=use, args=(load, server_pipe.recv(), far))
    user.start()
    far.close()
    try:
        result: Result = client_pipe.recv()
    except EOFError:
        raise SystemExit(f"the client failed: {load.name}") from None
    finally:
        server_pipe.send(None)
        greatest: int = server_pipe.recv()
        user.join()
        server.join()
    print(
        f"{load.name:<9} {greatest:,} of {load.calls:,} calls in flight at most, "
        f"{result.memory:.1f} KiB for each of all; {result.seconds:.1f} s, time-out {load.timeout:g} s; "
        f"{result.attempts:,} attempts, failed: {result.failed or 'none'}",
        flush=True,
    )
    return result, greatest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each load, a multiple of ten")
    parser.add_argument("--check", action="store_true", help="exit non-zero when a target is missed")
    options = parser.parse_args()
    calls = options.calls
    allow_sockets(calls)
    stack = Load("stack", use_stack, calls, concurrency=calls, timeout=120, together=calls)
    run = Load("run", use_run, calls, concurrency=calls, timeout=120, together=calls)
    queueing = Load("queueing", use_stack, calls, concurrency=calls // 10, timeout=8, latency=2)
    missed, results = [], []
    for load, most in ((stack, TARGET), (run, TARGET_RUN), (queueing, TARGET)):
        result, greatest = measure(load)
        results.append(result)
        if not result.faultless(load):
            missed.append(f"{load.name}: a call failed or was tried again")
        if greatest != load.concurrency:
            missed.append(f"{load.name}: never {load.concurrency:,} in flight")
        if result.memory > most:
            missed.append(f"{load.name}: more than {most:g} KiB for each call")
    if results[-1].seconds < 2 * queueing.timeout:
        missed.append("queueing: the queue was not twice as long as the time-out")
    if missed:
        print(f"missed: {'; '.join(missed)}")
    print(f"memory for each of {calls:,} calls in flight: {results[0].memory:.1f} KiB (target at most {TARGET:g})")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
