"""An API key in plain text: it is used, and never reaches the run's folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import runs
from standin import StandIn, agentcf_reply

from simengine import scenario as scenarios
from simengine.errors import InputError

KEY = "sk-plain-123"


def test_a_key_in_plain_text_is_used_and_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIMENGINE_API_KEY", raising=False)
    folder = tmp_path / "run"
    with StandIn.in_thread(agentcf_reply) as server:
        runs.run(folder, *runs.served(server.url), f"llm.api_key={KEY}")
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    for file in folder.iterdir():
        assert KEY.encode() not in file.read_bytes(), file.name
    assert "${SIMENGINE_API_KEY}" in (folder / "scenario.yaml").read_text(encoding="utf-8")
    assert runs.replay(folder).finished


def test_resuming_such_a_run_asks_for_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIMENGINE_API_KEY", raising=False)
    folder = tmp_path / "run"
    with StandIn.in_thread(agentcf_reply) as server:
        runs.run(folder, *runs.served(server.url), f"llm.api_key={KEY}")
    cut = runs.cut(folder, tmp_path / "cut", runs.ends(folder)[5])
    with pytest.raises(InputError, match="SIMENGINE_API_KEY"):
        runs.resume(cut)


def test_a_key_in_plain_text_is_not_written_beside_variants(tmp_path: Path) -> None:
    text = f"{runs.SMALL}llm: {{api_key: {KEY}}}\nvariants: {{one: {{}}, two: {{seed: 6}}}}\n"
    common = tmp_path / "common"
    asyncio.run(scenarios.run_many(scenarios.read_all("small.yaml", (), text), out=common))
    files = [file for file in common.rglob("*") if file.is_file()]
    assert common / "variants.yaml" in files
    assert not [file.name for file in files if KEY.encode() in file.read_bytes()]
