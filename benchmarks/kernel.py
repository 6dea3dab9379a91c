"""The kernel against SimPy: the same interactions, the same memory updates, the same log, in one run.

Prints interactions per second of both and their ratio (target: at least 1.5), then the time per event at 1,000,000
events over that at 10,000 with the same agents (target: at most 1.5), then the peak memory. With ``--check`` the exit
status says whether both targets were met.

SimPy runs a process per interaction and a resource per user and per item; it is given the kernel's own log lines, so
that both write the same bytes, which is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import simpy

from simengine.kernel import Context, Engine, Event, Rules, Version
from simengine.runlog import Header, Provenance, Writer
from simengine.runlog.records import Chain, EventLine

USERS, ITEMS, ROWS = 20_000, 5_000, 200_000
TARGET_SIMPY, TARGET_GROWTH = 1.5, 1.5


def interactions(rows: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Agents of users (uniform) and of items (Zipf with exponent 1), one pair a row."""
    draws = np.random.default_rng(seed)
    weights = 1 / np.arange(1, ITEMS + 1)
    users = [f"user:{n}" for n in range(USERS)]
    items = [f"item:{n}" for n in range(ITEMS)]
    who = draws.integers(0, USERS, rows)
    what = draws.choice(ITEMS, rows, p=weights / weights.sum())
    return [users[n] for n in who], [items[n] for n in what]


class Counting:
    """Each interaction reads both memories and writes them anew."""

    def initial(self, agent: str) -> dict[str, Any]:
        return {"memory": 0}

    def announce(self, event: Event) -> None: ...

    async def handle(self, context: Context) -> None:
        user, item = context.event.writes
        mine = (await context.read(user, "memory", by=user)).value
        other = (await context.read(item, "memory", by=user)).value
        context.write(user, "memory", mine + 1)
        context.write(item, "memory", other + mine)


def events(users: list[str], items: list[str]) -> Iterator[Event]:
    for row, pair in enumerate(zip(users, items, strict=True)):
        yield Event(id=f"row{row}", kind="interaction", order=(0, row), time=row, writes=pair, source=True)


def run_kernel(users: list[str], items: list[str], path: Path) -> tuple[float, str]:
    """Seconds, and the hash of the log."""
    header = Header(schema=1, seed=0, scenario="", data="", prompts={})
    writer = Writer(path, header, Provenance(date="", packages={}, concurrency=1))
    begin = time.perf_counter()
    asyncio.run(Engine(Counting(), events(users, items), writer, Rules()).run())
    writer.close()
    return time.perf_counter() - begin, writer.sum


def run_simpy(users: list[str], items: list[str], path: Path) -> tuple[float, str]:
    """Seconds, and the hash of the log."""
    begin = time.perf_counter()
    env = simpy.Environment()
    agents = dict.fromkeys((*users, *items))
    locks = {agent: simpy.Resource(env) for agent in agents}
    memory = dict.fromkeys(agents, 0)
    version = dict.fromkeys(agents, 0)
    with Path(path).with_suffix(".kernel").open("rb") as made:
        _, header = made.readline(), made.readline()
    chain = Chain(header[-35:-3].decode())
    with path.open("wb", buffering=1 << 20) as file:

        def interaction(row: int, user: str, item: str) -> Iterator[Any]:
            with locks[user].request() as first, locks[item].request() as second:
                yield first
                yield second
                mine, other = memory[user], memory[item]
                memory[user], memory[item] = mine + 1, other + mine
                lines = []
                for agent in (user, item):
                    version[agent] += 1
                    lines.append(Version(agent, "memory", version[agent], memory[agent]))
                file.write(chain.close(EventLine(f"row{row}", "interaction", row, memories=lines)))

        def arrivals() -> Iterator[Any]:
            for row, (user, item) in enumerate(zip(users, items, strict=True)):
                env.process(interaction(row, user, item))
                yield env.timeout(1)

        env.process(arrivals())
        env.run()
    return time.perf_counter() - begin, chain.sum


def against_simpy(folder: Path, rounds: int) -> float:
    users, items = interactions(ROWS)
    ratios, rates = [], []
    for number in range(rounds):
        path = folder / f"run{number}"
        ours, our_sum = run_kernel(users, items, path.with_suffix(".kernel"))
        theirs, their_sum = run_simpy(users, items, path)
        if our_sum != their_sum:
            raise SystemExit("the two logs differ, so the comparison means nothing")
        ratios.append(theirs / ours)
        rates.append((ROWS / ours, ROWS / theirs))
    ours, theirs = (statistics.median(rate) for rate in zip(*rates, strict=True))
    print(f"interactions per second, log written: kernel {ours:,.0f}, SimPy {theirs:,.0f} (equal logs)")
    return statistics.median(ratios)


def growth(folder: Path, rounds: int) -> float:
    """Time per event at 1,000,000 events over that at 10,000, the two interleaved, medians."""
    many, few = interactions(1_000_000), interactions(10_000)
    times: dict[int, list[float]] = {1_000_000: [], 10_000: []}
    for number in range(rounds):
        for (users, items), repeat in ((few, 10), (many, 1)):
            for again in range(repeat):
                path = folder / f"growth{number}-{len(users)}-{again}"
                times[len(users)].append(run_kernel(users, items, path)[0] / len(users))
                path.unlink()
    large, small = statistics.median(times[1_000_000]), statistics.median(times[10_000])
    print(f"microseconds per event: {small * 1e6:.1f} at 10,000 events, {large * 1e6:.1f} at 1,000,000")
    return large / small


def peak(folder: Path) -> None:
    """Peak memory of a process that runs 1,000,000 interactions."""
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import kernel, pathlib;"
        "rows = kernel.interactions(1_000_000);"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "kernel.run_kernel(*rows, pathlib.Path(sys.argv[2]));"
        "print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", code, here, str(folder / "peak")]
    before, after = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    print(f"peak memory: {after / 1024:.0f} MiB at 1,000,000 events, {before / 1024:.0f} MiB of it before the run")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit non-zero when a target is missed")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each comparison")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peak(folder)
        slower = growth(folder, options.rounds)
        faster = against_simpy(folder, options.rounds)
    print(f"growth {slower:.2f} (target at most {TARGET_GROWTH})")
    print(f"ratio {faster:.2f} (target at least {TARGET_SIMPY})")
    return int(options.check and (faster < TARGET_SIMPY or slower > TARGET_GROWTH))


if __name__ == "__main__":
    sys.exit(main())
