"""The command trace tells the story of a run, whole or in part, as text and as JSON."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import runs
from typer.testing import CliRunner

from simengine.cli.main import app
from simengine.cli.stories import find_agent
from simengine.errors import CallFailed, InputError
from simengine.llm import CallStore, Request
from simengine.llm.backends.scripted import Scripted


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    runs.run(path)
    return path


@pytest.fixture(scope="module")
def first(folder: Path) -> dict[str, Any]:
    """The first interaction of the run."""
    return runs.events(folder, "interaction")[0]


def trace(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["trace", str(folder), *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_whole_story_has_a_block_for_each_event(folder: Path) -> None:
    blocks = trace(folder).strip().split("\n\n")
    events = runs.events(folder)
    assert [block.split("  ")[0] for block in blocks] == [event["event"] for event in events]
    for block, event in zip(blocks, events, strict=True):
        for version in event.get("memories", []):
            assert f"  {version['agent']}/{version['slot']}@{version['version']} " in block
        assert max(map(len, block.splitlines())) < 400


def test_one_event_is_told_in_full_with_what_depends_on_it(folder: Path, first: dict[str, Any]) -> None:
    told = trace(folder, "--event", first["event"])
    for version in first["memories"]:
        assert version["value"].replace("\n", " / ") in told
    for call in first["calls"]:
        assert f"call {call}: " in told
    said = json.loads(trace(folder, "--event", first["event"], "--json"))
    assert said["event"]["event"] == first["event"]
    assert said["dependants"], "the user's next step goes by what the first has written"
    assert f"later events that depend on it: {len(said['dependants'])}" in told


def test_an_events_prompts_and_answers_are_shown_on_request(folder: Path, first: dict[str, Any]) -> None:
    told = trace(folder, "--event", first["event"], "--calls")
    rows = {row.key: row for row in runs.calls(folder)}
    assert told.count("\n    answer:\n") == len(first["calls"]) >= 3
    for call, stamp in first["calls"].items():
        row = rows[stamp.partition(" ")[0]]
        shown = told.partition(f"  call {call}\n")[2].partition("  call ")[0]
        for text in (*(message.content for message in row.request.messages), row.outcome.text):
            assert all(f"      {line}".rstrip() + "\n" in shown for line in text.splitlines())
    said = json.loads(trace(folder, "--event", first["event"], "--calls", "--json"))
    assert [call["call"] for call in said["calls"]] == list(first["calls"])
    assert "calls" not in json.loads(trace(folder, "--event", first["event"], "--json"))


def test_a_call_that_failed_or_is_not_in_the_journal_says_so(tmp_path: Path) -> None:
    def refuse(request: Request) -> str:
        raise CallFailed("the server's content filter refused the request", reason="filtered")

    runs.run(tmp_path / "run", backend=Scripted(refuse))
    event = runs.events(tmp_path / "run", "interaction")[0]["event"]
    told = trace(tmp_path / "run", "--event", event, "--calls")
    assert "    no answer:\n      the server's content filter refused the request\n" in told
    (tmp_path / "run" / "calls.sqlite").unlink()
    CallStore(tmp_path / "run" / "calls.sqlite").close()
    told = trace(tmp_path / "run", "--event", event, "--calls")
    assert "    no answer:\n      the journal does not hold this call; the log says: failed: filtered\n" in told


def test_ids_of_messages_are_shown_on_request_and_can_be_asked_for(folder: Path, first: dict[str, Any]) -> None:
    spoken = [message for message in first["messages"] if message.get("body") is not None]
    for options in ([], ["--event", first["event"]]):
        told = trace(folder, *options, "--ids")
        for message in spoken:
            assert f"  {message['id']}  {message['sender']} -> {message['recipient']}, {message['kind']}: " in told
        assert spoken[0]["id"] not in trace(folder, *options)
    assert trace(folder, "--message", spoken[0]["id"]).startswith(spoken[0]["id"])


def test_an_agent_may_be_named_by_its_bare_id(folder: Path, first: dict[str, Any]) -> None:
    user = first["data"]["user"]
    assert trace(folder, "--agent", user) == trace(folder, "--agent", f"user:{user}")
    when = first["time"]
    assert trace(folder, "--why", f"{user}@{when}") == trace(folder, "--why", f"user:{user}@{when}")


def test_a_bare_id_of_two_agents_is_refused(folder: Path, tmp_path: Path) -> None:
    """Users and items of one number, as in many logs."""

    class Named:
        agents = ("user:1", "item:1", "item:2")

    assert find_agent(Named(), "2") == "item:2"  # type: ignore[arg-type]
    with pytest.raises(InputError, match="several agents have this id\n  name one in full: user:1, item:1"):
        find_agent(Named(), "1")  # type: ignore[arg-type]


def test_an_agents_story_says_where_each_phrase_came_from(folder: Path, first: dict[str, Any]) -> None:
    user, taken = f"user:{first['data']['user']}", f"item:{first['data']['item']}"
    told = trace(folder, "--agent", user)
    head, kept, learned = told.split("\n\n")[:3]
    assert head.splitlines()[0] == f"{user}/short@0  before the run"
    assert kept.startswith(f"{user}/long@1  {first['event']}, time {first['time']}")
    assert learned.startswith(f"{user}/short@1  {first['event']}, time {first['time']}, reflect.user/r1\n")
    assert "\n  + " in learned
    assert f"because {user}/short@0, " in learned
    assert f"from {taken}/memory@0: I like: " in learned
    assert "\x1b" not in told


def test_colours_are_for_terminals_only(folder: Path, first: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    told = trace(folder, "--agent", f"user:{first['data']['user']}")
    assert re.search(r"\x1b\[32m  \+ \w", told), "what was added is green"
    assert re.search(r"\x1b\[9;31m  - \w", told), "what was removed is struck out"


def test_every_phrase_of_every_memory_has_an_origin(folder: Path) -> None:
    events = runs.events(folder)
    for agent in sorted({version["agent"] for event in events for version in event.get("memories", [])}):
        blocks = [json.loads(line) for line in trace(folder, "--agent", agent, "--json").splitlines()]
        names = [block["memory"]["name"] for block in blocks]
        for block in blocks:
            for origin in block["new"]:
                assert origin["since"] == origin["path"][-1] == block["memory"]["name"]
                assert not origin.get("unknown"), "the data are here, so first memories are known"
        assert len(names) == len(set(names))


def test_a_messages_causes_are_a_tree_down_to_memories_with_their_texts(folder: Path, first: dict[str, Any]) -> None:
    choice = next(message for message in first["messages"] if message["kind"] == "choice")
    lines = trace(folder, "--message", choice["id"]).strip().splitlines()
    assert lines[0] == f"{choice['id']}  {choice['sender']} -> {choice['recipient']}, choice: {choice['body']}"
    assert lines[1] == f"├─ {choice['sender']}/short@0: I like albums and am curious about new ones."
    assert [line[:3] for line in lines[2:]] == ["├─ ", "│  ", "└─ ", "   "]
    tree = json.loads(trace(folder, "--message", choice["id"], "--json"))["causes"]
    assert [cause["record"]["name"] for cause in tree["causes"]] == choice["because"]


def test_a_memory_version_can_be_asked_for_too(folder: Path, first: dict[str, Any]) -> None:
    version = next(version for version in first["memories"] if version["slot"] == "short")
    told = trace(folder, "--message", f"{version['agent']}/short@1")
    assert told.startswith(f"{version['agent']}/short@1: I like: ")
    assert f"  from item:{first['data']['item']}/memory@0: I like: " in told


def test_without_the_data_first_memories_are_said_to_be_unknown(
    folder: Path, first: dict[str, Any], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    scenario = copy / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("users: 8", "users: 9"))
    done = CliRunner().invoke(app, ["trace", str(copy), "--agent", f"user:{first['data']['user']}"])
    assert "short@0  before the run" not in done.stdout
    assert f"from perhaps user:{first['data']['user']}/short@0 or item:" in done.stdout
    assert "note: what agents started with (version 0) is not in the log and is not known here: the data changed" in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--event", "interaction/u1/i1"], r"no event interaction/u1/i1\n  Nearest: interaction/u1/"),
        (["--agent", "user:u99"], r"no agent user:u99\n  Nearest: user:u\d"),
        (["--message", "user:u1/shrt@1"], r"no message or memory version user:u1/shrt@1\n  Nearest: user:u1/short@\d"),
        (["--agent", "u99"], r"no agent u99\n  Nearest: user:u\d"),
        (["--calls"], r"--calls shows those of one event\n  add --event ID"),
        (["--event", "a", "--agent", "b"], "say one of --event, --agent, --message, "),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(folder: Path, options: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        CliRunner().invoke(app, ["trace", str(folder), *options], catch_exceptions=False)
