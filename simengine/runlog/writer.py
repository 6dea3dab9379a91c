"""Writes ``events.jsonl``: the one place that does. It is the kernel's sink of a run that is going on."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from simengine.errors import RunStopped
from simengine.kernel import Committed
from simengine.runlog.records import Chain, End, Header, Line, Provenance, event_line

_BUFFER = 1 << 20


class Writer:
    """Appends to a history. What is buffered is lost if the process is killed, but the journal holds its answers.

    A full disk or another error of the file raises :class:`RunStopped`: a run does not go on unlogged.
    """

    def __init__(self, path: Path, header: Header, provenance: Provenance) -> None:
        self._path = path
        self._file = path.open("xb", buffering=_BUFFER)
        self._chain = Chain()
        self._events = self._failed = 0
        self._put(msgspec.json.encode(Line(provenance=provenance)) + b"\n")
        self._put(self._chain.close(Line(header=header)))
        self.flush()

    @classmethod
    def again(cls, path: Path, *, sum: str, size: int, events: int, failed: int) -> Writer:
        """Go on behind the first ``size`` bytes of a history, whose last checksum is ``sum``; what follows is cut."""
        writer = cls.__new__(cls)
        os.truncate(path, size)
        writer._path = path
        writer._file = path.open("ab", buffering=_BUFFER)
        writer._chain = Chain(sum)
        writer._events, writer._failed = events, failed
        return writer

    @property
    def sum(self) -> str:
        """The hash of the history so far."""
        return self._chain.sum

    def commit(self, record: Committed) -> None:
        """Write one event."""
        line = event_line(record)
        self._events += 1
        self._failed += line.failed
        self._put(self._chain.close(line))

    def end(self) -> None:
        """Mark the history as finished."""
        self._put(self._chain.close(Line(end=End(self._events, self._failed))))
        self.flush()

    def flush(self) -> None:
        """Hand what is buffered to the operating system."""
        try:
            self._file.flush()
        except OSError as error:
            raise self._stopped(error) from error

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        self._file.close()

    def _put(self, text: bytes) -> None:
        try:
            self._file.write(text)
        except OSError as error:
            raise self._stopped(error) from error

    def _stopped(self, error: OSError) -> RunStopped:
        return RunStopped(
            f"the run's log cannot be written: {error.strerror}",
            remedy="make room or mend the permissions, then resume; answers that were paid for are in the journal",
            file=str(self._path),
        )
