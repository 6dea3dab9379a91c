"""The journal's store: what is put is found again, in the same process or the next, writable or not."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simengine.errors import LogError, RunStopped
from simengine.llm.calls import CallStore, Entry, Failure
from simengine.llm.request import Completion, Message, Request, Sampling, Usage


def ask(text: str, **options: object) -> Request:
    sampling = options.pop("sampling", Sampling(temperature=0.0))
    return Request(task="choose", model="m", messages=(Message("user", text),), sampling=sampling, **options)


ANSWER = Completion(
    text="Gracias \u2014 \U0001f3b5",
    usage=Usage(12, None, 3),
    reasoning="hm",
    model="m-1",
    attempts=2,
    sent='{"model":"m"}',
)
FILTERED = Failure("the filter refused it", "filtered", "rephrase", 3, {"url": "http://h/v1"})


async def fill(path: Path, *entries: Entry) -> None:
    with CallStore(path) as store:
        await asyncio.gather(*(store.put(entry) for entry in entries))


async def test_what_was_put_is_found_again_by_the_next_process(tmp_path: Path) -> None:
    request = ask("hello", slots={"option_1": "a", "options": ("a", "b")}, call="e1/choose/r1", repeat=2)
    refused = ask("bad", call="e2/choose/r1")
    await fill(tmp_path / "calls.sqlite", Entry(request, ANSWER, 1.5), Entry(refused, FILTERED, 0.25))
    with CallStore(tmp_path / "calls.sqlite") as store:
        assert store.get(request.key()) == ANSWER
        assert store.get(refused.key()) == FILTERED
        assert store.get(ask("other").key()) is None
        assert (store.hits, store.misses, len(store)) == (2, 1, 2)
        first, second = store
    assert (first.key, first.request, first.outcome, first.latency) == (request.key(), request, ANSWER, 1.5)
    assert first.request.key() == first.key
    assert (second.request, second.outcome) == (refused, FILTERED)


async def test_columns_that_reports_sum_are_derived(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    await fill(path, Entry(ask("hello"), ANSWER, 1.0), Entry(ask("bad"), FILTERED, 1.0))
    db = sqlite3.connect(path)
    rows = db.execute(
        "SELECT text, reason, attempts, prompt_tokens, completion_tokens, cached_tokens FROM calls ORDER BY id"
    ).fetchall()
    db.close()
    assert rows == [(ANSWER.text, None, 2, 12, None, 3), (None, "filtered", 3, None, None, None)]


async def test_the_first_outcome_of_a_key_stays(tmp_path: Path) -> None:
    with CallStore(tmp_path / "calls.sqlite") as store:
        same_turn = await asyncio.gather(
            store.put(Entry(ask("x"), Completion("one"), 0.1)), store.put(Entry(ask("x"), Completion("two"), 0.1))
        )
        later = await store.put(Entry(ask("x"), FILTERED, 0.1))
        assert [answer.text for answer in same_turn] == ["one", "one"]
        assert later == Completion("one")
        assert len(store) == 1


async def test_put_returns_when_the_row_is_committed_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with CallStore(path) as store:
        putting = asyncio.ensure_future(store.put(Entry(ask("x"), ANSWER, 0.1)))
        other = sqlite3.connect(path)
        assert other.execute("SELECT count(*) FROM calls").fetchone() == (0,)
        await putting
        assert other.execute("SELECT count(*) FROM calls").fetchone() == (1,)
        other.close()


async def test_all_puts_of_one_turn_are_one_transaction(tmp_path: Path) -> None:
    with CallStore(tmp_path / "calls.sqlite") as store:
        statements: list[str] = []
        store._db.set_trace_callback(statements.append)
        await asyncio.gather(*(store.put(Entry(ask(str(n)), ANSWER, 0.1)) for n in range(20)))
        assert statements.count("COMMIT") == 1
        assert len(store) == 20


async def test_an_entry_on_its_way_is_found(tmp_path: Path) -> None:
    with CallStore(tmp_path / "calls.sqlite") as store:
        putting = asyncio.ensure_future(store.put(Entry(ask("x"), ANSWER, 0.1)))
        await asyncio.sleep(0)
        assert len(store) == 0
        assert store.get(ask("x").key()) == ANSWER
        await putting


async def test_a_cancelled_caller_does_not_take_the_entry_back(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with CallStore(path) as store:
        putting = asyncio.ensure_future(store.put(Entry(ask("x"), ANSWER, 0.1)))
        await asyncio.sleep(0)
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
    with CallStore(path, read_only=True) as store:
        assert store.get(ask("x").key()) == ANSWER


async def test_close_writes_what_is_on_its_way(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    store = CallStore(path)
    putting = asyncio.ensure_future(store.put(Entry(ask("x"), ANSWER, 0.1)))
    await asyncio.sleep(0)
    assert len(store) == 0
    store.close()
    assert await putting == ANSWER
    with CallStore(path, read_only=True) as again:
        assert again.get(ask("x").key()) == ANSWER


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder of a finished run that this process may read and not write (root drops its rights for the while)."""
    folder = Path(tempfile.mkdtemp())
    asyncio.run(fill(folder / "calls.sqlite", Entry(ask("x"), ANSWER, 0.1)))
    (folder / "calls.sqlite").chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_read_only_folder_can_be_read(closed_folder: Path) -> None:
    with pytest.raises(OSError):
        (closed_folder / "probe").touch()
    before = sorted(path.name for path in closed_folder.iterdir())
    with CallStore(closed_folder / "calls.sqlite", read_only=True) as store:
        assert store.get(ask("x").key()) == ANSWER
        assert [row.outcome for row in store] == [ANSWER]
        with pytest.raises(LogError, match="reading only"):
            asyncio.run(store.put(Entry(ask("y"), ANSWER, 0.1)))
    assert sorted(path.name for path in closed_folder.iterdir()) == before == ["calls.sqlite"]


