"""A talk traced: who said what, what the tools did to the candidates, the critic's verdicts, and how it ended."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simengine.cli.main import app
from simengine.runlog import Reader
from simengine.scenario import read, run

TALKS = """
name: talks
seed: 5
data: {format: market, users: 5, items: 60, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{converse: {turns: 4}}]
"""


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("talks") / "run"
    asyncio.run(run(*read("talks", (), TALKS), out=folder))
    return folder


def _told(folder: Path, name: str) -> str:
    return CliRunner().invoke(app, ["trace", str(folder), "--talk", name]).output


@pytest.mark.parametrize("name", ["u2", "user:u2", "venue:converse/u2/1"])
def test_a_talk_is_told_turn_by_turn(talks: Path, name: str) -> None:
    told = _told(talks, name)
    lines = [line for line in Reader(talks / "events.jsonl") if line.data["user"] == "u2"]
    end = next(message.body for message in lines[-1].messages if message.kind == "end")
    blocks = told.strip().split("\n\n")
    assert [block.splitlines()[0].split("  ")[1].partition(",")[0] for block in blocks] == [it.event for it in lines]
    assert f"  end: {end['how']}" in blocks[-1]
    for block, line in zip(blocks, lines, strict=True):
        said = next(message.body["text"] for message in line.messages if message.kind == "say")
        work = [it for message in line.messages if message.kind == "plan" for it in message.body["work"]]
        assert f"  user:u2: {said}" in block
        sizes = re.findall(r"  (\d+) -> (\d+)  ok$", block, re.MULTILINE)
        assert sizes == [(str(it["before"]), str(it["after"])) for it in work]
        assert block.count("the critic ") == sum(message.kind == "verdict" for message in line.messages)


def test_an_agent_without_talks_is_told_where_there_are_some(talks: Path) -> None:
    result = CliRunner().invoke(app, ["trace", str(talks), "--talk", "item:i1"])
    assert isinstance(result.exception, Exception)
    assert "talks take place at venue:converse/" in str(getattr(result.exception, "remedy", ""))


def test_the_memory_of_a_conversation_is_told_version_by_version(talks: Path) -> None:
    """A venue starts with nothing, so that the first version of a slot took the place of none."""
    result = CliRunner().invoke(app, ["trace", str(talks), "--agent", "venue:converse/u2/1"])
    assert result.exit_code == 0, result.exception
    lines = [line for line in Reader(talks / "events.jsonl") if line.data["user"] == "u2"]
    written = [it.ref for line in lines for it in line.memories if it.agent == "venue:converse/u2/1"]
    told = re.findall(r"^(venue:\S+@\d+)  ", result.output, re.MULTILINE)
    assert sorted(told) == sorted(written)
    assert {name.rpartition("/")[2] for name in told} >= {"bus@1", "tracker@1", "profile@1", "dialogue@1"}
