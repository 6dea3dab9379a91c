"""What the calls of an AgentCF++ run wait for: steps of users in groups, and the formations that all users feed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import groupby

from virtual import Job, Versions, finals

from simengine.kernel import Committed

LOCAL = ("group",)
"""What is computed on the spot, which takes no time and no slot: tags, or histories, fall into clusters."""


def group_jobs_of(records: Iterable[Committed], seconds: Callable[[str], float], span: float = 0.0) -> list[Job]:
    """The calls of an AgentCF++ training as jobs, in an order in which none waits for a later one.

    ``seconds`` is the latency of a call by its id. A choice waits for the last version of its user, of both items and,
    where there are groups, of the grouping; each further call of a step for the call before it. With ``span`` items are
    published so often, and then those that reflect wait for their own last versions too. The user's version is final
    before the items' last reflection, the items' when the event ends.

    A formation waits for the last version of every user and for the last formation: then all users are asked for
    tags side by side, and once all have said them, all groups for names. What it writes is final when it ends. With a
    lag that is a draft, and the grouping of the event that adopts it is final when the draft is. Joining takes nothing.
    No unit may have failed.
    """
    found = _Jobs(seconds, span)
    for number, record in enumerate(records):
        found.take(number, record)
    return found.jobs


class _Jobs:
    """Takes in one event after the other."""

    def __init__(self, seconds: Callable[[str], float], span: float = 0.0) -> None:
        self._seconds = seconds
        self._span = span
        self._written: Versions = defaultdict(list)
        self.jobs: list[Job] = []

    def take(self, number: int, record: Committed) -> None:
        """Take in the next event of a log, which is its ``number``-th."""
        event = record.event
        if any(record.failures()):
            raise ValueError(f"a unit of {event.id} failed, so that its calls do not tell what waits for what")
        if event.kind == "interaction":
            self._step(number, record)
        elif event.kind in ("grouping.form", "grouping.adopt", "grouping.join"):
            self._regroup(number, record)
        else:
            raise ValueError(f"{event.id} is a {event.kind}, and no part of a training")

    def _step(self, number: int, record: Committed) -> None:
        event, written = record.event, self._written
        user, *items = event.writes
        published = (event.order[0], event.order[1] // self._span * self._span) if self._span else event.order
        last = finals(written, [user, *event.reads], event.order) + finals(written, items, published)
        mine = last
        for path, _ in record.calls:
            reflects = path.startswith("reflect.item/")
            last = self._add(number, record, path, last + (finals(written, items, event.order) if reflects else ()))
            mine = mine if reflects else last
        self._final((user,), record, mine)
        self._final(items, record, last)

    def _regroup(self, number: int, record: Committed) -> None:
        event = record.event
        ends = finals(self._written, [*event.writes, *event.reads], event.order)
        for stage, paths in groupby((path for path, _ in record.calls), key=lambda path: path.partition("/")[0]):
            if stage in LOCAL:
                continue
            begin, ends = ends, ()
            for _, branch in groupby(paths, key=lambda path: path.split("/")[1]):
                last = begin
                for path in branch:
                    last = self._add(number, record, path, last)
                ends += last
        self._final(event.writes, record, ends)

    def _add(self, number: int, record: Committed, path: str, after: tuple[int, ...]) -> tuple[int, ...]:
        """A call behind others; returns what to wait for who waits for it."""
        call = f"{record.event.id}#{path}"
        self.jobs.append(Job(self._seconds(call), tuple(sorted(set(after))), number, path))
        return (len(self.jobs) - 1,)

    def _final(self, agents: Iterable[str], record: Committed, ends: tuple[int, ...]) -> None:
        for agent in agents:
            self._written[agent].append((record.event.order, ends))
