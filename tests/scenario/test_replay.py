"""Replay executes a run again without a model: it says identical, or where the two part, or what is missing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
import runs

from simengine.errors import Divergence, LogError, ReplayMiss
from simengine.runlog.records import Chain, End, EventLine, Line


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def _rewrite(folder: Path, change: Any) -> None:
    """Let ``change(event)`` alter the events of a log, and make all its checksums anew, as a forger would."""
    log = folder / "events.jsonl"
    first, *rest = log.read_bytes().splitlines()
    chain, lines = Chain(), [first + b"\n"]
    for text in rest:
        if text.startswith(b'{"event":'):
            event = msgspec.json.decode(text, type=EventLine)
            change(event)
            event.sum = ""
            lines.append(chain.close(event))
        else:
            line = msgspec.json.decode(text, type=Line)
            line.sum = ""
            lines.append(chain.close(line))
    log.write_bytes(b"".join(lines))


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def test_a_finished_run_is_identical_and_no_model_is_asked(whole: Path) -> None:
    found = runs.replay(whole)
    assert (found.events, found.calls, found.finished) == (32, 0, True)
    assert found.hash == runs.report(whole).hash


@pytest.mark.parametrize(
    "sets", [["engine.schedule={batch: 5}"], ["engine.visibility.items=every 2 steps"], ["llm.temperature=0.7"]]
)
def test_every_kind_of_run_is_identical(sets: list[str], tmp_path: Path) -> None:
    assert runs.replay(runs.run(tmp_path / "run", *sets).path).hash == runs.report(tmp_path / "run").hash


def test_a_read_only_folder_can_be_replayed(copy: Path) -> None:
    """Nothing is written, made or touched; where the rights of files bind (not for root) they forbid it too."""
    before = _state(copy)
    for path in (*copy.iterdir(), copy):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert runs.replay(copy).finished
        assert _state(copy) == before
    finally:
        copy.chmod(0o755)


def test_an_unfinished_run_is_compared_as_far_as_it_goes(whole: Path, tmp_path: Path) -> None:
    for at in (0, 7, 26):
        unfinished = runs.cut(whole, tmp_path / str(at), runs.ends(whole)[at])
        found = runs.replay(unfinished)
        assert (found.events, found.finished) == (at, False)
        assert found.hash.encode() in runs.history(unfinished)[-1]


def test_an_unfinished_run_with_a_torn_tail_is_left_as_it_is(whole: Path, tmp_path: Path) -> None:
    unfinished = runs.cut(whole, tmp_path / "copy", runs.ends(whole)[7], b'{"event":"int')
    before = _state(unfinished)
    assert runs.replay(unfinished).events == 7
    assert _state(unfinished) == before


def test_a_changed_memory_is_found(copy: Path) -> None:
    """With all checksums made anew the log is whole in itself, and only the re-execution tells."""

    name, agent, at = next(
        (event["event"], memory["agent"], at)
        for event in runs.events(copy, "interaction")[5:]
        for at, memory in enumerate(event["memories"])
        if memory["slot"] == "short"
    )

    def forge(event: EventLine) -> None:
        if event.event == name:
            memory = event.memories[at]
            event.memories[at] = msgspec.structs.replace(memory, value="I like nothing at all.")

    _rewrite(copy, forge)
    with pytest.raises(Divergence) as caught:
        runs.replay(copy)
    where = caught.value.where
    assert (where["event"], where["record"], where["agent"]) == (name, f"memories[{at}].value", agent)
    assert "I like nothing at all." in where["expected"]
    assert "I like:" in where["found"]


@pytest.mark.parametrize("part", ["messages", "edges", "calls", "units"])
def test_whatever_is_changed_is_found(copy: Path, part: str) -> None:
    name = next(event["event"] for event in runs.events(copy, "interaction")[3:] if event[part])

    def forge(event: EventLine) -> None:
        if event.event == name:
            kept = getattr(event, part)
            setattr(event, part, dict(list(kept.items())[1:]) if isinstance(kept, dict) else kept[:-1])

    _rewrite(copy, forge)
    with pytest.raises(Divergence) as caught:
        runs.replay(copy)
    assert caught.value.where["event"] == name
    assert str(caught.value.where["record"]).startswith(part)


def test_an_event_left_out_or_added_is_found(copy: Path) -> None:
    log = copy / "events.jsonl"
    original = log.read_bytes()
    for lines in ("short", "long"):
        first, header, *middle, _ = original.splitlines()
        events = middle[:-1] if lines == "short" else [*middle, middle[-1]]
        chain = Chain()
        texts = [first + b"\n", chain.close(_blank(msgspec.json.decode(header, type=Line)))]
        texts += [chain.close(_blank(msgspec.json.decode(text, type=EventLine))) for text in events]
        log.write_bytes(b"".join([*texts, chain.close(Line(end=End(len(events), 0)))]))
        with pytest.raises(Divergence) as caught:
            runs.replay(copy)
        expected, found = caught.value.where["expected"], caught.value.where["found"]
        assert (expected == "nothing", found == "nothing") == (lines == "short", lines == "long")


def _blank(line: Any) -> Any:
    line.sum = ""
    return line


def _journal(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / "calls.sqlite")
    changed = database.execute(statement).rowcount
    database.commit()
    database.close()
    assert changed == 1


def _forge_reply(folder: Path, task: str, text: str) -> str:
    """Change the first reply to a task in the journal; returns the id of its call."""
    row = next(row for row in runs.calls(folder) if row.request.task == task)
    _journal(folder, f"UPDATE calls SET reply = json_set(reply, '$.text', '{text}') WHERE key = '{row.key}'")
    return str(row.request.call)


def test_a_changed_reply_is_found_at_the_call(copy: Path) -> None:
    """The log keeps a digest of each reply beside the call's name."""
    row = next(row for row in runs.calls(copy) if row.request.task == "rank")
    reply = row.outcome.text.splitlines()
    event = _forge_reply(copy, "rank", "\n".join([reply[0], *reversed(reply[1:])])).partition("#")[0]
    with pytest.raises(Divergence) as caught:
        runs.replay(copy)
    assert caught.value.where["event"] == event


