"""The command decay as a user meets it: what it prints at 80 columns, what it writes, and how it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import runs
from console import Command

from simengine.scenario.spread import Spread

SCENARIO = runs.SMALL.replace("  - rank: {}\n", "  - probe: {at: [start, end]}\n") + (
    "plant:\n  statements:\n"
    "    - {preference: I like the slow harpsichord lullabies of a forgotten village., seeds: {users: [u3]}}\n"
    "    - {preference: I like theremin duets., seeds: {users: [u5]}}\n"
)
PAIR = "variants:\n  treatment: {}\n  control: {fork: treatment, plant: {enabled: false}}\n"
LIMITS = (
    "variants:\n"
    "  keep: {}\n"
    "  keep-control: {fork: keep, plant: {enabled: false}}\n"
    "  short: {method: {user_words: 20}}\n"
    "  short-control: {fork: short, method: {user_words: 20}, plant: {enabled: false}}\n"
)


@pytest.fixture(autouse=True)
def narrow(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console has 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


def made(command: Command, text: str, out: str) -> Path:
    """The folder of what was run of a scenario."""
    Path("scenario.yaml").write_text(SCENARIO + text, encoding="utf-8")
    assert command("run", "scenario.yaml", "--out", out)[0] == 0
    return Path(out)


def test_a_run_points_to_the_command_where_something_was_planted(command: Command) -> None:
    Path("scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    _, out, _ = command("run", "scenario.yaml", "--out", "alone")
    assert "To see how far the preferences spread: simengine decay alone\n" in out and "No results." not in out
    _, out, _ = command("run", "scenario.yaml", "--set", "plant.enabled=false", "--out", "control")
    assert "No results.\n" in out and "simengine decay" not in out
    Path("scenario.yaml").write_text(SCENARIO + PAIR, encoding="utf-8")
    _, out, _ = command("run", "scenario.yaml", "--out", "pair")
    assert "simengine decay pair\n" in out and "No results." not in out


def test_runs_beside_one_another_tell_what_was_not_planted(command: Command) -> None:
    grouped = (
        "method: {kind: agentcfpp, every: 6}\nvariants:\n  one: {}\n"
        "  other: {plant: {statements: [{preference: I like kazoos., seeds: {users: [u1]}},"
        " {preference: I like bagpipes., seeds: {in_group: nowhere}, at: 4}]}}\n"
    )
    Path("scenario.yaml").write_text(SCENARIO.replace("method: {kind: agentcf}\n", "") + grouped, encoding="utf-8")
    status, out, _ = command("run", "scenario.yaml", "--out", "runs")
    assert status == 0 and "plant.draw: no such group" in out
    status, out, _ = command("decay", "runs")
    assert status == 0
    assert out.count("was planted in nobody") == 1 and '"I like bagpipes."' in out


def test_a_treatment_is_told_beside_its_control(command: Command) -> None:
    folder = made(command, PAIR, "pair")
    status, out, _ = command("decay", folder)
    assert status == 0
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
    for said in (
        "Passed on, per contact",
        "Holders by hop from the seeds",
        "net of control [95%]",
        "share by hop = r^hop: r ",
        "mixes multiple exposures",
        "Agreement of the ways to tell",
        "probes answered with yes outside of the possible reach: 0\n",
        "agents that differ from the control outside of the possible reach: 0\n",
        "written: pair/decay.json",
    ):
        assert said in out
    assert "…" not in out  # nothing is left out for want of room
    spread = msgspec.json.decode((folder / "decay.json").read_bytes(), type=Spread)
    assert spread.decay is not None
    everybody = spread.decay.transmission[0]
    assert re.search(rf"^all +{everybody.successes}/{everybody.trials} ", out, re.MULTILINE)
    for name in ("decay-by-hop.png", "decay-over-time.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    first = (folder / "decay.json").read_bytes(), (folder / "decay-by-hop.png").read_bytes()
    assert command("decay", folder)[1] == out
    assert ((folder / "decay.json").read_bytes(), (folder / "decay-by-hop.png").read_bytes()) == first


def test_without_a_control_that_is_said_and_its_columns_are_left_out(command: Command) -> None:
    folder = made(command, PAIR, "pair")
    status, out, _ = command("decay", folder / "treatment", "--out", "elsewhere/deep")
    assert status == 0
    assert "There is no control of treatment" in out
    assert "net of control" not in out
    assert sorted(path.name for path in Path("elsewhere/deep").iterdir()) == [
        "decay-by-hop.png", "decay-over-time.png", "decay.json",
    ]  # fmt: skip
    assert not (folder / "treatment" / "decay.json").exists()
    named = command("decay", folder / "treatment", "--control", folder / "control")[1]
    assert "net of control" in named


def test_variants_stand_beside_one_another_each_net_of_its_control(command: Command) -> None:
    folder = made(command, LIMITS, "limits")
    status, out, _ = command("decay", folder)
    assert status == 0
    table = out.partition("note:")[0]
    assert "Runs beside one another" in table
    assert [line.split()[0] for line in table.splitlines() if line and line[0] in "ks"] == ["keep", "short"]
    assert "Holders by hop" not in out  # runs of different kinds have no share in common
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
    spread = msgspec.json.decode((folder / "decay.json").read_bytes(), type=Spread)
    assert spread.decay is None
    assert [(run.run, run.control) for run in spread.runs] == [
        ("keep", "limits/keep-control"),
        ("short", "limits/short-control"),
    ]


def test_runs_with_other_seeds_are_told_together_too(command: Command) -> None:
    one = made(command, "", "one")
    assert command("run", "scenario.yaml", "--set", "seed=6", "--out", "two")[0] == 0
    out = command("decay", one, "two")[1]
    assert "Runs beside one another" in out
    assert "Holders by hop" in out
    assert "Intervals resample the 4 plantings" in out
    assert Path("one/decay.json").is_file() and not Path("two/decay.json").exists()


def test_a_run_without_plantings_is_refused(command: Command) -> None:
    folder = made(command, PAIR, "pair")
    status, out, err = command("decay", folder / "control")
    assert (status, out) == (2, "")
    assert "no preference was planted in these runs" in err and "plant: {statements:" in err


def test_what_is_no_run_is_refused(command: Command) -> None:
    Path("empty").mkdir()
    for folder in ("empty", "nowhere"):
        status, out, err = command("decay", folder)
        assert (status, out) == (2, "")
        assert f"{folder}: this is not the folder of a run" in err
