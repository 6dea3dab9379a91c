"""Reads ``events.jsonl`` as a stream, verifies every checksum, and tells a torn tail from damage in the middle."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from simengine.errors import LogError
from simengine.runlog.records import SCHEMA, Chain, End, EventLine, Header, Line, Provenance

T = TypeVar("T")
_FOREIGN = "name the folder of a run, or restore its log from a copy"


class _Schema(msgspec.Struct):
    schema: Any


class _AnyHeader(msgspec.Struct):
    """The one part of a header that every schema has."""

    header: _Schema


_LINE = msgspec.json.Decoder(Line)
_ANY_HEADER = msgspec.json.Decoder(_AnyHeader)


class Reader:
    """One pass over a history. ``header`` and ``provenance`` are there at once, events come by iteration.

    After iteration ``end`` tells whether the history is finished, ``torn`` the number of the line from which on the
    file is not valid (``None`` where all of it is), ``size`` how many bytes are valid, the newline of the last line
    included even where the file lacks it, ``sum`` their hash, ``events`` and ``failed`` what iteration has given.

    A last line that is not valid is the torn tail of a run that was killed. Valid or not, lines behind one that is not
    valid mean damage, which is an error unless ``repair`` says to take the history as ending there.

    The file is closed at the end of the pass; leave a pass early by ``close`` or a ``with`` block.
    """

    def __init__(self, path: Path, *, repair: bool = False) -> None:
        self._path = path
        self._repair = repair
        self._chain = Chain()
        self._number = 0
        self._lines = self._valid_lines()
        self.torn: int | None = None
        self.end: End | None = None
        self.size = self.events = self.failed = 0
        try:
            self.provenance, self.header = self._head()
        except LogError:
            self.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[EventLine]:
        decode = msgspec.json.Decoder(EventLine)
        for text in self.raw():
            line = self._decode(text, decode)
            self.events += 1
            self.failed += line.failed
            yield line

    def close(self) -> None:
        """Close the file; nothing more can be read."""
        self._lines.close()

    @property
    def sum(self) -> str:
        """The hash of the valid lines read so far."""
        return self._chain.sum

    def raw(self) -> Iterator[bytes]:
        """The events' lines as bytes, without newline; the end line is taken in like in iteration."""
        for text in self._lines:
            if self.end is not None:
                raise self._error("the history goes on behind its end", "two runs wrote to this file; restore a copy")
            if text.startswith(b'{"event":'):
                yield text
                continue
            self.end = self._decode(text, _LINE).end
            if self.end is None:
                raise self._error("this line is neither an event nor the end", _FOREIGN)

    def _head(self) -> tuple[Provenance, Header]:
        """The first two lines. The schema is looked at first, as nothing else need hold in a log of another one."""
        first = next(self._lines, None)
        second = next(self._lines, None)
        if first is None or second is None:
            raise LogError("the log has no header", remedy="no event was written; start anew", file=str(self._path))
        header = self._decode(second, _LINE).header
        self._number = 1
        provenance = self._decode(first, _LINE).provenance
        if header is None or provenance is None:
            raise self._error("the log does not begin with its provenance and its header", _FOREIGN)
        self._number = 2
        return provenance, header

    def _valid_lines(self) -> Generator[bytes, None, None]:
        try:
            with self._path.open("rb") as file:
                for number, text in enumerate(file, 1):
                    self._number = number
                    body = text.removesuffix(b"\n")
                    if number == 2:
                        self._check_schema(body)
                    if number > 1 and not self._chain.check(body):
                        self._judge_rest(body, any(line.strip() for line in file))
                        return
                    self.size += len(body) + 1
                    yield body
        except OSError as error:
            problem = f"the log cannot be read: {error.strerror}"
            remedy = "name the folder of a run that you may read"
            raise LogError(problem, remedy=remedy, file=str(self._path)) from error

    def _check_schema(self, text: bytes) -> None:
        """Refuse another schema by name, before its checksum is looked at, which may be made in another way."""
        try:
            schema = _ANY_HEADER.decode(text).header.schema
        except msgspec.DecodeError:
            return  # no header at all: its checksum tells whether it is torn, its content whether it is foreign
        if schema != SCHEMA:
            raise self._error(
                f"this log has schema {schema}, and this version reads {SCHEMA}",
                "read it with the version that wrote it (its first line names it)",
            )

    def _judge_rest(self, text: bytes, more: bool) -> None:
        """What it means that the present line is not valid: blank lines at the end mean nothing."""
        if more and not self._repair:
            raise self._error(
                "this line does not fit the checksum of the one before",
                "the log was damaged or changed in the middle: restore it from a copy; or repair it, which cuts it "
                "before this line, and resume, as the journal still holds the answers",
            )
        if more or text.strip():
            self.torn = self._number

    def _decode(self, text: bytes, decoder: msgspec.json.Decoder[T]) -> T:
        try:
            return decoder.decode(text)
        except msgspec.DecodeError as error:
            raise self._error(f"this line is no line of a log: {error}", _FOREIGN) from error

    def _error(self, problem: str, remedy: str) -> LogError:
        return LogError(problem, remedy=remedy, file=str(self._path), line=self._number)