async def test_reading_a_killed_run_sees_what_was_committed(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    await store.put(Entry(ask("x"), ANSWER, 0.1))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("calls.sqlite", "calls.sqlite-wal"):  # as a kill leaves them: never closed, nothing checkpointed
        shutil.copy(tmp_path / name, copy / name)
    with CallStore(copy / "calls.sqlite", read_only=True) as seen:
        assert seen.get(ask("x").key()) == ANSWER
    store.close()


def test_what_was_put_outlives_a_kill(tmp_path: Path) -> None:
    """The process kills itself the moment its first put returns; the second entry had not been committed then."""
    path = tmp_path / "calls.sqlite"
    script = """
import asyncio, os, signal, sys
from pathlib import Path
from simengine.llm.calls import CallStore, Entry
from simengine.llm.request import Completion, Request

async def run() -> None:
    store = CallStore(Path(sys.argv[1]))
    first, second = (Request(task="choose", model=name, messages=()) for name in ("one", "two"))
    await store.put(Entry(first, Completion("yes"), 0.1))
    late = store.put(Entry(second, Completion("no"), 0.1))
    late.send(None)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(run())
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    with CallStore(path) as store:
        assert [(row.request.model, row.outcome) for row in store] == [("one", Completion("yes"))]


def test_a_missing_journal_is_an_error_only_for_readers(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no journal of calls here") as caught:
        CallStore(tmp_path / "calls.sqlite", read_only=True)
    assert caught.value.remedy
    CallStore(tmp_path / "calls.sqlite").close()
    assert (tmp_path / "calls.sqlite").is_file()


def truncated(path: Path) -> None:
    asyncio.run(fill(path, *(Entry(ask(f"{n} {'x' * 3000}"), ANSWER, 0.1) for n in range(20))))
    path.write_bytes(path.read_bytes()[:9000])


def foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE calls (id)")
    db.close()


def other_schema(path: Path) -> None:
    CallStore(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("user,item,time\n" * 200), "cannot be read"),
        (truncated, "cannot be read"),
        (foreign, "not a journal"),
        (other_schema, "another version"),
    ],
    ids=["text", "torn", "foreign", "schema"],
)
def test_a_torn_or_foreign_file_is_named_and_left_alone(tmp_path: Path, make, says: str, read_only: bool) -> None:
    path = tmp_path / "calls.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(LogError, match=says) as caught:
        CallStore(path, read_only=read_only)
    assert caught.value.where["file"] == str(path)
    assert caught.value.remedy
    assert path.read_bytes() == before


async def test_a_row_damaged_inside_is_a_log_error(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    await fill(path, Entry(ask("x"), ANSWER, 0.1))
    db = sqlite3.connect(path)
    db.execute("UPDATE calls SET reply = json('{\"text\": 7}')")
    db.commit()
    db.close()
    with CallStore(path, read_only=True) as store, pytest.raises(LogError, match="cannot be read"):
        store.get(ask("x").key())


async def test_a_store_that_cannot_write_stops_the_run_and_keeps_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with pytest.raises(RunStopped, match="cannot be written"), CallStore(path) as store:
        await store.put(Entry(ask("x"), ANSWER, 0.1))
        # As a full disk does: the file may not grow beyond what it has.
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        puts = [store.put(Entry(ask(f"{n} {'y' * 9000}"), ANSWER, 0.1)) for n in range(3)]
        failed = await asyncio.gather(*puts, return_exceptions=True)
        assert [type(error) for error in failed] == [RunStopped] * 3
        with pytest.raises(RunStopped):
            await store.put(Entry(ask("z"), ANSWER, 0.1))
    with CallStore(path, read_only=True) as store:
        assert [row.outcome for row in store] == [ANSWER]


async def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    store.close()
    with pytest.raises(RunStopped, match="closed"):
        await store.put(Entry(ask("x"), ANSWER, 0.1))
