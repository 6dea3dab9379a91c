"""The popularity example (figure 1b of AgentCF++): a user who does nothing changes her answer after what others did."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import runs
from typer.testing import CliRunner

from simengine import scenario as scenarios
from simengine.cli.main import app
from simengine.errors import InputError

T1, T2, T3 = "at 2.5", "at 3.5", "at 5.5"
DATA = runs.ROOT / "scenarios" / "data" / "weather"
RAIN, CAMP = ("jacket", "cape"), ("stove", "mat")
"""What her group took at t2 and at t3."""


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both variants of the packaged scenario."""
    return _run(tmp_path_factory.mktemp("weather"), DATA)


def _run(folder: Path, data: Path, *sets: str) -> dict[str, Path]:
    found = {}
    read = scenarios.read_all(runs.ROOT / "scenarios" / "weather.yaml", [f"data.path={data}", *sets])
    for name, (scenario, plain) in read.items():
        found[name] = asyncio.run(scenarios.run(scenario, plain, out=folder / name)).path
    return found


def _without(folder: Path, *items: str) -> Path:
    """The same data, but that nobody took these items; what the others took stays as it was."""
    data = shutil.copytree(DATA, folder / "weather")
    log = data / "weather.train.inter"
    heading, *lines = log.read_text().splitlines()
    kept = []
    for user, history, taken in (line.split("\t") for line in lines):
        if taken not in items:
            before = " ".join(item for item in history.split(" ") if item not in items)
            kept.append(f"{user}\t{before}\t{taken}")
    log.write_text("\n".join([heading, *kept, ""]))
    return data


def _rankings(folder: Path) -> dict[str, dict[str, Any]]:
    return {event["data"]["group"]: event for event in runs.events(folder, "ranking")}


def _first(folder: Path) -> dict[str, str]:
    """What Alice would take at each time."""
    return {group: event["messages"][-1]["body"]["order"][0] for group, event in _rankings(folder).items()}


def test_alice_follows_the_weather_in_agentcfpp_and_not_in_agentcf(weather: dict[str, Path]) -> None:
    """The staff is what she likes herself, at each time: what AgentCF says, and AgentCF++ before anything happens."""
    assert _first(weather["agentcfpp"]) == {T1: "staff", T2: "umbrella", T3: "tent"}
    assert _first(weather["agentcf"]) == {T1: "staff", T2: "staff", T3: "staff"}


@pytest.mark.parametrize(
    ("missing", "answers"),
    [
        (CAMP, ["staff", "umbrella", "umbrella"]),
        (RAIN, ["staff", "staff", "tent"]),
        ((*RAIN, *CAMP), ["staff", "staff", "staff"]),
    ],
)
def test_without_what_her_group_took_she_does_not_change_her_answer(
    missing: tuple[str, ...], answers: list[str], tmp_path: Path
) -> None:
    found = _run(tmp_path, _without(tmp_path, *missing))
    assert _first(found["agentcfpp"]) == dict(zip((T1, T2, T3), answers, strict=True))
    assert _first(found["agentcf"]) == dict.fromkeys((T1, T2, T3), "staff")


def test_it_is_no_luck_of_one_seed(tmp_path: Path) -> None:
    for seed in (2, 3, 4):
        found = _run(tmp_path / str(seed), DATA, f"seed={seed}")
        assert _first(found["agentcfpp"]) == {T1: "staff", T2: "umbrella", T3: "tent"}
        assert _first(found["agentcf"]) == dict.fromkeys((T1, T2, T3), "staff")


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
        T3: ["mat", "stove"],
    }
    assert all(entry["user"] != "alice" for found in views.values() for entry in found[0]["body"])


def test_the_trace_tells_who_took_what_then_what_she_was_shown_then_what_she_would_take(
    weather: dict[str, Path],
) -> None:
    result = CliRunner().invoke(app, ["trace", str(weather["agentcfpp"])])
    assert result.exit_code == 0, result.output
    told = [
        "interaction: user:bob - item:jacket",
        "interaction: user:carl - item:cape",
        "rank/alice/B/at 3.5/1",
        'group:1.1-outdoor-walking -> user:alice, view: [{"item":"cape"',
        'user:alice -> venue:ranking, ranking: {"order":["umbrella"',
        "interaction: user:carl - item:stove",
        "membership: user:alice - group:2.1-summit-poles",
        "interaction: user:carl - item:mat",
        "rank/alice/B/at 5.5/1",
        'group:2.1-summit-poles -> user:alice, view: [{"item":"mat"',
        'user:alice -> venue:ranking, ranking: {"order":["tent"',
    ]
    places = [result.stdout.find(text) for text in told]
    assert -1 not in places
    assert places == sorted(places)


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
