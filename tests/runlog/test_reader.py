"""Reading a history: whole, torn at any byte, damaged in the middle, foreign, of another schema, as a stream."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from histories import HEADER, PROVENANCE, write

from simengine.errors import LogError
from simengine.runlog import SCHEMA, EventLine, Reader, Writer
from simengine.runlog.records import Chain, End, Line

ROWS = 4


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    write(path, ROWS)
    return path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files that are opened through a path, with the mode of each."""
    files: list[Any] = []
    real = Path.open

    def keep(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real(self, mode, *args, **options)
        files.append(file)
        return file

    monkeypatch.setattr(Path, "open", keep)
    return files


def names(reader: Reader) -> list[str]:
    return [line.event for line in reader]


def write_lines(path: Path, *lines: Line | EventLine, first: bytes | None = None) -> Path:
    """A file of any lines with right checksums, behind a provenance."""
    chain = Chain()
    head = msgspec.json.encode(Line(provenance=PROVENANCE)) + b"\n" if first is None else first
    path.write_bytes(head + b"".join(chain.close(line) for line in lines))
    return path


def test_a_whole_history(log: Path) -> None:
    reader = Reader(log)
    assert (reader.header, reader.provenance) == (HEADER, PROVENANCE)
    assert names(reader) == ["row0", "row0>.0", "row1", "row1>.0", "row2", "row2>.0", "row3", "row3>.0"]
    assert reader.end == End(events=8, failed=1)
    assert (reader.events, reader.failed) == (8, 1), "the reflection of row 2 fails"
    assert (reader.torn, reader.size) == (None, log.stat().st_size)
    assert f'"sum":"{reader.sum}"}}\n'.encode() in log.read_bytes().splitlines(keepends=True)[-1]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n", b" \n\t\n", b"\0\0\0\0", b"\xf0\x9f", b'{"i":2,"t":"ha'])
def test_a_file_cut_at_any_byte_gives_the_events_that_are_whole(tmp_path: Path, tail: bytes) -> None:
    log = tmp_path / "events.jsonl"
    whole = write(log, 2)
    lines = whole.splitlines(keepends=True)
    ends = [sum(map(len, lines[:count])) for count in range(len(lines) + 1)]
    every = names(Reader(log))
    for cut in range(ends[2], len(whole) + 1):
        log.write_bytes(whole[:cut] + tail)
        reader = Reader(log)
        bare = cut + 1 in ends and tail[:1] in (b"", b"\n")  # only the newline is lost
        count = sum(end <= cut for end in ends) - 1 + bare
        assert names(reader) == every[: count - 2], cut
        assert reader.size == ends[count], cut
        assert (reader.end is None) == (count < len(lines)), cut
        rest = (whole[:cut] + tail)[ends[count] :]
        assert reader.torn == (count + 1 if rest.strip() else None), cut


@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n"])
def test_without_a_whole_header_there_is_no_log(log: Path, tail: bytes) -> None:
    whole = log.read_bytes()
    first, second, *_ = whole.splitlines(keepends=True)
    for cut in range(len(first + second) - 1):
        log.write_bytes(whole[:cut] + tail)
        with pytest.raises(LogError, match="no header"):
            Reader(log)


@pytest.mark.parametrize("change", ["flipped", "torn", "blank", "twice", "missing", "zeros", "key repeated"])
def test_damage_in_the_middle_is_an_error_that_names_the_line(log: Path, change: str) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    for at in range(2, len(lines) - (2 if change == "missing" else 1)):
        bad = {
            "flipped": [lines[at].replace(b"event", b"evenT", 1)],
            "torn": [lines[at][:-30] + b"\n"],
            "blank": [b"\n", lines[at]],
            "twice": [lines[at], lines[at]],
            "missing": [],
            "zeros": [b"\0" * len(lines[at]), lines[at]],
            "key repeated": [lines[at].replace(b"{", b'{"event":"row9",', 1)],
        }[change]
        log.write_bytes(b"".join([*lines[:at], *bad, *lines[at + 1 :]]))
        number = at + 2 if change == "twice" else at + 1
        with pytest.raises(LogError, match="does not fit the checksum") as caught:
            list(Reader(log))
        assert caught.value.where == {"file": str(log), "line": number}
        assert "repair" in caught.value.remedy
        reader = Reader(log, repair=True)
        assert len(names(reader)) == number - 3
        assert reader.size == sum(map(len, lines[: number - 1]))
        assert (reader.torn, reader.end) == (number, None)


def test_a_damaged_header_is_beyond_repair(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"seed":7', b'"seed":8'))
    with pytest.raises(LogError, match="does not fit the checksum") as caught:
        Reader(log)
    assert caught.value.where["line"] == 2
    with pytest.raises(LogError, match="no header"):
        Reader(log, repair=True)


def test_of_equal_keys_in_data_the_last_counts(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log", Line(header=HEADER), EventLine("e", "k", 0, data={1: "first", "1": "last"}))
    assert [line.data for line in Reader(path)] == [{"1": "last"}]


@pytest.mark.parametrize("sum", [b"", b',"sum":"another kind of checksum"'])
def test_another_schema_is_refused_by_name_whatever_else_it_holds(tmp_path: Path, sum: bytes) -> None:
    path = tmp_path / "log"
    header = b'{"header":{"schema":%d,"seeds":[1,2]}%s}\n{"turn":1}\n' % (SCHEMA + 1, sum)
    path.write_bytes(b'{"provenance":{"made":"later"}}\n' + header)
    with pytest.raises(LogError, match=f"schema {SCHEMA + 1}, and this version reads {SCHEMA}") as caught:
        Reader(path)
    assert caught.value.where["line"] == 2


EVENT, UNKNOWN = EventLine("e", "k", 0), Line(provenance=PROVENANCE)


@pytest.mark.parametrize(
    ("lines", "first", "number", "problem"),
    [
        ([Line(header=HEADER)], b"Dear diary,\n", 1, "no line of a log"),
        ([Line(header=HEADER)], b'{"provenance":{"date":"\xe2\x82"}}\n', 1, "no line of a log"),
        ([Line(header=HEADER)], b'{"header":{}}\n', 1, "no line of a log"),
        ([Line(header=HEADER)], b"{}\n", 1, "does not begin with"),
        ([EVENT], None, 1, "does not begin with"),
        ([Line(header=HEADER), EVENT, UNKNOWN], None, 4, "neither an event nor the end"),
        ([Line(header=HEADER), EVENT, Line(header=HEADER)], None, 4, "neither an event nor the end"),
        ([Line(header=HEADER), EVENT, Line(end=End(1, 0)), EVENT], None, 5, "goes on behind its end"),
        ([Line(header=HEADER), EventLine("e", "k", "noon")], None, 3, "no line of a log"),  # type: ignore[arg-type]
    ],
)
def test_a_file_that_is_no_history(tmp_path: Path, lines: Any, first: Any, number: int, problem: str) -> None:
    path = write_lines(tmp_path / "log", *lines, first=first)
    with pytest.raises(LogError, match=problem) as caught:
        list(Reader(path))
    assert caught.value.where == {"file": str(path), "line": number}


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing" / "events.jsonl"):
        with pytest.raises(LogError, match=r"cannot be read: (Is a directory|No such file)"):
            Reader(path)


def test_a_read_only_folder_is_enough(log: Path, opened: list[Any]) -> None:
    log.chmod(0o444)
    log.parent.chmod(0o555)
    before = sorted(log.parent.iterdir())
    try:
        assert len(names(Reader(log))) == 2 * ROWS
        assert sorted(log.parent.iterdir()) == before
    finally:
        log.parent.chmod(0o755)
    assert [file.mode for file in opened] == ["rb"]


def leave_by_close(path: Path) -> None:
    reader = Reader(path)
    next(iter(reader))
    reader.close()
    assert list(reader) == []


def leave_by_with(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Reader(path) as reader:
        next(reader.raw())
        raise ZeroDivisionError


def read_to_the_end(path: Path) -> None:
    list(Reader(path))


def let_go(path: Path) -> None:
    next(iter(Reader(path)))
    gc.collect()


def fail_in_the_middle(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"row2", b"row9"))
    with pytest.raises(LogError):
        list(Reader(path))


def fail_at_the_head(path: Path) -> None:
    write_lines(path, Line(header=HEADER), first=b"{}\n")
    with pytest.raises(LogError) as caught:
        Reader(path)
    assert caught.value.where["line"] == 1


@pytest.mark.parametrize(
    "use", [leave_by_close, leave_by_with, read_to_the_end, let_go, fail_in_the_middle, fail_at_the_head]
)
def test_the_file_is_closed(log: Path, opened: list[Any], use: Callable[[Path], None]) -> None:
    use(log)
    read = [file for file in opened if file.name == str(log)]
    assert read
    assert all(file.closed for file in read)


def test_events_are_read_as_a_stream(tmp_path: Path) -> None:
    events = (EventLine(f"row{n}", "k", n, data="x" * 1000) for n in range(5_000))
    path = write_lines(tmp_path / "log", Line(header=HEADER), *events)
    tracemalloc.start()
    assert sum(1 for _ in Reader(path)) == 5_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 5_000_000
    assert peak < 500_000, "bytes at the peak: a buffer of the file and a line or two"


def test_a_writer_that_ends_at_once_leaves_a_history_without_events(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "log", HEADER, PROVENANCE)
    writer.end()
    writer.close()
    reader = Reader(tmp_path / "log")
    assert names(reader) == []
    assert reader.end == End(0, 0)
    assert reader.sum == writer.sum


def test_raw_lines_are_the_lines_of_the_file(log: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield from Reader(log).raw()

    assert list(lines()) == log.read_bytes().splitlines()[2:-1]
