"""Plain simulations of when the calls of a run could end: ideally, as its authors ran it, at the very least.

They share nothing with the engine but what it logged. The calls of a run are made into jobs that wait for one another,
each with its latency, and seconds are counted on a heap of what is under way. How jobs are made of AgentCF stands here.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from simengine.kernel import Committed, Order

KINDS = ("choose", "reflect.user", "reflect.item")
"""The calls of one round, in the order in which the authors made them."""


class Job(NamedTuple):
    """One call: how long it takes, the jobs that must have ended before (by position), its event and its name there."""

    seconds: float
    after: tuple[int, ...] = ()
    event: int = 0
    name: str = "choose/r1"


Versions: TypeAlias = "dict[str, list[tuple[Order, tuple[int, ...]]]]"
"""For each agent the events that write it, in order, each with the jobs at the end of which its version is final."""


def jobs_of(records: Iterable[Committed], seconds: Callable[[str], float], span: float = 0.0) -> list[Job]:
    """The calls of an AgentCF run as jobs, in an order in which none waits for a later one.

    ``seconds`` is the latency of a call by its id. A choice waits for the last version of its user and of both items;
    with ``span`` items are published so often, and then an item that reflects waits for its own last version too. The
    user's version is final when its last reflection ends, an item's when the event ends. No unit may have failed.
    """
    jobs: list[Job] = []
    written: Versions = defaultdict(list)
    for number, record in enumerate(records):
        event = record.event
        if any(record.failures()):
            raise ValueError(f"a unit of {event.id} failed, so that its calls do not tell what waits for what")
        user, *items = event.writes
        published = (event.order[0], event.order[1] // span * span) if span else event.order
        before = finals(written, [user], event.order) + finals(written, [*items, *event.reads], published)
        ends: dict[str, int] = {}
        for _, stage in groupby((path for path, _ in record.calls), key=_stage):
            ends = {}
            for path in stage:
                kind = path.partition("/")[0]
                after = (ends[kind],) if kind in ends else before
                if kind == "reflect.item" and kind not in ends:
                    after += finals(written, items, event.order)
                ends[kind] = len(jobs)
                jobs.append(Job(seconds(f"{event.id}#{path}"), tuple(sorted(set(after))), number, path))
            before = tuple(ends.values())
        written[user].append((event.order, (ends["reflect.user"],)))
        for item in items:
            written[item].append((event.order, before))
    return jobs


def _stage(path: str) -> tuple[str, bool]:
    """What runs side by side: all reflections of a round. A choice stands alone."""
    kind, number = path.split("/")[:2]
    return number, kind == "choose"


def finals(written: Versions, agents: Iterable[str], as_of: Order) -> tuple[int, ...]:
    """The jobs at the end of which the agents' last versions before a place in the order are final."""
    found: tuple[int, ...] = ()
    for agent in agents:
        versions = written[agent]
        at = bisect_left(versions, (as_of,))
        found += versions[at - 1][1] if at else ()
    return found


def heights(jobs: Sequence[Job]) -> list[int]:
    """For each event the longest chain of events that wait for one another behind it, itself included."""
    behind: dict[int, set[int]] = defaultdict(set)
    for job in jobs:
        behind[job.event] |= {jobs[at].event for at in job.after} - {job.event}
    height = [1] * (1 + max(job.event for job in jobs))
    for event in reversed(range(len(height))):
        for earlier in behind[event]:
            height[earlier] = max(height[earlier], height[event] + 1)
    return height


def ideal(jobs: Sequence[Job], slots: int) -> float:
    """Seconds to the end of all jobs where nothing costs time but the jobs.

    Whenever a slot is free, it goes to the job with the least rank among those that are ready: its arrival number less
    the slots times its event's height, which is known for all events from the start. So the longest chain of
    dependants goes first, and passes by no more than that many rounds of all slots.
    """
    height, left = heights(jobs), [len(job.after) for job in jobs]
    followers: dict[int, list[int]] = defaultdict(list)
    for at, job in enumerate(jobs):
        for earlier in job.after:
            followers[earlier].append(at)
    fresh = [at for at, job in enumerate(jobs) if not job.after]
    ready: list[tuple[int, int, int]] = []
    running: list[tuple[float, int]] = []
    arrived, now = 0, 0.0
    while fresh or ready or running:
        for at in fresh:
            arrived += 1
            heapq.heappush(ready, (arrived - slots * height[jobs[at].event], arrived, at))
        fresh = []
        while ready and len(running) < slots:
            at = heapq.heappop(ready)[2]
            heapq.heappush(running, (now + jobs[at].seconds, at))
        now, ended = heapq.heappop(running)
        for at in followers[ended]:
            left[at] -= 1
            if not left[at]:
                fresh.append(at)
    return now


def work(jobs: Iterable[Job]) -> float:
    """Seconds of all jobs together."""
    return sum(job.seconds for job in jobs)


def critical_path(jobs: Sequence[Job]) -> float:
    """Seconds of the longest chain of jobs that wait for one another."""
    ends: list[float] = []
    for job in jobs:
        ends.append(job.seconds + max((ends[at] for at in job.after), default=0.0))
    return max(ends)


def bound(jobs: Sequence[Job], slots: int) -> float:
    """Seconds below which no schedule can come: the critical path, or the work shared by all slots."""
    return max(critical_path(jobs), work(jobs) / slots)


def as_the_authors(jobs: Iterable[Job], slots: int, batch: int = 20, together: int = 10) -> float:
    """Seconds for the same calls in batches of events, where all calls of one kind end before the next kind begins.

    Calls of one kind go out so many ``together``, as far as there are slots, and the next ones when all of these have
    ended. Nothing waits for a version: all agents of a batch read one snapshot.
    """
    total = 0.0
    for _, calls in groupby(jobs, key=lambda job: job.event // batch):
        for _, alike in groupby(sorted(calls, key=_place), key=_place):
            same = [Job(job.seconds) for job in alike]
            for at in range(0, len(same), together):
                total += ideal(same[at : at + together], slots)
    return total


def _place(job: Job) -> tuple[int, int, str]:
    kind, number, *_ = job.name.split("/")
    return int(number.removeprefix("r")), KINDS.index(kind), job.name
