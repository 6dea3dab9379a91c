"""Replies that cannot be read, answers withheld, a server that falls silent: counted, skipped or stopped at, kept."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import runs
from standin import HANG, Body, StandIn, agentcf_reply, chat

from simengine.errors import RunStopped

# At a temperature above zero no two calls share an answer, so each request is one call.
WARM = "llm.temperature=0.7"
REFUSAL = "I'm sorry, I cannot pretend to be a person."
BABBLE = "Blue skies over the harbour."
_TITLES = re.compile(r"^Their titles:\n((?:.+\n?)+)", re.MULTILINE)
Question = tuple[str, str]

# What goes wrong: the task, the how-manieth of its questions, and what is answered, also to the corrective re-ask.
FLAWS = [
    ("choose", 5, "refusal"),
    ("choose", 9, "babble"),
    ("reflect.user", 7, "babble"),
    ("reflect.user", 11, "refusal"),
    ("reflect.item", 6, "filtered"),
    ("reflect.item", 12, "babble"),
    ("rank", 1, "babble"),
    ("rank", 3, "filtered"),
]


def _question(body: Body) -> Question:
    """The task and the titles shown: what is asked, whatever has been learnt by then."""
    form = str(body["messages"][0]["content"]).rpartition("exactly this form")[2]
    marks = {"Chosen": "choose", "self-introduction:": "reflect.user", "description of the first": "reflect.item"}
    titles = _TITLES.search(str(body["messages"][1]["content"]))
    assert titles is not None
    return next((task for mark, task in marks.items() if mark in form), "rank"), titles[1]


class Flawed:
    """Answers well, but for the questions of ``flaws``."""

    def __init__(self, flaws: dict[Question, str]) -> None:
        self.flaws = flaws

    def __call__(self, body: Body) -> str | Body:
        flaw = self.flaws.get(_question(body))
        if flaw == "filtered":
            held_back = chat("", body)
            held_back["choices"][0]["finish_reason"] = "content_filter"
            return held_back
        return {"refusal": REFUSAL, "babble": BABBLE}.get(str(flaw)) or agentcf_reply(body)

    def failures(self, bodies: list[Body]) -> dict[str, int]:
        """What the report must count, as the server sees it: a bad answer to a re-ask, or an answer held back."""
        unreadable = {"choose": "unmatched", "rank": "incomplete"}
        counts: Counter[str] = Counter()
        for body in bodies:
            task, _ = question = _question(body)
            flaw = self.flaws.get(question)
            if flaw == "filtered":
                counts[f"{task}: filtered"] += 1
            elif flaw and len(body["messages"]) > 2:
                counts[f"{task}: {'refusal' if flaw == 'refusal' else unreadable.get(task, 'no_heading')}"] += 1
        return dict(sorted(counts.items()))


@pytest.fixture(scope="module")
def flawed(tmp_path_factory: pytest.TempPathFactory) -> Flawed:
    """The flaws, found in a strictly serial run without any: there the k-th question of a task comes k-th."""
    with StandIn.in_thread(agentcf_reply) as server:
        sets = [*runs.served(server.url, 1), WARM, "engine.window=1"]
        runs.run(tmp_path_factory.mktemp("clean") / "run", *sets)
        asked = list(dict.fromkeys(map(_question, server.bodies)))
    of_task = {task: [question for question in asked if question[0] == task] for task, _, _ in FLAWS}
    return Flawed({of_task[task][at]: flaw for task, at, flaw in FLAWS})


@pytest.fixture
def server(flawed: Flawed) -> Iterator[StandIn]:
    with StandIn.in_thread(flawed, latency=0.002) as standin:
        yield standin


@pytest.fixture(scope="module")
def skipped(flawed: Flawed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flawed run that goes on past its failures, one call at a time."""
    with StandIn.in_thread(flawed) as server:
        folder = runs.run(tmp_path_factory.mktemp("skipped") / "run", *runs.served(server.url, 1), WARM).path
        expected = flawed.failures(server.bodies)
    assert runs.report(folder).failures == expected
    assert len(expected) >= 7
    return folder


def _failed(folder: Path) -> list[int]:
    """The positions of events with a failed unit."""
    return [
        at
        for at, event in enumerate(runs.events(folder))
        if any(outcome != "ok" for outcome in event["units"].values())
    ]


def test_skip_goes_on_and_counts_alike_at_any_concurrency(server: StandIn, skipped: Path, tmp_path: Path) -> None:
    found = runs.run(tmp_path / "run", *runs.served(server.url, 32), WARM)
    assert runs.history(found.path) == runs.history(skipped)
    assert found.report.failures == runs.report(skipped).failures
    assert json.loads(runs.history(skipped)[-1])["end"] == {"events": 32, "failed": len(_failed(skipped))}


@pytest.mark.parametrize(("concurrency", "window"), [(1, 1), (4, 4096), (32, 4096)])
def test_stop_ends_before_the_earliest_failure(
    concurrency: int, window: int, server: StandIn, skipped: Path, tmp_path: Path
) -> None:
    sets = [*runs.served(server.url, concurrency), WARM, f"engine.window={window}", "engine.on_error=stop"]
    folder = tmp_path / "run"
    with pytest.raises(RunStopped, match="stop at the first failure") as caught:
        runs.run(folder, *sets)
    first = _failed(skipped)[0]
    assert first > 2, "a few events are to stand before the first failure"
    assert caught.value.where["event"] == runs.events(skipped)[first]["event"]
    assert runs.history(folder) == runs.history(skipped)[: first + 1]  # the header, and all events before it
    assert not (folder / "report.json").exists()


def test_a_terminal_error_is_an_outcome_that_is_not_asked_for_again(
    server: StandIn, skipped: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(RunStopped, match="first failure"):
        runs.run(folder, *runs.served(server.url), WARM, "engine.on_error=stop")
    with pytest.raises(RunStopped, match="first failure"):
        runs.resume(folder)
    assert runs.replay(folder).finished is False

    runs.resume(folder, "engine.on_error=skip")
    assert runs.history(folder) == runs.history(skipped)
    assert runs.report(folder).failures == runs.report(skipped).failures
    assert server.requests == runs.report(skipped).costs.attempts, "a call was asked twice"
    assert runs.replay(folder).finished


def test_one_call_of_two_hundred_hangs(tmp_path: Path) -> None:
    """It fails at its time-out and is counted; all the others are answered meanwhile, and the run ends."""
    with StandIn.in_thread(agentcf_reply, faults=[None] * 30 + [HANG]) as server:
        sets = [*runs.served(server.url, 16), WARM, "llm.timeout=1.5", "llm.retry.budget=0", "data.users=20"]
        started = time.monotonic()
        found = runs.run(tmp_path / "run", *sets, "data.items=60")
        assert time.monotonic() - started < 15
        assert server.requests >= 200
    failures = found.report.failures
    assert [reason.partition(": ")[2] for reason in failures] == ["timeout"]
    assert sum(failures.values()) == 1
    assert found.report.costs.attempts == server.requests
    assert found.report.events == 80
    assert len(_failed(found.path)) == 1
