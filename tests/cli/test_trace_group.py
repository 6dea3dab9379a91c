"""``trace --group``: a group's members, how it is formed anew, and what it showed to whom."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import runs
from typer.testing import CliRunner

from simengine import scenario as scenarios
from simengine.cli.main import app


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = f"data.path={runs.ROOT / 'scenarios' / 'data' / 'weather'}"
    scenario, plain = scenarios.read_all(runs.ROOT / "scenarios" / "weather.yaml", [data])["agentcfpp"]
    out = tmp_path_factory.mktemp("weather") / "run"
    return asyncio.run(scenarios.run(scenario, plain, out=out)).path


def _trace(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_group_is_told_stage_by_stage(weather: Path) -> None:
    assert _trace(weather, "--group", "Outdoor Walking") == (
        "group:1.1-outdoor-walking  grouping.form/1, time 2, grouping:current/groups@1\n"
        "  tags: outdoor walking\n"
        "  members: alice, bob, carl\n"
        "  + alice, bob, carl\n"
        "  shown to user:alice at 2.5 (rank/alice/B/at 2.5/1): Summit Poles; Valley Map\n"
        "  shown to user:bob at 3 (interaction/bob/jacket/3): Summit Poles; Valley Map\n"
        "  shown to user:carl at 3 (interaction/carl/cape/3): Storm Jacket; Summit Poles\n"
        "  shown to user:alice at 3.5 (rank/alice/B/at 3.5/1): Cloud Cape; Storm Jacket\n"
        "  shown to user:carl at 4 (interaction/carl/stove/4): Cloud Cape; Storm Jacket\n\n"
    )
    assert _trace(weather, "--group", "group:1.1-outdoor-walking").startswith("group:1.1")


def test_a_group_that_is_formed_anew_says_who_came_and_went(tmp_path: Path) -> None:
    text = (
        "name: groups\ndata: {format: market, users: 8, items: 30, interests: 3, interactions: 8, seed: 4}\n"
        "method: {kind: agentcfpp, every: 12}\nstages: [{optimize: {}}]\n"
    )
    folder = runs.run(tmp_path / "run", text=text).path
    versions = [memory["value"] for event in runs.events(folder) for memory in event.get("memories", ())
                if memory["agent"] == "grouping:current" and memory["slot"] == "groups"]  # fmt: skip
    name = next(group["name"] for group in versions[0] if any(group["name"] == other["name"] for other in versions[1]))
    stages = [json.loads(line) for line in _trace(folder, "--group", name, "--json").splitlines() if line]
    members: set[str] = set()
    for stage in stages:
        assert not members & set(stage["joined"])
        assert members >= set(stage["left"])
        members = members - set(stage["left"]) | set(stage["joined"])
        assert members == set(stage["formed"]["members"])
    assert len(stages) >= 2


@pytest.mark.parametrize(("name", "told"), [("chess", "outdoor walking, summit poles")])
def test_a_group_that_is_not_there_is_told_with_those_that_are(weather: Path, name: str, told: str) -> None:
    result = CliRunner().invoke(app, ["trace", str(weather), "--group", name])
    assert result.exit_code != 0
    assert told in str(result.exception) + result.output


def test_a_run_without_groups_says_so(tmp_path: Path) -> None:
    folder = runs.run(tmp_path / "run").path
    result = CliRunner().invoke(app, ["trace", str(folder), "--group", "jazz"])
    assert "no groups were formed" in str(result.exception) + result.output
