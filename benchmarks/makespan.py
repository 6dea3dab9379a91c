"""How long a run takes: the real engine and limiter on a virtual clock, against an ideal simulation.

    python benchmarks/makespan.py [--check]

The model answers by rule, after log-normal latencies (median 1 s, sigma 0.5) that are drawn by call. For each load, and
so many calls at a time: the seconds until all is done; those of an ideal simulation of the same calls with the same
latencies and the same policy; the least that any schedule needs (the longer of the critical path and the work over the
slots); and those of the schedule that AgentCF's authors ran (batches of 20 interactions, all calls of one kind before
the next kind, 10 at a time), where no call waits for a version. Loads: the 500 training interactions of CDs-dense with
their recorded negatives, and the first 2,000 interactions of the first 100 users of MovieLens-100K at their real times,
once with items read at latest and once as they were published each week. And AgentCF++ on an invented market of three
domains: 450 interactions of 150 users, whose groups are formed anew behind every 100, in force at once, so that
everybody waits for all whenever groups are formed, and in force 50 later. There the authors' schedule is not known.

Then CDs-dense in real time (median 0.5 s) through the whole model stack, from a stand-in server in this process whose
latencies are drawn by what is asked, against its own run on the virtual clock.

Targets: at most 1.03 times the ideal, and in real time at most 1.1 times the virtual. With ``--check`` the exit status
says whether they were met. Data lie in SIMENGINE_DATA, or in ../shared/data; where they do not, the status is 2. The
last line is the greatest ratio to the ideal.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from standin import Lognormal, StandIn, agentcf_reply  # noqa: E402
from standin_clock import run_virtual  # noqa: E402
from virtual import Job, as_the_authors, bound, critical_path, ideal, jobs_of, work  # noqa: E402
from virtual_groups import group_jobs_of  # noqa: E402

from simengine.embed import cluster_texts, make_embedder  # noqa: E402
from simengine.kernel import Committed, Engine  # noqa: E402
from simengine.llm import CallStore, Completion, Request, build  # noqa: E402
from simengine.llm.backends.lexical import Lexical  # noqa: E402
from simengine.llm.backends.scripted import Scripted  # noqa: E402
from simengine.llm.layers.limit import Limit  # noqa: E402
from simengine.llm.layers.local import Local, Tool  # noqa: E402
from simengine.llm.settings import LimitSettings  # noqa: E402
from simengine.scenario.cast import Cast  # noqa: E402
from simengine.scenario.drive import Program, drive  # noqa: E402
from simengine.scenario.schema import read  # noqa: E402
from simengine.scenario.setup import Setup  # noqa: E402
from simengine.world import Graph  # noqa: E402

DATA = Path(os.environ.get("SIMENGINE_DATA", ROOT.parent / "shared" / "data"))
SCENARIO = """
name: makespan
seed: 7
llm: {backend: openai, base_url: "", model: stand-in, temperature: 0.2}
method: {kind: agentcf, rounds: 2}
stages: [{optimize: {}}]
"""  # at temperature 0 equal requests would share one answer, and there would be fewer calls than the authors made
DENSE = ("data.format=atomic", "data.noun=CD", "data.clock=step", "data.negatives=recorded/selections.jsonl")
MOVIES = ("data.format=atomic", "data.noun=movie", "data.clock=time", "data.users=100")
WEEKLY = "engine.visibility.items=every 1w"
MARKET = "data={format: market, users: 150, items: 450, domains: 3, interests: 6, interactions: 6, seed: 1}"
GROUPS = (MARKET, "method={kind: agentcfpp, rounds: 2, every: 100}")
ROWS = 2_000
SIGMA, SEED = 0.5, 1
REAL_MEDIAN, REAL_SLOTS = 0.5, 64
TARGET, TARGET_REAL = 1.03, 1.1


class Keeping:
    """A sink that keeps what is committed."""

    def __init__(self) -> None:
        self.records: list[Committed] = []

    def commit(self, record: Committed) -> None:
        self.records.append(record)


class Load(NamedTuple):
    """What is run: the name it is printed under, the scenario, and how many of its source events."""

    name: str
    setup: Setup
    rows: int | None = None

    @property
    def span(self) -> float:
        """The period in which items are published, in the unit of the data's clock; 0 where they are not."""
        period = self.setup.rules.periods.get("item")
        return period.span if period is not None else 0.0

    @property
    def grouped(self) -> bool:
        """Whether it is a load of AgentCF++, with users in groups."""
        return self.setup.scenario.method.kind == "agentcfpp"

    def jobs(self, records: list[Committed], seconds: Callable[[str], float]) -> list[Job]:
        """The calls of its events as jobs."""
        return (group_jobs_of if self.grouped else jobs_of)(records, seconds, self.span)


def load(name: str, folder: str, *sets: str, rows: int | None = None, url: str = "http://127.0.0.1/v1") -> Load:
    """A load over the data in a folder, or over none; ``sets`` are laid over the scenario."""
    path = (f"data.path={DATA / folder}",) if folder else ()
    entries = (*path, f"llm.base_url={url}", f"llm.limits.concurrency={REAL_SLOTS}", *sets)
    return Load(name, Setup.of(read("makespan.yaml", entries, SCENARIO)[0]), rows)


