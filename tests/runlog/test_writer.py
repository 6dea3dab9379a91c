"""Writing a history: once, again behind any cut, on a disk that is full, with what no log can hold."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from histories import HEADER, PROVENANCE, Small, resume, run, write

from simengine.errors import KernelError, LogError, RunStopped
from simengine.kernel import Committed, Context, Engine, Event, Note, Version
from simengine.runlog import Provenance, Reader, Writer
from simengine.runlog.records import End
from simengine.world import Message

ROWS = 4


def record(value: Any, notes: list[Note] | None = None) -> Committed:
    event = Event(id="row0", kind="interaction", order=(0, 0), time=0, writes=("user:1",))
    return Committed(event, [Version("user:1", "short", 1, value)], notes or [], [], [], [])


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_a_history_is_the_same_bytes_but_for_its_provenance(tmp_path: Path) -> None:
    one = write(tmp_path / "one", ROWS)
    writer = Writer(tmp_path / "two", HEADER, Provenance(date="2025", packages={}, concurrency=1, parent="one"))
    run(writer, ROWS)
    writer.end()
    writer.close()
    other = (tmp_path / "two").read_bytes()
    assert one.partition(b"\n")[2] == other.partition(b"\n")[2]
    assert one != other


def test_behind_any_cut_the_bytes_are_those_of_a_writer_that_never_stopped(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", ROWS)
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    cuts = {*range(ends[1], len(whole), 61), *(end + shift for end in ends[1:] for shift in (-1, 0, 1))}
    path = tmp_path / "cut"
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        assert resume(path, ROWS) == whole, cut


@pytest.mark.parametrize("tail", [b"\n", b"\n\n", b"\0\0", b'{"event":"row', b'{"event":"row1"}\n\n'])
def test_what_stands_behind_the_valid_part_is_cut(tmp_path: Path, tail: bytes) -> None:
    whole = write(tmp_path / "whole", ROWS)
    path = tmp_path / "cut"
    for count in (3, 5):
        path.write_bytes(b"".join(whole.splitlines(keepends=True)[:count]) + tail)
        assert resume(path, ROWS) == whole


def test_a_history_that_is_damaged_in_the_middle_is_resumed_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = write(path, ROWS)
    path.write_bytes(whole.replace(b"row2", b"row9"))
    with pytest.raises(LogError):
        resume(path, ROWS)
    assert resume(path, ROWS, repair=True) == whole


def test_the_end_counts_what_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = write(path, ROWS)
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    resume(path, ROWS)
    reader = Reader(path)
    assert len(list(reader)) == 2 * ROWS
    assert reader.end == End(events=2 * ROWS, failed=1)


def test_no_history_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = write(path, ROWS)
    with pytest.raises(LogError, match="here already"):
        Writer(path, HEADER, PROVENANCE)
    assert path.read_bytes() == whole


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "events.jsonl"
    with pytest.raises(RunStopped, match="cannot be written: No such file"):
        Writer(path, HEADER, PROVENANCE)
    with pytest.raises(RunStopped, match="cannot be written: No such file"):
        Writer.again(path, sum="", size=10, events=0, failed=0)


class OnFullDisk(type(Path())):  # type: ignore[misc]
    """A path where reading and cutting goes, but nothing more can be written."""

    def open(self, mode: str = "r", buffering: int = -1, *_: Any, **__: Any) -> Any:
        return open("/dev/full" if mode in ("xb", "ab") else self, mode.replace("x", "w"), buffering=buffering)


full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full to stand for a disk")


@full
def test_a_disk_that_is_full_from_the_start() -> None:
    with pytest.raises(RunStopped, match="No space left"):
        Writer(OnFullDisk("events.jsonl"), HEADER, PROVENANCE)
    gc.collect()  # a file left open would warn here, and a warning fails the test


@full
def test_a_disk_that_is_full_later(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = write(path, 0)
    reader = Reader(path)
    writer = Writer.again(OnFullDisk(path), sum=reader.sum, size=len(whole), events=0, failed=0)
    with pytest.raises(RunStopped, match="No space left") as caught:
        writer.commit(record("x" * (2 << 20)))
    assert caught.value.where == {"file": str(path)}
    assert "journal" in caught.value.remedy
    assert writer.sum == reader.sum, "what was not written is not part of the history"
    writer.commit(record("short enough for the buffer"))
    for act in (writer.flush, writer.end, writer.close):
        with pytest.raises(RunStopped, match="No space left"):
            act()
    gc.collect()
    assert path.read_bytes() == whole


@contextmanager
def room(size: int) -> Iterator[None]:
    """Lets no file grow beyond ``size`` bytes: the last write that still goes is cut short, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_up_stops_the_run_and_its_log_is_a_prefix(tmp_path: Path) -> None:
    rows, program = 12, Small(padding="." * 400_000)
    writer = Writer(tmp_path / "whole", HEADER, PROVENANCE)
    run(writer, rows, program=program)
    writer.close()
    whole = (tmp_path / "whole").read_bytes()

    path = tmp_path / "full"
    writer = Writer(path, HEADER, PROVENANCE)
    with room(2_000_000):
        with pytest.raises(RunStopped, match="cannot be written"):
            run(writer, rows, program=program)
        with pytest.raises(RunStopped, match="cannot be written"):
            writer.close()
    assert path.stat().st_size == 2_000_000
    assert whole.startswith(path.read_bytes())

    reader = Reader(path)
    history = [line.restored() for line in reader]
    assert 4 <= len(history) < 2 * rows, "about 400 kB a row, and a child between any two"
    assert reader.torn == len(history) + 3
    writer = Writer.again(path, sum=reader.sum, size=reader.size, events=reader.events, failed=reader.failed)
    run(writer, rows, history, program)
    writer.close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "value", [{1, 2}.__iter__(), object(), "cut in \ud83d half"], ids=["iterator", "object", "str"]
)
def test_what_no_log_can_hold_is_a_fault_that_names_the_event(tmp_path: Path, value: Any) -> None:
    writer = Writer(tmp_path / "log", HEADER, PROVENANCE)
    before = writer.sum
    with pytest.raises(KernelError, match="cannot hold what this event has done") as caught:
        writer.commit(record(value))
    assert caught.value.where == {"event": "row0"}
    assert writer.sum == before
    writer.end()
    writer.close()
    assert Reader(tmp_path / "log").header == HEADER
    assert lines(tmp_path / "log") == 3


