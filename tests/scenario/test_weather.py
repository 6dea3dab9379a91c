"""The popularity example (figure 1b of AgentCF++): a user who does nothing changes her answer after what others did."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.errors import InputError

T1, T2, T3 = "at 2.5", "at 3.5", "at 4.5"


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both variants of the packaged scenario."""
    folder = tmp_path_factory.mktemp("weather")
    data = f"data.path={runs.ROOT / 'scenarios' / 'data' / 'weather'}"
    found = {}
    for name, (scenario, plain) in scenarios.read_all(runs.ROOT / "scenarios" / "weather.yaml", [data]).items():
        found[name] = asyncio.run(scenarios.run(scenario, plain, out=folder / name)).path
    return found


def _rankings(folder: Path) -> dict[str, dict[str, Any]]:
    return {event["data"]["group"]: event for event in runs.events(folder, "ranking")}


def _first(folder: Path) -> dict[str, str]:
    """What Alice would take at each time."""
    return {group: event["messages"][-1]["body"]["order"][0] for group, event in _rankings(folder).items()}


def test_alice_follows_the_weather_in_agentcfpp_and_not_in_agentcf(weather: dict[str, Path]) -> None:
    assert _first(weather["agentcfpp"]) == {T1: "tent", T2: "umbrella", T3: "tent"}
    assert _first(weather["agentcf"]) == {T1: "tent", T2: "tent", T3: "tent"}


def test_what_moves_her_is_the_view_of_her_group_alone(weather: dict[str, Path]) -> None:
    """Her memories, and the candidates', are the same at all three times; what her group took is not."""
    rankings = _rankings(weather["agentcfpp"])
    causes = {group: event["messages"][-1]["because"] for group, event in rankings.items()}
    remembered = {group: sorted(name for name in names if "@" in name) for group, names in causes.items()}
    assert remembered[T1] == remembered[T2] == remembered[T3] == ["user:alice/fused:all@1", "user:alice/separate:all@1"]
    views = {group: [message for message in event["messages"] if message["kind"] == "view"]
             for group, event in rankings.items()}  # fmt: skip
    assert all(len(found) == 1 and found[0]["id"] in causes[group] for group, found in views.items())
    assert {group: [entry["item"] for entry in found[0]["body"]] for group, found in views.items()} == {
        T1: ["poles", "map"],
        T2: ["cape", "jacket"],
        T3: ["stove", "cape"],
    }
    assert all(entry["user"] != "alice" for found in views.values() for entry in found[0]["body"])


def test_she_does_nothing_after_the_first_time(weather: dict[str, Path]) -> None:
    for folder in weather.values():
        hers = [event["time"] for event in runs.events(folder, "interaction") if event["data"]["user"] == "alice"]
        assert hers == [2]


def test_no_time_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="when"):
        runs.run(tmp_path / "run", "stages=[{optimize: {}}, {rank: {when: []}}]")


def test_rankings_at_times_have_no_one_comparison(weather: dict[str, Path]) -> None:
    report = json.loads((weather["agentcfpp"] / "report.json").read_bytes())
    assert {result["group"] for result in report["results"]} == {T1, T2, T3}
    assert report["compared"] == {} and report["audit"] == {}
