"""How tests make runs: a small scenario, run in this process or by the program in another, and what its log says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from simengine import scenario as scenarios
from simengine.llm import CallStore, LanguageModel
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Request

ROOT = Path(__file__).resolve().parents[1]
QUICKSTART = ROOT / "scenarios" / "quickstart.yaml"
PROGRAM = "from simengine.cli.main import main; main()"
"""The program, for an interpreter's ``-c``."""
SMALL = """
name: small
seed: 5
data: {format: market, users: 8, items: 12, interests: 3, interactions: 6, seed: 4}
method: {kind: agentcf}
stages:
  - optimize: {}
  - rank: {}
"""
"""Eight users who share twelve items, so that most interactions wait for others: 24 of them, and 8 rankings."""


def run(out: Path, *sets: str, text: str = SMALL, backend: LanguageModel | None = None, **more: Any) -> Any:
    """Run a scenario's text, ``sets`` laid over it, into the folder ``out``; returns what the library returns."""
    scenario, data = scenarios.read(out.with_suffix(".yaml"), sets, text)
    return asyncio.run(scenarios.run(scenario, data, out=out, backend=backend, **more))


def resume(folder: Path, *sets: str, backend: LanguageModel | None = None) -> Any:
    return asyncio.run(scenarios.resume(folder, sets, backend=backend))


def replay(folder: Path, *sets: str) -> Any:
    return asyncio.run(scenarios.replay(folder, sets))


def no_model() -> Scripted:
    """A model that must not be asked."""

    def answer(request: Request) -> str:
        raise AssertionError(f"the model was asked again: {request.call}")

    return Scripted(answer)


def history(folder: Path) -> list[bytes]:
    """The semantic lines of a run: all but the first, which tells of its provenance."""
    return (folder / "events.jsonl").read_bytes().splitlines(keepends=True)[1:]


def events(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The events of a run, of one kind if it is named, each without its place in the chain of checksums."""
    found = [json.loads(line) for line in history(folder)]
    for event in found:
        del event["sum"]
    return [event for event in found if "event" in event and kind in (None, event["kind"])]


def report(folder: Path) -> scenarios.Report:
    """What a run's report says."""
    return msgspec.json.decode((folder / "report.json").read_bytes(), type=scenarios.Report)


def calls(folder: Path) -> list[Any]:
    """The rows of a run's journal."""
    with CallStore(folder / "calls.sqlite", read_only=True) as store:
        return list(store)


def cut(folder: Path, copy: Path, size: int, tail: bytes = b"") -> Path:
    """A copy of an unfinished or finished run as a kill might have left it: so many bytes of its log, then ``tail``."""
    shutil.copytree(folder, copy)
    (copy / "report.json").unlink(missing_ok=True)
    log = copy / "events.jsonl"
    log.write_bytes(log.read_bytes()[:size] + tail)
    return copy


def ends(folder: Path) -> list[int]:
    """Where each line of a run's log ends, in bytes, from the header on."""
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    return [sum(map(len, lines[: at + 1])) for at in range(1, len(lines))]


def start(*arguments: str | Path, cwd: Path, **environ: str) -> subprocess.Popen[str]:
    """Start the program in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Look every millisecond until it is true."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.001)


def served(url: str, concurrency: int = 8) -> list[str]:
    """What lets a scenario ask the server at ``url``, as entries for ``--set``."""
    entries = ["backend=openai", f"base_url={url}", "model=m", f"limits.concurrency={concurrency}", "retry.budget=5"]
    return [f"llm.{entry}" for entry in entries]