def test_only_messages_are_noted(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "log", HEADER, PROVENANCE)
    writer.commit(record("fine", [Note("row0#.0", Message("user:1", "item:1", "choice", "so"), ["row0#.9"])]))
    with pytest.raises(KernelError, match="keeps messages, not str") as caught:
        writer.commit(record("fine", [Note("row0#.0", "only text", [])]))
    writer.close()
    assert caught.value.where == {"record": "row0#.0"}
    assert lines(tmp_path / "log") == 3


class Gathering(Small):
    """Each event appends an entry of 200 characters to one user's memory."""

    async def handle(self, context: Context) -> None:
        context.append("user:0", "long", "x" * 200)


def test_the_log_of_an_agent_that_gathers_entries_grows_linearly(tmp_path: Path) -> None:
    sizes = []
    for rows in (0, 1_000, 2_000):
        writer = Writer(tmp_path / str(rows), HEADER, PROVENANCE)
        events = (Event(id=f"row{n}", kind="k", order=(0, n), time=n, writes=("user:0",)) for n in range(rows))
        asyncio.run(Engine(Gathering(), events, writer).run())
        writer.close()
        sizes.append((tmp_path / str(rows)).stat().st_size)
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    assert first < 1_000 * 400, "200 characters and their record, not all that went before"
    assert second < first * 1.02, "only the numbers grow longer"