def virtually(load: Load, slots: int, seconds: Callable[[str], float]) -> tuple[list[Committed], float]:
    """What a load commits, and the virtual seconds it takes; ``seconds`` gives the latency of a call by its id."""

    async def answer(request: Request) -> str:
        await asyncio.sleep(seconds(request.call))
        if load.grouped:
            return (await Lexical().complete(request)).text
        return agentcf_reply({"messages": msgspec.to_builtins(request.messages)})

    async def main() -> float:
        limit = Limit(Scripted(answer), LimitSettings(concurrency=slots))
        cast = Cast(load.setup, Local({"cluster": clusters(load)}, limit))
        source = islice(cast.source(), load.rows)
        await Engine(Program(cast, Graph()), source, sink, load.setup.rules).run()
        return asyncio.get_running_loop().time()

    sink = Keeping()
    return sink.records, run_virtual(main())


def clusters(load: Load) -> Tool:
    """What finds clusters of texts, which takes no time on the virtual clock."""
    embedder = make_embedder(load.setup.scenario.embed)

    async def cluster(request: Request) -> str:
        pool, count = request.slots["pool"], int(str(request.slots["count"]))
        return json.dumps(await cluster_texts(embedder, pool, count))

    return cluster


def compare(load: Load, slots: int) -> float:
    """Run a load, simulate its calls, print a row of the table; returns the ratio to the ideal."""
    seconds = Lognormal(1.0, SIGMA, SEED).draw
    records, took = virtually(load, slots, seconds)
    jobs = load.jobs(records, seconds)
    best, least = ideal(jobs, slots), bound(jobs, slots)
    theirs = f"{'-':>10}{'-':>7}"
    if not load.grouped:
        other = as_the_authors(jobs, slots)
        theirs = f"{other:>10.1f}{other / took:>7.2f}"
    print(
        f"{load.name:<22}{slots:>6}{len(jobs):>7}{took:>10.1f}{best:>10.1f}{took / best:>7.3f}{least:>10.1f}"
        f"{took / least:>7.3f}{theirs}{work(jobs) / critical_path(jobs):>7.1f}"
    )
    return took / best


def table() -> float:
    """All loads on the virtual clock; returns the greatest ratio to the ideal."""
    titles = (("calls", 7), ("engine s", 10), ("ideal s", 10), ("ratio", 7), ("bound s", 10), ("ratio", 7))
    more = (("authors s", 10), ("ratio", 7), ("width", 7))
    print(f"{'load':<22}{'slots':>6}" + "".join(f"{title:>{width}}" for title, width in (*titles, *more)))
    dense = load("CDs-dense", "agentcf-cds-dense", *DENSE)
    ratios = [compare(dense, slots) for slots in (1, 8, 20, 32, 64)]
    for name, sets in (("MovieLens, latest", ()), ("MovieLens, weekly", (WEEKLY,))):
        ratios.append(compare(load(name, "ml-100k", *MOVIES, *sets, rows=ROWS), 64))
    for name, sets in (("AgentCF++, at once", ()), ("AgentCF++, lag 50", ("method.lag=50",))):
        ratios.append(compare(load(name, "", *GROUPS, *sets), 64))
    return max(ratios)


async def really(folder: Path, latency: Lognormal) -> tuple[list[Committed], float, dict[str, float]]:
    """CDs-dense in real time: what it commits, the seconds it takes, and the latency of each call by its id.

    The SDK is imported before, which takes about a second, once in a process.
    """
    importlib.import_module("openai.resources.chat")
    sink, loop = Keeping(), asyncio.get_running_loop()
    async with StandIn(agentcf_reply, latency=latency) as server:
        real = load("real time", "agentcf-cds-dense", *DENSE, url=server.url)
        with CallStore(folder / "calls.sqlite") as store:
            begin = loop.time()
            await drive(real.setup, build(real.setup.scenario.llm, store), sink)
            took = loop.time() - begin
            seconds = {}
            for row in store:
                assert isinstance(row.outcome, Completion)
                body = {**json.loads(row.outcome.sent), "messages": msgspec.to_builtins(row.request.messages)}
                digest = hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()
                if server.counts[digest] != 1:
                    raise SystemExit(f"the body of {row.request.call} was sent {server.counts[digest]} times, not once")
                seconds[row.request.call] = latency.draw(f"{digest}/1")
    return sink.records, took, seconds


def confirm() -> float:
    """Run CDs-dense in real time and on the virtual clock; prints both, returns their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        records, real, seconds = asyncio.run(really(Path(folder), Lognormal(REAL_MEDIAN, SIGMA, SEED)))
    again, took = virtually(load("virtual", "agentcf-cds-dense", *DENSE), REAL_SLOTS, seconds.__getitem__)
    if [record.calls for record in again] != [record.calls for record in records]:
        raise SystemExit("the run in real time made other calls than that on the virtual clock")
    print(
        f"in real time, {REAL_SLOTS} at a time, median {REAL_MEDIAN:g} s: {real:.1f} s for {len(seconds)} calls; "
        f"on the virtual clock {took:.1f} s; ratio {real / took:.3f} (target at most {TARGET_REAL})"
    )
    return real / took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit non-zero when a target is missed")
    options = parser.parse_args()
    missing = [name for name in ("agentcf-cds-dense", "ml-100k") if not (DATA / name).is_dir()]
    if missing:
        print(f"no {' and no '.join(missing)} in {DATA}: set SIMENGINE_DATA to the folder that holds them")
        return 2
    slower = confirm()
    worst = table()
    print(f"ratio {worst:.3f} to the ideal at most (target at most {TARGET})")
    return int(options.check and (worst > TARGET or slower > TARGET_REAL))


if __name__ == "__main__":
    sys.exit(main())
