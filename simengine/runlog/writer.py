"""Writes ``events.jsonl``: the one place that does. It is the kernel's sink of a run that is going on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from simengine.errors import KernelError, LogError, RunStopped
from simengine.kernel import Committed
from simengine.runlog.records import Chain, End, EventLine, Header, Line, Provenance, event_line

_BUFFER = 1 << 20


class Writer:
    """Appends to a history. What is buffered is lost if the process is killed, but the journal holds its answers.

    A full disk or another error of the file raises :class:`RunStopped`: a run does not go on unlogged. What the file
    holds then is a prefix of the history, perhaps with a torn tail. Close a writer whatever happened.
    """

    def __init__(self, path: Path, header: Header, provenance: Provenance) -> None:
        chain = Chain()
        first = msgspec.json.encode(Line(provenance=provenance)) + b"\n"
        with _told(path), path.open("xb") as file:
            file.write(first + chain.close(Line(header=header)))
        self._open(path, chain, 0, 0)

    @classmethod
    def again(cls, path: Path, *, sum: str, size: int, events: int, failed: int) -> Writer:
        """Go on behind the first ``size`` bytes of a history, all as a :class:`Reader` tells them; the rest is cut.

        ``sum`` is the checksum of the last line that stays, ``events`` and ``failed`` count what stays. The last
        newline is written anew, since the reader takes a line for whole that has lost nothing else.
        """
        with _told(path), path.open("r+b") as file:
            file.seek(size - 1)
            file.write(b"\n")
            file.truncate()
        writer = cls.__new__(cls)
        writer._open(path, Chain(sum), events, failed)
        return writer

    @property
    def sum(self) -> str:
        """The hash of the history so far."""
        return self._chain.sum

    def commit(self, record: Committed) -> None:
        """Write one event. Raises :class:`KernelError` where it holds what is no plain data."""
        line = event_line(record)
        try:
            self._put(line)
        except (TypeError, UnicodeError) as error:
            raise KernelError(
                f"the log cannot hold what this event has done: {error}",
                remedy="keep memories, messages and data to text, numbers, lists and mappings with text keys",
                event=line.event,
            ) from error
        self._events += 1
        self._failed += line.failed

    def copy(self, line: EventLine) -> None:
        """Take over an event of another history, under this one's checksums."""
        line.sum = ""
        self._put(line)
        self._events += 1
        self._failed += line.failed

    def end(self) -> None:
        """Mark the history as finished."""
        self._put(Line(end=End(self._events, self._failed)))
        self.flush()

    def flush(self) -> None:
        """Hand what is buffered to the operating system."""
        with _told(self._path):
            self._file.flush()

    def close(self) -> None:
        """Flush and close the file; it is closed even where the flush fails."""
        with _told(self._path):
            self._file.close()

    def _open(self, path: Path, chain: Chain, events: int, failed: int) -> None:
        self._path, self._chain = path, chain
        self._events, self._failed = events, failed
        with _told(path):
            self._file = path.open("ab", buffering=_BUFFER)

    def _put(self, line: EventLine | Line) -> None:
        before = self._chain.sum
        text = self._chain.close(line)
        try:
            self._file.write(text)
        except OSError as error:
            self._chain.sum = before
            raise _stopped(self._path, error) from error


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turns what the operating system says about the file into an error that tells what to do."""
    try:
        yield
    except FileExistsError as error:
        remedy = "resume that run, or name another folder: no run overwrites another"
        raise LogError("a run's log is here already", remedy=remedy, file=str(path)) from error
    except OSError as error:
        raise _stopped(path, error) from error


def _stopped(path: Path, error: OSError) -> RunStopped:
    return RunStopped(
        f"the run's log cannot be written: {error.strerror}",
        remedy="make room or mend the permissions, then resume; answers that were paid for are in the journal",
        file=str(path),
    )
