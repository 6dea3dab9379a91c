"""A budget that is spent stops a run, and a greater one lets it go on: what it costs is no part of its history."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios
from simengine.errors import RunStopped
from simengine.llm import CallStore

SPENT = "llm.budget.calls=5"
GREATER = "llm.budget.calls=1000"


def test_a_run_goes_on_with_a_greater_budget_and_ends_as_without_one(tmp_path: Path) -> None:
    free = runs.run(tmp_path / "free")
    folder = tmp_path / "run"
    with pytest.raises(RunStopped, match="budget of 5 calls"):
        runs.run(folder, SPENT)
    with CallStore(folder / "calls.sqlite", read_only=True) as store:
        assert len(store) == 5
    assert runs.resume(folder, GREATER).report.hash == free.report.hash


def test_variants_go_on_with_a_greater_budget(tmp_path: Path) -> None:
    text = f"{runs.SMALL}variants: {{one: {{}}, two: {{seed: 6}}}}\n"
    reads = scenarios.read_all("small.yaml", [SPENT], text)
    common = tmp_path / "common"
    with pytest.raises(RunStopped) as stopped:
        asyncio.run(scenarios.run_many(reads, out=common))
    assert f"simengine run --resume {common}\n" in f"{stopped.value}\n"
    assert not (common / "two").exists()
    _, report = asyncio.run(scenarios.resume_many(common, [GREATER]))
    assert [report.variants[name].hash for name in ("one", "two")] == [
        runs.run(tmp_path / "one").report.hash,
        runs.run(tmp_path / "two", "seed=6").report.hash,
    ]
