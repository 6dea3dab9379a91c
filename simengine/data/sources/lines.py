"""Reading large text files line by line, plain or gzipped, in bounded memory, with word of how far it is."""

from __future__ import annotations

import gzip
import hashlib
import io
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import structlog

from simengine.errors import InputError

_log = structlog.get_logger("simengine")
_SAY_EVERY = 10.0  # seconds
_BUFFER = 1 << 18
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Reading:
    """How far the reading of a file is: bytes read of those on the disk, and rows found in them."""

    file: str
    done: int
    total: int
    rows: int


Watch: TypeAlias = Callable[[Reading], None]
"""Is told now and then how far reading is."""


class LoggedReading:
    """Tells the log how far reading is, every ten seconds: an event of the level INFO, which goes to stderr."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, now: Reading) -> None:
        if time.monotonic() - self._said >= _SAY_EVERY:
            self._said = time.monotonic()
            _log.info("reading", file=now.file, percent=round(100 * now.done / max(now.total, 1)), rows=now.rows)


class Lines:
    """A file's lines as bytes without their ends; iteration gives (line number, line), once.

    Whether a file is gzipped is seen by its first bytes, not by its name. A byte-order mark and CR LF are accepted.
    When all is read, ``sha256`` is that of the bytes on the disk. Raises :class:`InputError` for a file that cannot be
    read or is not whole.
    """

    def __init__(self, path: Path) -> None:
        self.file = str(path)
        try:
            self._raw = _Counted(path)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", remedy="Check the path and its permissions.", file=str(path)
            ) from None
        self.total = path.stat().st_size

    @property
    def done(self) -> int:
        """Bytes read so far."""
        return self._raw.done

    @property
    def sha256(self) -> str:
        """The digest of the bytes read so far."""
        return self._raw.sha256.hexdigest()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        with io.BufferedReader(self._raw, _BUFFER) as plain:
            stream = plain
            if plain.peek(2)[:2] == _GZIP:
                stream = io.BufferedReader(gzip.GzipFile(fileobj=plain), _BUFFER)  # type: ignore[arg-type]
            try:
                for number, line in enumerate(stream, 1):
                    if number == 1:
                        line = line.removeprefix(_BOM)
                    yield number, line.rstrip(b"\r\n")
            except (EOFError, zlib.error, gzip.BadGzipFile):
                raise InputError(
                    "the gzipped file is damaged, or ends before its end",
                    remedy="Fetch it again; its size and checksum should be those that its publisher names.",
                    file=self.file,
                    line=number + 1,
                ) from None


def first_line(path: Path) -> bytes:
    """The first line of a file that is not blank; empty where there is none."""
    return next((line for _, line in Lines(path) if line.strip()), b"")


def whole_text(path: Path) -> tuple[str, str, str]:
    """The text of a small file, the SHA-256 of its bytes, and its encoding: UTF-8, else Latin-1 for all of it."""
    lines = Lines(path)
    data = b"\n".join(line for _, line in lines)
    try:
        return data.decode(), lines.sha256, "UTF-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), lines.sha256, "Latin-1"


class _Counted(io.RawIOBase):
    """A file's bytes, counted and hashed as they are read."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.sha256 = hashlib.sha256()
        self.done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self.sha256.update(buffer[:count])
        self.done += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
