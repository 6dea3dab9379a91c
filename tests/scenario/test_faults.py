"""A server that fails in every way that passes, and a model that answers badly: runs end all the same, and alike."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest
import runs
from standin import MIXED, Body, Fault, Lognormal, StandIn, agentcf_reply, chat, error

from simengine.errors import RunStopped
from simengine.llm import Completion
from simengine.llm.layers import retry

SHARE = 0.2  # of all requests meet a fault of transport
# A fault met at once is answered at once, and silence costs no more than this; a loaded machine answers well within.
TIMEOUT = "llm.timeout=1"
# No two calls share an answer then, so that one request is one call; at zero they may.
WARM = "llm.temperature=0.7"
MARKET = """
name: faults
seed: 5
data: {format: market, users: 15, items: 40, interests: 3, interactions: 6, seed: 4}
method: {kind: agentcf}
stages:
  - optimize: {}
  - rank: {}
"""
"""45 interactions (three for each user) and 15 rankings."""
LARGE = MARKET.replace("users: 15, items: 40", "users: 100, items: 200").replace("interactions: 6", "interactions: 8")
"""500 interactions (five for each user) and 100 rankings."""


class Faulty(StandIn):
    """A server that fails by a seeded draw for each request, and counts how often each kind was met.

    The request of the number ``stops_at`` is told to come back in ten minutes, which is longer than any run waits.
    """

    def __init__(self, stops_at: int = 0) -> None:
        super().__init__(agentcf_reply, share=SHARE, seed=2)
        self.stops_at = stops_at
        self.met: Counter[int] = Counter()

    def _fault(self, body: Body) -> Fault | None:
        if self.requests == self.stops_at:
            return error(429, "come back later", retry_after="600")
        fault = super()._fault(body)
        if fault is not None:
            self.met[MIXED.index(fault)] += 1
        return fault


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE", 0.01)


def _same_history_as_without_faults(text: str, concurrency: int, tmp_path: Path) -> int:
    """Hold a run against a failing server against one that nothing disturbs; returns how many events it has."""
    with StandIn.in_thread(agentcf_reply) as sound:
        clean = runs.run(tmp_path / "clean", *runs.served(sound.url, concurrency), text=text)
    with Faulty.in_thread() as server:
        assert isinstance(server, Faulty)
        sets = [*runs.served(server.url, concurrency), TIMEOUT, "llm.retry.budget=60"]
        found = runs.run(tmp_path / "run", *sets, text=text)

    assert found.report.hash == clean.report.hash
    assert runs.history(found.path) == runs.history(clean.path)
    assert found.report.failures == {}
    assert set(server.met) == set(range(len(MIXED))), "some kind of fault was not met"
    faults = sum(server.met.values())
    assert faults / server.requests == pytest.approx(SHARE, abs=0.08)
    # One whole answer for each call that is written down, and an attempt for each fault beside it: nothing was asked
    # that had been answered, and nothing was lost.
    assert server.repeats == 0
    assert set(server.answered.values()) == {1}
    assert len(server.answered) == len(runs.calls(found.path)) == sound.requests
    assert found.report.costs.attempts == server.requests == sound.requests + faults
    return int(found.report.events)


def test_faults_of_transport_leave_no_trace_in_the_history(tmp_path: Path) -> None:
    assert _same_history_as_without_faults(MARKET, 16, tmp_path) == 60


@pytest.mark.slow
def test_faults_of_transport_leave_no_trace_in_five_hundred_interactions(tmp_path: Path) -> None:
    assert _same_history_as_without_faults(LARGE, 64, tmp_path) == 600
    assert len(runs.events(tmp_path / "run", "interaction")) == 500


def test_a_stop_among_faults_asks_nothing_again_that_is_written_down(tmp_path: Path) -> None:
    """The run ends halfway, when some calls are under way and others between two attempts; then it is resumed."""
    folder = tmp_path / "run"
    with Faulty.in_thread(stops_at=150) as server:
        sets = [*runs.served(server.url, 16), TIMEOUT, "llm.retry.budget=60"]
        with pytest.raises(RunStopped, match="the server asks to wait 600 s"):
            runs.run(folder, *sets, text=MARKET)
        before = _journalled(folder)
        first = server.requests
        resumed = runs.resume(folder)
    asked = {_messages(body) for body in server.bodies[first:]}
    assert 0 < len(before) < first
    assert not before & asked, "a call was asked again whose answer was written down"
    assert before | asked == _journalled(folder)
    with StandIn.in_thread(agentcf_reply) as sound:
        assert resumed.report.hash == runs.run(tmp_path / "clean", *runs.served(sound.url), text=MARKET).report.hash


def _messages(body: Body) -> tuple[tuple[str, str], ...]:
    return tuple((message["role"], message["content"]) for message in body["messages"])


def _journalled(folder: Path) -> set[tuple[tuple[str, str], ...]]:
    return {tuple((said.role, said.content) for said in row.request.messages) for row in runs.calls(folder)}


# -- bad answers in valid replies -----------------------------------------------------------------------------------

# What is answered, and the reason for which each task cannot read it. Nothing is said of a task that reads it: a title
# stands only in choices and rankings.
BAD = {
    "garbage": ("%$ 0x1F blue harbour }}]", {"choose": "unmatched", "rank": "incomplete", "": "no_heading"}),
    "refusal": ("I'm sorry, I cannot pretend to be a person.", {"": "refusal"}),
    "wrong title": ("Chosen album: The Quorum of Vex\nExplanation: I like it.", {"choose": "unmatched"}),
    "wrong titles": ("Rank:\n1. The Quorum of Vex\n2. Zyx in Mjolnir", {"rank": "incomplete"}),
    "half": ("The updated description of the first album is: It suits all.", {"reflect.item": "incomplete"}),
    "truncated": ("", {"": "truncated"}),
    "empty": ("", {"": "empty"}),
    "null": ("", {"": "empty"}),
}
CORRECTION = "Your last answer could not be used"


def _task(body: Body) -> str:
    form = str(body["messages"][0]["content"]).rpartition("exactly this form")[2]
    marks = {"Chosen": "choose", "self-introduction:": "reflect.user", "description of the first": "reflect.item"}
    return next((task for mark, task in marks.items() if mark in form), "rank")


def _is_reask(body: Body) -> bool:
    return CORRECTION in str(body["messages"][-1]["content"])


class Unsound:
    """Answers a third of all requests badly, drawn by what they say alone: the same request has the same answer."""

    def kind(self, body: Body) -> str | None:
        """What is wrong with the answer to a body, if anything is."""
        task, digest = _task(body), hashlib.blake2b(repr(_messages(body)).encode(), digest_size=8).digest()
        if digest[0] % 3:
            return None
        kinds = [kind for kind, (_, reasons) in BAD.items() if task in reasons or "" in reasons]
        return kinds[digest[1] % len(kinds)]

    def reason(self, body: Body) -> str | None:
        """The word that a bad answer to a body is counted under."""
        kind = self.kind(body)
        reasons = BAD[kind][1] if kind else {"": None}
        return reasons.get(_task(body), reasons.get(""))

    def __call__(self, body: Body) -> Body:
        kind = self.kind(body)
        good = agentcf_reply({**body, "messages": body["messages"][:2]})  # a correction shows no titles of its own
        if kind is None:
            return chat(good, body)
        made = chat(good[: len(good) // 2] if kind == "truncated" else BAD[kind][0], body)
        if kind == "truncated":
            made["choices"][0]["finish_reason"] = "length"
        if kind == "null":
            made["choices"][0]["message"]["content"] = None
        return made


def _count(unsound: Unsound, bodies: list[Body], reasks: bool) -> Counter[str]:
    """The bad answers to corrections, or to first questions, by task and reason."""
    asked = ((_task(body), unsound.reason(body)) for body in bodies if _is_reask(body) is reasks)
    return Counter(f"{task}: {reason}" for task, reason in asked if reason is not None)


def test_bad_answers_are_counted_by_reason_and_alike_at_any_concurrency(tmp_path: Path) -> None:
    unsound, hashes, reports = Unsound(), [], []
    for concurrency in (1, 16):
        latency = Lognormal(0.004, 0.8) if concurrency > 1 else 0.0  # answers then overtake one another
        with StandIn.in_thread(unsound, latency=latency) as server:
            sets = [*runs.served(server.url, concurrency), WARM, "data.users=40"]
            folder = runs.run(tmp_path / str(concurrency), *sets, text=MARKET).path
        report = runs.report(folder)
        met = Counter(unsound.kind(body) for body in server.bodies)
        assert set(met) == {None, *BAD}, "some kind of bad answer was not met"
        # A bad first answer is asked for once more; a second one is the unit's failure, under its own reason.
        rows = [row for row in runs.calls(folder) if isinstance(row.outcome, Completion)]
        reasked = [row for row in rows if any(CORRECTION in said.content for said in row.request.messages)]
        assert len(rows) == server.requests
        assert len(reasked) == _count(unsound, server.bodies, reasks=False).total() > 0
        assert report.failures == dict(sorted(_count(unsound, server.bodies, reasks=True).items()))
        reasons = {reason for _, by_task in BAD.values() for reason in by_task.values()}
        assert {reason.partition(": ")[2] for reason in report.failures} == reasons
        assert report.events == 160
        hashes.append((report.hash, runs.history(folder)))
        reports.append(report.failures)
    assert hashes[0] == hashes[1]
    assert reports[0] == reports[1]
