"""A run may be one of several in a process: after another, in a thread, inside a loop that runs already."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import runs
from standin import StandIn, agentcf_reply

from simengine import scenario as scenarios
from simengine.errors import InputError, LogError

PROGRAM = """
import asyncio, sys, threading
import simengine

scenario, url = sys.argv[1:]
set = {"llm.backend": "openai", "llm.model": "m", "llm.base_url": url, "llm.limits.concurrency": 8}
hashes = [simengine.run(scenario, set, out=name).report.hash for name in ("first", "second")]

def in_thread():
    hashes.append(simengine.run(scenario, set, out="thread").report.hash)

thread = threading.Thread(target=in_thread)
thread.start()
thread.join()

async def in_loop():
    awaited = await simengine.run_async(scenario, set, out="awaited")
    return [awaited.report.hash, simengine.run(scenario, set, out="blocking").report.hash]

hashes += asyncio.run(in_loop())
assert simengine.replay("thread").hash == hashes[0]
print(len(hashes), *sorted({*hashes}))
"""


def test_twice_then_in_a_thread_then_inside_a_loop(tmp_path: Path) -> None:
    """Each run makes and closes its own client; with every warning an error, nothing is heard of them, even at exit."""
    scenario = tmp_path / "small.yaml"
    scenario.write_text(runs.SMALL.replace("users: 8", "users: 4"), encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(runs.ROOT), "PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": "1"}
    with StandIn.in_thread(agentcf_reply) as server:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, scenario, server.url],
            cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for noise in ("Traceback", "never retrieved", "unclosed", "was destroyed", "Warning", "closed"):
        assert noise not in done.stderr, done.stderr
    assert done.stdout.split() == ["5", runs.report(tmp_path / "first").hash]


async def test_runs_side_by_side_in_one_loop(tmp_path: Path) -> None:
    """They share nothing: each has its own journal, random streams and memories."""
    reads = [scenarios.read(tmp_path / "small.yaml", [f"seed={seed}"], runs.SMALL) for seed in (5, 6, 5)]
    found = await asyncio.gather(
        *(scenarios.run(*read, out=tmp_path / str(number)) for number, read in enumerate(reads))
    )
    assert found[0].report.hash == found[2].report.hash != found[1].report.hash


def test_a_run_never_overwrites_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario, data = scenarios.read("small.yaml", ["stages=[{rank: {}}]"], runs.SMALL)
    found = [asyncio.run(scenarios.run(scenario, data)).path for _ in range(3)]
    assert found == [Path("replays/small"), Path("replays/small-2"), Path("replays/small-3")]

    taken = tmp_path / "taken"
    taken.mkdir()
    before = (found[0] / "events.jsonl").read_bytes()
    for out in (taken, found[0]):
        with pytest.raises(InputError, match="never overwrites") as caught:
            asyncio.run(scenarios.run(scenario, data, out=out))
        assert caught.value.where == {"file": str(out)}
    assert list(taken.iterdir()) == []
    assert (found[0] / "events.jsonl").read_bytes() == before


def test_a_scenario_that_cannot_run_makes_no_folder(tmp_path: Path) -> None:
    sets = [*runs.served("http://127.0.0.1:9"), "llm.api_key=${UNSET}"]
    scenario, data = scenarios.read("s.yaml", sets, runs.SMALL)
    with pytest.raises(InputError, match="UNSET is not set"):
        asyncio.run(scenarios.run(scenario, data, out=tmp_path / "run", environ={}))
    assert not (tmp_path / "run").exists()


def test_a_journal_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    """Warnings are errors here: a log that was left open would be heard of."""
    folder = runs.run(tmp_path / "run").path
    copy = runs.cut(folder, tmp_path / "copy", runs.ends(folder)[4])
    (copy / "calls.sqlite").write_text("no database at all", encoding="utf-8")
    with pytest.raises(LogError, match="journal"):
        runs.resume(copy)
    gc.collect()
