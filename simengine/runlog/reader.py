"""Reads ``events.jsonl`` as a stream, verifies every checksum, and tells a torn tail from damage in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from simengine.errors import LogError
from simengine.runlog.records import SCHEMA, Chain, End, EventLine, Header, Line, Provenance


class Reader:
    """One pass over a history. ``header`` and ``provenance`` are there at once, events come by iteration.

    After iteration ``end`` tells whether the history is finished, ``torn`` the number of the line where a torn tail
    was found (``None`` where there is none), ``size`` how many bytes are valid, ``sum`` the hash of these.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise LogError("there is no log here", remedy="name the folder of a run", file=str(path))
        self._chain = Chain()
        self._lines = self._valid_lines()
        self.torn: int | None = None
        self.end: End | None = None
        self.size = 0
        first = next(self._lines, None)
        second = next(self._lines, None)
        if first is None or second is None:
            raise LogError("the log has no header", remedy="start the run anew", file=str(path))
        self.provenance = self._decode(first, 1).provenance or Provenance(date="", packages={}, concurrency=0)
        header = self._decode(second, 2).header
        if header is None or header.schema != SCHEMA:
            raise LogError(
                f"this log has schema {header.schema if header else 'unknown'}, and this version reads {SCHEMA}",
                remedy="read it with the version that wrote it (its first line names it)",
                file=str(path),
                line=2,
            )
        self.header: Header = header

    def __iter__(self) -> Iterator[EventLine]:
        decode = msgspec.json.Decoder(EventLine).decode
        for text in self._lines:
            if text.startswith(b'{"event":'):
                yield decode(text)
            else:
                self.end = self._decode(text, None).end

    @property
    def sum(self) -> str:
        """The hash of the valid lines read so far."""
        return self._chain.sum

    def raw(self) -> Iterator[bytes]:
        """The events' lines as bytes, without newline; the end line is taken in like in iteration."""
        for text in self._lines:
            if text.startswith(b'{"event":'):
                yield text
            else:
                self.end = self._decode(text, None).end

    def _valid_lines(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            for number, text in enumerate(file, 1):
                whole = text.endswith(b"\n")
                body = text.rstrip(b"\n")
                if whole and (number == 1 or self._chain.check(body)):
                    self.size += len(text)
                    yield body
                    continue
                if any(line.strip() for line in file):
                    raise LogError(
                        "this line does not fit the checksum of the one before",
                        remedy="the log was changed or damaged in the middle; restore it from a copy, or cut it before "
                        "this line and resume: the journal still holds the answers",
                        file=str(self._path),
                        line=number,
                    )
                if body.strip():
                    self.torn = number
                return

    def _decode(self, text: bytes, line: int | None) -> Line:
        try:
            return msgspec.json.decode(text, type=Line)
        except msgspec.DecodeError as error:
            raise LogError(
                f"this line is no line of a log: {error}",
                remedy="name the folder of a run",
                file=str(self._path),
                line=line,
            ) from error
