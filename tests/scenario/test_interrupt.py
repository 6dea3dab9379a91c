"""Ctrl-C and SIGTERM: calls in flight get their grace, the log is a prefix, and a resume asks nothing twice."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import runs
from aiohttp import web
from standin import Body, StandIn, agentcf_reply

CONCURRENCY = 16
SCENARIO = runs.SMALL.replace("users: 8, items: 12", "users: 30, items: 200")
STRICT = {"PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": "1"}
ANSWERED = 40


class Slowing(StandIn):
    """A server that answers so many requests at once, and takes ``slow`` seconds for each of the others."""

    def __init__(self, slow: float) -> None:
        super().__init__(agentcf_reply)
        self.slow = slow

    def _record(self, request: web.Request, body: Body) -> None:
        super()._record(request, body)
        if self.requests > ANSWERED:
            self.latency = self.slow

    def is_full(self) -> bool:
        return self.latency > 0 and self.under_way == CONCURRENCY


@contextmanager
def _started(server: StandIn, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own, in which every warning is an error."""
    (folder / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    sets = [part for entry in runs.served(server.url, CONCURRENCY) for part in ("--set", entry)]
    process = runs.start("run", folder / "scenario.yaml", "--out", "run", *sets, cwd=folder, **STRICT)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _clean(err: str) -> None:
    for noise in ("Traceback", "never retrieved", "unclosed", "was destroyed", "never awaited", "Warning"):
        assert noise not in err, err


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing disturbs."""
    with StandIn.in_thread(agentcf_reply) as server:
        sets = runs.served(server.url, CONCURRENCY)
        return runs.run(tmp_path_factory.mktemp("whole") / "run", *sets, text=SCENARIO).path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_with_calls_in_flight(number: signal.Signals, whole: Path, tmp_path: Path) -> None:
    with Slowing.in_thread(slow=1.0) as server:
        with _started(server, tmp_path) as process:
            runs.wait_for(server.is_full)
            process.send_signal(number)
            asked = server.requests
            _, err = process.communicate(timeout=9)
        assert process.returncode == 130, err
        _clean(err)
        assert f"signal {number.name}: the run was stopped" in err
        assert "once more to stop at once" in err
        assert "simengine run --resume run" in err

        # What had been answered and what was in flight is written down: the calls were given their time. Those that
        # waited for a slot were not sent.
        folder = tmp_path / "run"
        assert server.requests == asked
        assert len(runs.calls(folder)) == asked
        assert len(server.counts) == asked
        written = runs.history(folder)
        assert written == runs.history(whole)[: len(written)]
        assert len(written) > 1

        server.latency = server.slow = 0.0
        runs.resume(folder, "llm.base_url=" + server.url)
        assert runs.history(folder) == runs.history(whole)
        assert set(server.counts.values()) == {1}, "a call was asked twice"


def test_a_second_signal_stops_at_once(whole: Path, tmp_path: Path) -> None:
    with Slowing.in_thread(slow=30.0) as server:
        with _started(server, tmp_path) as process:
            runs.wait_for(server.is_full)
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            assert process.poll() is None, "calls in flight are given ten seconds"
            process.send_signal(signal.SIGINT)
            asked = time.monotonic()
            _, err = process.communicate(timeout=9)
        assert time.monotonic() - asked < 3
        assert process.returncode == 130, err
        _clean(err)
        assert "journal" in err
        folder = tmp_path / "run"
        rows = len(runs.calls(folder))
        assert rows == server.requests - CONCURRENCY
        written = runs.history(folder)
        assert written == runs.history(whole)[: len(written)]


@pytest.mark.slow
def test_what_does_not_answer_within_the_grace_is_abandoned_and_counted(whole: Path, tmp_path: Path) -> None:
    with Slowing.in_thread(slow=30.0) as server:
        with _started(server, tmp_path) as process:
            runs.wait_for(server.is_full)
            process.send_signal(signal.SIGTERM)
            asked = time.monotonic()
            _, err = process.communicate(timeout=30)
        assert 10 <= time.monotonic() - asked < 15
        assert process.returncode == 130, err
        _clean(err)
        assert f"abandoned calls {CONCURRENCY}" in err


def test_a_finished_run_leaves_nothing_behind(whole: Path, tmp_path: Path) -> None:
    """The same strictness over a whole run: no warning of any kind, of a socket or a task, up to the very end."""
    with StandIn.in_thread(agentcf_reply) as server, _started(server, tmp_path) as process:
        _, err = process.communicate()
        assert process.returncode == 0, err
        _clean(err)
    assert runs.history(tmp_path / "run") == runs.history(whole)
    assert json.loads((tmp_path / "run" / "report.json").read_bytes())["costs"]["unmetered"] == 0