def test_a_changed_reply_that_leads_to_other_calls_is_a_miss(copy: Path) -> None:
    """What is asked next is asked with what the forged reply brought about, and the journal has no answer to that."""
    event = _forge_reply(copy, "reflect.user", "My updated self-introduction: I like nothing.").partition("#")[0]
    with pytest.raises(ReplayMiss) as caught:
        runs.replay(copy)
    assert str(caught.value.where["call"]).startswith(event)


def test_a_missing_answer_is_named_and_never_asked_for(copy: Path) -> None:
    row = next(row for row in runs.calls(copy) if row.request.task == "rank")
    _journal(copy, f"DELETE FROM calls WHERE key = '{row.key}'")
    with pytest.raises(ReplayMiss) as caught:
        runs.replay(copy)
    assert caught.value.where == {"call": row.request.call, "task": "rank", "key": row.key}
    assert row.request.call in str(caught.value)


def test_a_run_without_its_journal_is_refused(copy: Path) -> None:
    (copy / "calls.sqlite").unlink()
    with pytest.raises(LogError, match="no journal"):
        runs.replay(copy)
    assert not (copy / "calls.sqlite").exists()


def test_a_changed_prompt_is_refused_by_name(tmp_path: Path) -> None:
    template = tmp_path / "user.j2"
    template.write_text("I like {{ noun }}s.", encoding="utf-8")
    folder = runs.run(tmp_path / "run", f"prompts.user={template}").path
    assert runs.replay(folder).finished
    template.write_text("I love {{ noun }}s.", encoding="utf-8")
    with pytest.raises(LogError, match="the prompt user changed"):
        runs.replay(folder)


def test_changed_data_are_refused_by_name(real_data: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(real_data / "agentcf-cds-dense", tmp_path / "cds", copy_function=shutil.copyfile))
    os.chmod(data, 0o755)
    text = (runs.ROOT / "scenarios" / "agentcf-cds.yaml").read_text(encoding="utf-8")
    folder = runs.run(tmp_path / "run", f"data.path={data}", "data.users=3", text=text).path
    assert runs.replay(folder).finished
    items = data / "CDs.item"
    items.write_text(items.read_text(encoding="utf-8").replace("Rock", "Pop", 1), encoding="utf-8")
    with pytest.raises(LogError, match="the data changed"):
        runs.replay(folder)
