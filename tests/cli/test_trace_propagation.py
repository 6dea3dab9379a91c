"""The command trace follows a planted preference, tells an item's story, and says why an agent knew what it did."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import networkx
import pytest
import runs
from typer.testing import CliRunner

import simengine
from simengine.cli.main import app
from simengine.errors import InputError
from simengine.measure.chain import Chain

TEXT = "I like harpsichord lullabies."
SCENARIO = f"""
name: planted
seed: 7
data: {{format: market, users: 60, items: 80, interests: 6, interactions: 10, seed: 3}}
method: {{kind: agentcf, rounds: 2, item_words: 60}}
plant: {{statements: [{{preference: {TEXT}, seeds: {{random: 1}}}}]}}
stages: [{{optimize: {{}}}}, {{rank: {{}}}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "planted"
    runs.run(path, text=SCENARIO)
    return path


@pytest.fixture(scope="module")
def seed(folder: Path) -> str:
    (planting,) = runs.events(folder, "plant")
    return f"user:{planting['data']['user']}"


@pytest.fixture(scope="module")
def spread(folder: Path) -> list[Any]:
    """All that ``--preference`` says as data: the tree first, then a block for each holder."""
    return [json.loads(line) for line in trace(folder, "--preference", TEXT, "--json").splitlines()]


@pytest.fixture(scope="module")
def far(spread: list[Any]) -> str:
    """A user to whom it came over three memories or more."""
    return next(
        carrier["agent"]
        for carrier in spread[0]["tree"]
        if carrier["generation"] >= 3 and carrier["agent"].startswith("user:")
    )


def trace(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["trace", str(folder), *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def memory_of(folder: Path, name: str) -> str:
    """The text of a memory version, as the log has it."""
    return next(
        version["value"]
        for event in runs.events(folder)
        for version in event.get("memories", [])
        if f"{version['agent']}/{version['slot']}@{version['version']}" == name
    )


# -- a preference -----------------------------------------------------------------------------------------------------


def test_the_tree_of_carriers_and_a_chain_for_each_holder(folder: Path, seed: str, spread: list[Any]) -> None:
    tree, *holders = spread
    assert tree["seeds"] == [seed]
    assert [carrier["agent"] for carrier in tree["tree"] if carrier["carrier"] is None] == [seed]
    begun = [holder["carrier"]["position"] for holder in holders]
    assert begun == sorted(begun)
    assert {holder["chain"]["agent"] for holder in holders} == {carrier["agent"] for carrier in tree["tree"]}
    told = trace(folder, "--preference", TEXT)
    head, *blocks = told.strip().split("\n\n")
    assert head.splitlines()[0] == f'agents that came to hold "{TEXT}": {len(holders)}, by a planting: 1'
    assert head.splitlines()[1] == f"{seed}  planted, time 2"
    assert re.match(r"[├└]─ item:i\d+  time \d", head.splitlines()[2])
    assert len(head.splitlines()) == 1 + len(holders)
    assert [block.split("  ")[0] for block in blocks] == [holder["chain"]["agent"] for holder in holders]


def test_every_chain_leads_from_the_planting_along_causes_to_a_memory_that_holds_it(
    seed: str, spread: list[Any]
) -> None:
    for holder in spread[1:]:
        chain = msgspec.convert(holder["chain"], Chain)
        records = [link.record for link in chain.links]
        assert chain.planted
        assert records[0].name == f"{seed}/short@1"
        assert records[0].event is not None and records[0].event.startswith("plant/")
        assert records[-1].agent == holder["carrier"]["agent"] == chain.agent
        assert chain.hops == holder["carrier"]["generation"]
        for before, link in zip(records, chain.links[1:], strict=False):
            assert before.name in link.record.because
            assert bool(link.phrases) or not link.record.slot
            for phrase in link.phrases if link.record.slot else ():
                assert phrase.rpartition(": ")[2] in link.record.text


def test_the_path_to_a_user_three_hops_away_is_told(folder: Path, seed: str, far: str) -> None:
    lines = trace(folder, "--preference", TEXT, "--agent", far).strip().splitlines()
    assert re.fullmatch(rf'{far} came to hold "{TEXT}" from {seed} \(planted at time 2\), hops: [3-9]', lines[0])
    assert lines[1].startswith(f"{seed}/short@1  plant/0/")
    assert lines[2] == "    I like harpsichord lullabies"
    memories = [line.split("  ")[0] for line in lines if re.match(r"\w+:\w+/\w+@\d+  ", line)]
    for name in memories:
        assert "harpsichord lullabies" in memory_of(folder, name)
    assert memories[-1].startswith(f"{far}/short@")
    # Users are shown what items remember before they choose and learn.
    shown = next(at for at, line in enumerate(lines) if f" -> {far}, description," in line)
    assert lines[shown + 1].startswith("    ") and "harpsichord lullabies" in lines[shown + 1]
    assert any(f"  {far} -> item:" in line and ", choice," in line for line in lines[shown:])


def test_a_chain_in_python_is_that_of_the_command(folder: Path, far: str, seed: str) -> None:
    chain = simengine.Run(folder).chain(TEXT, far)
    assert str(chain) == trace(folder, "--preference", TEXT, "--agent", far).strip()
    assert json.loads(trace(folder, "--preference", TEXT, "--agent", far, "--json")) == json.loads(
        msgspec.json.encode(chain)
    )
    graph = chain.to_networkx()
    assert networkx.has_path(graph, f"{seed}/short@1", chain.links[-1].record.name)


def test_what_was_not_planted_has_its_roots_in_first_memories(folder: Path) -> None:
    first = next(version for event in runs.events(folder) for version in event.get("memories", [])
                 if version["slot"] == "memory" and "suits" not in version["value"])  # fmt: skip
    sound = first["value"].rpartition("; ")[2].strip(" .")
    told = trace(folder, "--preference", f"I like {sound}.").splitlines()
    assert told[0].endswith(", by a planting: 0")
    assert f"{first['agent']}  from nobody's memory, before the run" in told


# -- an item ----------------------------------------------------------------------------------------------------------


def test_an_item_is_told_by_id_and_by_title(folder: Path) -> None:
    event = runs.events(folder, "interaction")[0]
    ident = event["data"]["item"]
    told = trace(folder, "--item", ident)
    title = re.search(r'"(.+?)" is an', told)
    assert title is not None
    assert trace(folder, "--item", title[1].lower()) == trace(folder, "--item", f"item:{ident}") == told


def test_an_items_story_has_those_who_read_and_wrote_each_version(folder: Path) -> None:
    """Held against the log, read here in the simplest way."""
    events = runs.events(folder)
    ident = events[2]["data"]["item"]
    blocks = [json.loads(line) for line in trace(folder, "--item", ident, "--json").splitlines()]
    found = {
        block["memory"]["name"]: {(by["event"], by["how"]) for by in block["readings"] if by["by"].startswith("user:")}
        for block in blocks
    }
    expected: dict[str, set[tuple[str, str]]] = {name: set() for name in found}
    for event in events:
        edge = next((edge["kind"] for edge in event.get("edges", []) if edge["node"] == f"item:{ident}"), event["kind"])
        for message in event.get("messages", []):
            for cause in message.get("because", []):
                if cause.startswith(f"item:{ident}/"):
                    expected[cause].add((event["event"], edge))
    assert found == expected
    assert {how for all_of_them in found.values() for _, how in all_of_them} == {"interaction", "exposure", "ranking"}
    for block in blocks[1:]:
        taker = f"user:{next(e for e in events if e['event'] == block['memory']['event'])['data']['user']}"
        assert taker in block["writers"]
    told = trace(folder, "--item", ident)
    assert f"  written from {', '.join(blocks[1]['writers'])}\n" in told
    first = blocks[0]["readings"][0]
    assert f"  read by {first['by']}, {first['how']}: {first['event']}, time {first['time']}\n" in told


def test_what_an_item_began_with_was_read_even_where_it_is_not_known(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    scenario = copy / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("users: 60", "users: 61"))
    ident = runs.events(folder, "interaction")[0]["data"]["item"]
    head, *rest = trace(copy, "--item", ident).splitlines()
    assert head == f"item:{ident}/memory@0  before the run"
    assert rest[0] == "  (not known)"
    assert rest[1].startswith("  read by user:")


# -- why --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", ["3", "4.5", "8"])
def test_why_tells_the_memory_of_that_time_and_the_last_choice(folder: Path, far: str, time: str) -> None:
    mine = [event for event in runs.events(folder, "interaction") if f"user:{event['data']['user']}" == far]
    last = [event for event in mine if event["time"] <= float(time)][-1]
    blocks = [json.loads(line) for line in trace(folder, "--why", f"{far}@{time}", "--json").splitlines()]
    memories = {block["memory"]["slot"]: block for block in blocks[:-1]}
    short = [version for version in last["memories"] if (version["agent"], version["slot"]) == (far, "short")][-1]
    assert memories["short"]["memory"]["value"] == short["value"]
    assert memories["short"]["origins"]
    choice = [message for message in last["messages"] if message["kind"] == "choice"][-1]
    assert blocks[-1]["choice"]["record"]["name"] == choice["id"]
    told = trace(folder, "--why", f"{far}@{time}")
    assert short["value"].replace("\n", " / ") in told
    assert f"the last choice: {last['event']}, time {last['time']}\n" in told
    assert choice["body"] in told


def test_why_an_item_has_no_choice(folder: Path) -> None:
    ident = runs.events(folder, "interaction")[0]["data"]["item"]
    told = trace(folder, "--why", f"item:{ident}@2")
    assert told.startswith(f"item:{ident}/memory@")
    assert "the last choice" not in told


# -- what is not there ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--preference", TEXT, "--agent", "user:u999"], r"no agent user:u999\n  Nearest: user:u\d+"),
        (["--preference", "the"], "no word of this preference says what is liked"),
        (["--item", "i9999"], r"no such item .*\n  Nearest: .+ \(i\d+\), .+ \(i\d+\)"),
        (["--why", "user:u999@3"], r"no agent user:u999\n  Nearest: user:u\d+"),
        (["--why", "user:u1@1"], r"nothing at this time\n  say one from 2 to \d+"),
        (["--why", "user:u1@99"], r"nothing at this time\n  say one from 2 to \d+"),
        (["--why", "user:u1"], r"no agent and time\n  write user:12@5"),
        (["--why", "user:u1@noon"], r"no agent and time\n  write user:12@5"),
        (["--item", "i1", "--agent", "user:u1"], "only --preference and --agent go together"),
        (["--item", "i1", "--preference", TEXT], "only --preference and --agent go together"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(folder: Path, options: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        CliRunner().invoke(app, ["trace", str(folder), *options], catch_exceptions=False)


def test_who_never_held_it_is_told_with_those_who_did(folder: Path, spread: list[Any]) -> None:
    holders = {holder["chain"]["agent"] for holder in spread[1:]}
    without = next(f"user:u{number}" for number in range(1, 60) if f"user:u{number}" not in holders)
    problem = rf"agent {without}, .* never held .*\n  {len(holders)} agents did: user:"
    with pytest.raises(InputError, match=problem):
        trace(folder, "--preference", TEXT, "--agent", without)
    with pytest.raises(InputError, match=problem):
        simengine.Run(folder).chain(TEXT, without)


def test_a_misspelt_title_is_told_with_the_nearest(folder: Path) -> None:
    ident = runs.events(folder, "interaction")[0]["data"]["item"]
    title = re.search(r'"(.+?)" is an', trace(folder, "--item", ident))
    assert title is not None
    with pytest.raises(InputError, match=rf"Nearest: {title[1]} \({ident}\)"):
        trace(folder, "--item", title[1][:-1] + "q")
