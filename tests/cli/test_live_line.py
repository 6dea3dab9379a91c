"""The line that lives while a run goes on: what it says, how often it is printed, and log events beside it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import msgspec
import pytest
import runs
import structlog
from rich.console import Console
from standin import StandIn, agentcf_reply, error

from simengine.cli import live
from simengine.llm import Rates
from simengine.scenario.drive import Snapshot

FREE = Rates(0.0, 0.0, math.inf, math.inf)
BOUND = Rates(480.0, 151_200.0, 500.0, 2e6)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def piped() -> Console:
    return Console(file=StringIO(), width=80)


def terminal(width: int = 120) -> Console:
    return Console(file=StringIO(), width=width, force_terminal=True, color_system=None)


def text(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def snapshot(done: int, total: int = 100, rates: Rates = FREE, usd: float = 0.0) -> Snapshot:
    return Snapshot(done=done, total=total, calls=4 * done, failures=1, in_flight=64, waiting=130, rates=rates, usd=usd)


# -- what it says ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "left", "said"),
    [
        (
            snapshot(120, 600, BOUND, 0.12345),
            750.4,
            "120/600 events, 480 calls, 1 failed, 64 in flight, 130 waiting, 480 of 500 requests/min, "
            "151k of 2.00M tokens/min, 0.1235 USD, about 0:12:30 left",
        ),
        (
            snapshot(3, rates=Rates(12.0, 9_876.4, math.inf, math.inf)),
            None,
            "3/100 events, 12 calls, 1 failed, 64 in flight, 130 waiting, 12 requests/min, 9876 tokens/min",
        ),
        (
            msgspec.structs.replace(snapshot(3), pausing=8),
            None,
            "3/100 events, 12 calls, 1 failed, 64 in flight, 130 waiting, 8 to be sent again, 0 requests/min, "
            "0 tokens/min",
        ),
        (Snapshot(1, 1, 1, 0, 0, 0, FREE, 0.0), None, "1/1 event, 1 call, 0 failed"),
        (snapshot(100, rates=BOUND, usd=2.0), None, "100/100 events, 400 calls, 1 failed, 2.0000 USD"),
    ],
    ids=["limits and prices known", "nothing known", "after failures", "one", "at the end"],
)
def test_a_snapshot_in_one_line(now: Snapshot, left: float | None, said: str) -> None:
    assert live.describe(now, left) == said


# -- the time left --------------------------------------------------------------------------------------------------


def test_time_left_is_told_from_ten_seconds_and_five_events_on() -> None:
    left = live.TimeLeft()
    assert [left.after(*at, 100) for at in ((0, 50), (9, 59), (10, 54), (10, 60), (11, 60))] == [
        None,
        None,
        None,
        pytest.approx(10 / 10 * 40),
        pytest.approx(11 / 10 * 40),
    ]
    assert left.after(60, 100, 100) is None


def test_time_left_goes_by_the_pace_of_the_last_five_minutes() -> None:
    """A thousand events come from the journal in a second, then one in ten seconds: only that counts in the end."""
    left = live.TimeLeft()
    left.after(0, 0, 2000)
    for second in range(1, 331):
        found = left.after(second, 1000 + second // 10, 2000)
    assert found == pytest.approx(10 * (2000 - 1033), rel=0.05)


def test_a_run_that_stands_still_does_not_come_nearer_its_end() -> None:
    left = live.TimeLeft()
    left.after(0, 0, 100)
    assert left.after(10, 10, 100) == pytest.approx(90)
    assert left.after(100, 10, 100) == pytest.approx(900)
    assert left.after(1000, 10, 100) is None


# -- how it is shown ------------------------------------------------------------------------------------------------


def test_without_a_terminal_it_is_a_line_every_ten_seconds_at_most_and_the_last() -> None:
    console, clock = piped(), Clock()
    with live.LiveLine(console=console, clock=clock) as line:
        for second in range(26):
            clock.now = 100.0 + second
            line.update(snapshot(done=second * 4))
    lines = text(console).splitlines()
    assert [said.split(" ")[0] for said in lines] == ["0/100", "40/100", "80/100", "100/100"]
    assert lines[1].endswith("about 0:00:15 left")  # 40 events in 10 s, 60 to go
    assert "left" not in lines[0] + lines[3]
    assert "\x1b" not in text(console)


def test_the_last_state_is_printed_once() -> None:
    console, clock = piped(), Clock()
    with live.LiveLine(console=console, clock=clock) as line:
        line.update(snapshot(done=100))
    assert text(console) == "100/100 events, 400 calls, 1 failed\n"


@pytest.mark.parametrize("width", [200, 60])
def test_on_a_terminal_it_is_rewritten_in_place_and_never_cut(width: int) -> None:
    console, clock = terminal(width), Clock()
    with live.LiveLine(console=console, clock=clock) as line:
        line.update(snapshot(done=12, rates=BOUND))
        clock.now += 60
        line.update(snapshot(done=24, rates=BOUND, usd=1.5))
    erased = text(console).split("\x1b[2K")
    assert len(erased) > 1, "it was not drawn anew"
    last = " ".join(re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", erased[-1]).split())
    assert last == live.describe(snapshot(done=24, rates=BOUND, usd=1.5), 380.0)
    assert last.endswith("about 0:06:20 left")  # 12 events in a minute, 76 to go


# -- log events beside it -------------------------------------------------------------------------------------------


def test_an_event_is_a_line_on_stderr_and_no_traceback_shows_locals(capsys: pytest.CaptureFixture[str]) -> None:
    live.log_to_stderr(30)
    log = structlog.get_logger("simengine")
    try:
        log.info("retry", call="e1")
        log.warning("budget reached", call="e1", most=5)
        api_key = "sk-" + "local"
        try:
            raise ValueError(f"{len(api_key)} characters")
        except ValueError:
            log.exception("odd")
    finally:
        structlog.reset_defaults()
    out, err = capsys.readouterr()
    assert out == ""
    assert "retry" not in err
    assert re.search(r"^\S+ \S+ \[warning  \] budget reached +call=e1 most=5$", err, re.MULTILINE)
    assert "ValueError: 8 characters" in err
    assert "sk-local" not in err
    assert "\x1b" not in err


def run_with_faults(tmp_path: Path, *more: str, stderr: int) -> tuple[int, str]:
    """A small run whose second and third request are told to wait; exit status and stdout."""
    (tmp_path / "small.yaml").write_text(runs.SMALL, encoding="utf-8")
    busy = error(429, "slow down", retry_after="0.3")
    with StandIn.in_thread(agentcf_reply, faults=[None, busy, error(503)], latency=0.01) as server:
        sets = [part for entry in runs.served(server.url) for part in ("--set", entry)]
        prices = ["--set", "llm.prices={m: {input: 1000, output: 1000}}", "--set", "llm.limits.rpm=60000"]
        done = subprocess.run(
            [sys.executable, "-c", runs.PROGRAM, "run", "small.yaml", *sets, *prices, *more],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(runs.ROOT), "COLUMNS": "250", "TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            check=False,
        )
    return done.returncode, done.stdout


def on_a_terminal(tmp_path: Path, *more: str) -> str:
    """The same, with a terminal for stderr: what it was sent."""
    ours, its = pty.openpty()
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(_drained, ours)  # meanwhile: a terminal that nobody reads makes its writers wait
        try:
            status, _ = run_with_faults(tmp_path, *more, stderr=its)
        finally:
            os.close(its)
        assert status == 0
        return sent.result()


def _drained(handle: int) -> str:
    """All that comes until the other side is closed, which is an error with a terminal."""
    parts = []
    with contextlib.suppress(OSError), os.fdopen(handle, "rb", buffering=0) as screen:
        while part := screen.read(65_536):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_run_says_how_it_goes(tmp_path: Path) -> None:
    """Lines for a file: the first when it begins, the last when it is over, and nothing that is no warning."""
    file = tmp_path / "stderr"
    with file.open("wb") as stderr:
        status, _ = run_with_faults(tmp_path, stderr=stderr.fileno())
    assert status == 0
    lines = file.read_text(encoding="utf-8").splitlines()
    first, last, took = lines[0], lines[-2], lines[-1]
    assert re.fullmatch(
        r"\d+/32 events, \d+ calls, 0 failed, \d in flight, \d+ waiting, \d+ of 60k requests/min, \d+k? tokens/min"
        r"(, 0\.\d{4} USD|, \d\.\d{4} USD)?",
        first,
    )
    costs = json.loads((tmp_path / "replays" / "small" / "report.json").read_text(encoding="utf-8"))["costs"]
    calls, usd = sum(costs["calls"].values()), costs["spending"]["usd"]
    assert last == f"32/32 events, {calls} calls, 0 failed, {usd:.4f} USD"
    assert took.startswith("took 0:00:")
    assert not [line for line in lines if "[info" in line]


def test_verbose_tells_of_waits_and_retries(tmp_path: Path) -> None:
    file = tmp_path / "stderr"
    with file.open("wb") as stderr:
        run_with_faults(tmp_path, "--verbose", stderr=stderr.fileno())
    said = file.read_text(encoding="utf-8")
    for event in ("retry", "refused", "endpoint paused"):
        assert re.search(rf"\[info     \] {event} +.*call=\S+#\S+ .*task=\w+", said), event


def test_on_a_terminal_events_stand_above_the_line(tmp_path: Path) -> None:
    sent = on_a_terminal(tmp_path, "--verbose")
    assert "\x1b[2K" in sent, "the line was not drawn anew"
    plain = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", sent).replace("\r", "\n")
    events = [line for line in plain.splitlines() if "retry" in line]
    assert events
    for line in events:
        assert re.match(r"\d{4}-\d\d-\d\d ", line), "an event does not stand in a line of its own"
        assert " events, " not in line
    assert re.search(r"^32/32 events, \d+ calls, 0 failed, \d+\.\d{4} USD\s*\ntook 0:00:\d\d", plain, re.MULTILINE)
