"""Wrong run folders, each with the message that a user sees when it is replayed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import runs

from simengine.errors import LogError, SimengineError

Lines = list[bytes]
MIDDLE = """this line does not fit the checksum of the one before
  the log was damaged or changed in the middle: restore it from a copy; or repair it, which cuts it before this line, and resume, as the journal still holds the answers"""
NO_HEADER = """HERE/events.jsonl: the log has no header
  no event was written; start anew"""
CHANGED = """restore what it was made with, or start a new run; what may change is name, data.path, llm.api_key, llm.base_url, llm.batch, llm.budget, llm.latency, llm.limits, llm.merge_roles, llm.offline, llm.prices, llm.retry, llm.timeout, llm.trust_env, llm.roles.*.mode, engine.window, engine.on_error, and k and rankers of rank and bias stages"""

LOGS: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "two lines changed places": (lambda n: [*n[:5], n[6], n[5], *n[7:]], f"HERE/events.jsonl:6: {MIDDLE}"),
    "a memory was edited": (
        lambda n: [*n[:4], n[4].replace(b"I like", b"I loathe", 1), *n[5:]],
        f"HERE/events.jsonl:5: {MIDDLE}",
    ),
    "a line is missing": (lambda n: [*n[:4], *n[5:]], f"HERE/events.jsonl:5: {MIDDLE}"),
    "a line stands twice": (lambda n: [*n[:5], *n[4:]], f"HERE/events.jsonl:6: {MIDDLE}"),
    "only the first line": (lambda n: n[:1], NO_HEADER),
    "an empty file": (lambda n: [], NO_HEADER),
    "a table": (lambda n: [b"user,item\n", b"1,2\n"], NO_HEADER),
    "a later schema": (
        lambda n: [n[0], n[1].replace(b'"schema":1', b'"schema":9'), *n[2:]],
        """HERE/events.jsonl:2: this log has schema 9, and this version reads 1
  read it with the version that wrote it (its first line names it)""",
    ),
}

NOT_A_RUN = """HERE: this is not the folder of a run: it has no scenario.yaml and events.jsonl
  name a folder that `simengine run` made, such as replays/quickstart"""

FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no log": (lambda f: (f / "events.jsonl").unlink(), NOT_A_RUN),
    "no scenario": (lambda f: (f / "scenario.yaml").unlink(), NOT_A_RUN),
    "no journal": (
        lambda f: (f / "calls.sqlite").unlink(),
        """HERE/calls.sqlite: there is no journal of calls here
  name the folder of a run""",
    ),
    "a foreign journal": (
        lambda f: (f / "calls.sqlite").write_bytes(b"not a database at all" * 100),
        """HERE/calls.sqlite: the journal of calls cannot be read: file is not a database
  restore the file from a copy; a journal that was being written when its run ended needs its -wal file beside it and a folder that can be written""",
    ),
    "another seed": (
        lambda f: _replace(f / "scenario.yaml", "seed: 5", "seed: 6"),
        f"HERE: the seed changed since this run was made\n  {CHANGED}",
    ),
    "another method": (
        lambda f: _replace(f / "scenario.yaml", "kind: agentcf", "kind: agentcf\n  rounds: 1"),
        f"HERE: the scenario changed since this run was made\n  {CHANGED}",
    ),
}


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = runs.run(tmp_path_factory.mktemp("made") / "run").path
    return path


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def message(folder: Path) -> str:
    with pytest.raises(SimengineError) as raised:
        runs.replay(folder)
    return str(raised.value).replace(str(folder), "HERE")


@pytest.mark.parametrize("name", LOGS)
def test_a_wrong_log_is_explained(name: str, copy: Path) -> None:
    change, expected = LOGS[name]
    log = copy / "events.jsonl"
    log.write_bytes(b"".join(change(log.read_bytes().splitlines(keepends=True))))
    assert message(copy) == expected


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wrong_folder_is_explained(name: str, copy: Path) -> None:
    change, expected = FOLDERS[name]
    change(copy)
    assert message(copy) == expected


def test_a_field_that_was_set_otherwise_is_named(copy: Path) -> None:
    with pytest.raises(LogError, match=r"the scenario changed since this run was made: method\.rounds"):
        runs.replay(copy, "method.rounds=1")
