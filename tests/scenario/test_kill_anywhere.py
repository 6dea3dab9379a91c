"""Kill a run anywhere: it goes on to the history it would have had, and asks for nothing that is written down."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import runs
from aiohttp import web
from standin import Body, StandIn, agentcf_reply

CONCURRENCY = 8
SCENARIO = runs.SMALL.replace("users: 8", "users: 6")
FEW, MANY = 8, 60  # kills in the default run and in the long one


class Deadly(StandIn):
    """A server of uneven latency (15 to 45 ms) that kills its client when the request of a given number comes in."""

    def __init__(self) -> None:
        super().__init__(agentcf_reply)
        self.victim = 0
        self.kill_at = 0

    def _record(self, request: web.Request, body: Body) -> None:
        super()._record(request, body)
        self.latency = random.uniform(0.015, 0.045)
        if self.victim and self.requests >= self.kill_at:
            os.kill(self.victim, signal.SIGKILL)
            self.victim = 0


@pytest.fixture(scope="module")
def server() -> Iterator[Deadly]:
    with Deadly.in_thread() as standin:
        assert isinstance(standin, Deadly)
        yield standin


@pytest.fixture(scope="module")
def whole(server: Deadly, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return runs.run(folder, *runs.served(server.url, CONCURRENCY), text=SCENARIO).path


def _killed(server: Deadly, folder: Path, at: int) -> Path:
    """A run by the program in a process of its own, killed when its request number ``at`` comes in."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    sets = [part for entry in runs.served(server.url, CONCURRENCY) for part in ("--set", entry)]
    server.kill_at = server.requests + at
    process = runs.start("run", scenario, "--out", "run", *sets, cwd=folder)
    server.victim = process.pid
    _, err = process.communicate()
    assert process.returncode == -signal.SIGKILL, err
    runs.wait_for(lambda: server.under_way == 0)  # requests of the dead that are still on their way to the server
    return folder / "run"


def _asked(bodies: list[Body]) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for body in bodies)


def _answered(folder: Path) -> set[str]:
    """What the journal holds, in the same form. Looked at in a copy, so that nothing is mended by looking."""
    copy = folder.with_name("looked-at")
    shutil.copytree(folder, copy)
    rows = runs.calls(copy)
    shutil.rmtree(copy)
    return {json.dumps([{"role": m.role, "content": m.content} for m in row.request.messages]) for row in rows}


def _check(server: Deadly, whole: Path, folder: Path, at: int) -> int:
    """Kill a run, resume it, and hold it against the undisturbed one; returns how much of it the kill left to log."""
    before = server.requests
    killed = _killed(server, folder, at)
    first = _asked(server.bodies[before:])
    written = _answered(killed)
    logged = len(runs.history(killed))
    resumed = server.requests
    finished = runs.resume(killed)
    again = _asked(server.bodies[resumed:])

    assert runs.history(killed) == runs.history(whole)
    assert finished.report.hash == json.loads((whole / "report.json").read_bytes())["hash"]
    assert not written & again.keys(), "a call was asked again whose answer was written down"
    assert set(first.values()) == set(again.values()) == {1}
    assert len(first.keys() - written) <= CONCURRENCY
    assert first.keys() & again.keys() == first.keys() - written
    assert first.keys() | again.keys() == _answered(whole)
    return logged


def _points(whole: Path, count: int) -> list[int]:
    """So many numbers of requests, from the first to the last, evenly spread."""
    total = len(runs.calls(whole))
    return [1 + round(at * (total - 1) / (count - 1)) for at in range(count)]


def test_killed_at_a_few_points(server: Deadly, whole: Path, tmp_path: Path) -> None:
    logged = []
    for at in _points(whole, FEW):
        folder = tmp_path / str(at)
        folder.mkdir()
        logged.append(_check(server, whole, folder, at))
    assert min(logged) == 1, "at the first request nothing but the header is written"
    assert max(logged) > 1, "late in the run the log has been flushed"


@pytest.mark.slow
def test_killed_at_many_points(server: Deadly, whole: Path, tmp_path: Path) -> None:
    for at in _points(whole, MANY):
        folder = tmp_path / str(at)
        folder.mkdir()
        _check(server, whole, folder, at)
