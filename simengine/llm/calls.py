"""The journal's store: every model call of a run with its outcome, in one SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from simengine.errors import CallFailed, LogError, RunStopped
from simengine.llm.request import Completion, Message, Request, Sampling

_APPLICATION = 0x53494D43  # "SIMC", the mark in the file's header by which a foreign database is told apart
_SCHEMA = 1

# What reports want to sum is derived from the stored JSON, so that nothing is kept twice.
_CREATE = """
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    call TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    task TEXT NOT NULL,
    request TEXT NOT NULL,
    sent TEXT NOT NULL,
    reply TEXT,
    error TEXT,
    latency REAL NOT NULL,
    text TEXT AS (json_extract(reply, '$.text')),
    reason TEXT AS (json_extract(error, '$.reason')),
    attempts INTEGER AS (coalesce(json_extract(reply, '$.attempts'), json_extract(error, '$.attempts'), 1)),
    prompt_tokens INTEGER AS (json_extract(reply, '$.usage.prompt_tokens')),
    completion_tokens INTEGER AS (json_extract(reply, '$.usage.completion_tokens')),
    cached_tokens INTEGER AS (json_extract(reply, '$.usage.cached_tokens')),
    CHECK ((reply IS NULL) <> (error IS NULL))
)
"""
# Calls that went into a batch of the server, before and after its answers are there. A file of an earlier version gets
# the table when it is opened for writing. ``batch`` is unknown from the moment before a batch is created to that after.
_CREATE_SUBMITTED = """
CREATE TABLE IF NOT EXISTS submitted (
    key TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    batch TEXT,
    sent TEXT NOT NULL
)
"""
_OUTSTANDING = """
SELECT DISTINCT batch FROM submitted
WHERE batch IS NOT NULL AND key NOT IN (SELECT key FROM calls) ORDER BY batch
"""
_INSERT = """
INSERT OR IGNORE INTO calls (key, call, repeat, task, request, sent, reply, error, latency)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ROWS = "SELECT key, call, repeat, task, request, sent, reply, error, latency FROM calls ORDER BY id"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A terminal error as the journal keeps it. It does not name the call: equal requests may share it."""

    problem: str
    reason: str
    remedy: str = ""
    attempts: int = 1
    where: dict[str, Any] = {}

    def error(self) -> CallFailed:
        """A fresh error to raise."""
        return CallFailed(self.problem, reason=self.reason, remedy=self.remedy, **self.where)


Outcome = Completion | Failure


class Entry(msgspec.Struct, frozen=True):
    """One call as it is handed to the store.

    ``latency`` is in seconds from asking to the outcome, waiting for a slot, retries and pauses included.
    """

    request: Request
    outcome: Outcome
    latency: float


class Submitted(msgspec.Struct, frozen=True):
    """Where a call was submitted to: the batch's label, its id as far as that is known, and the body as it was sent."""

    label: str
    batch: str | None
    sent: str


class Row(msgspec.Struct, frozen=True):
    """One stored call, for reports."""

    key: str
    request: Request
    outcome: Outcome
    latency: float


class _Logical(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a request that says what is asked; who asks stands in columns of its own."""

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling
    slots: dict[str, str | tuple[str, ...]]
    schema: str = ""


class _Pending(msgspec.Struct):
    """An outcome on its way to the disk, and those who wait for it to be there."""

    outcome: Outcome
    columns: tuple[Any, ...]
    waiting: list[asyncio.Future[Outcome]]


class CallStore:
    """The calls of one run, by key. The first outcome of a key stays; none is ever changed or removed.

    ``hits`` and ``misses`` count what :meth:`get` found and did not find. Raises :class:`LogError` for a file that is
    damaged or is no journal, :class:`RunStopped` where an outcome cannot be written (a full disk).
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.hits = 0
        self.misses = 0
        self._read_only = read_only
        self._pending: dict[str, _Pending] = {}
        self._broken: RunStopped | None = None
        if read_only and not path.is_file():
            raise LogError("there is no journal of calls here", file=str(path), remedy="name the folder of a run")
        try:
            self._db = _connect(path, read_only)
        except sqlite3.Error as error:
            raise self._damaged(error) from error
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """Tell a journal from a foreign file (before anything is changed in it), and make the table in a new one."""
        try:
            mark = self._db.execute("PRAGMA application_id").fetchone()[0]
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            fresh = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if fresh and not self._read_only:
                self._create()
                mark, version = _APPLICATION, _SCHEMA
        except sqlite3.Error as error:
            raise self._damaged(error) from error
        if mark != _APPLICATION:
            problem = "the journal is empty" if fresh else "this file is not a journal of calls"
            raise LogError(problem, file=str(self.path), remedy="name the folder of a run, or move this file away")
        if version != _SCHEMA:
            remedy = f"use the version of simengine that wrote it (schema {version}; this one reads {_SCHEMA})"
            raise LogError("the journal was written by another version", file=str(self.path), remedy=remedy)
        if not self._read_only:
            # A commit outlives the process, however it is killed, without a sync of its own: SQLite syncs at its
            # checkpoints and at the end. A power cut may take the last answers, which are then asked again; the file
            # stays whole. FULL would save those too, at 0.2 ms a commit on an idle ext4 disk and 3.7 ms on a busy one
            # (NORMAL: 0.05 and 0.1), groups hardly more; that is time in which the event loop stands still, and many
            # times what a call to a local backend takes.
            self._db.execute("PRAGMA synchronous = NORMAL")
            try:
                self._db.execute(_CREATE_SUBMITTED)
            except sqlite3.Error as error:
                raise self._damaged(error) from error

    def _create(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(_CREATE)
        self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._db.execute(f"PRAGMA user_version = {_SCHEMA}")
        self._db.execute("COMMIT")

    def get(self, key: str) -> Outcome | None:
        """The outcome stored under a key, or ``None``. What :meth:`put` was given is found at once."""
        outcome = self._pending[key].outcome if key in self._pending else self._stored(key)
        if outcome is None:
            self.misses += 1
        else:
            self.hits += 1
        return outcome

    def _stored(self, key: str) -> Outcome | None:
        try:
            row = self._db.execute("SELECT sent, reply, error FROM calls WHERE key = ?", (key,)).fetchone()
            return None if row is None else _outcome(*row)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise self._damaged(error) from error

    async def put(self, entry: Entry) -> Outcome:
        """Store a call; returns once it is committed, with the outcome that its key holds (the first one given).

        All that is put within one turn of the event loop is committed together. A caller who is cancelled while
        waiting does not take the entry back.
        """
        if self._read_only:
            raise LogError("the journal was opened for reading only", file=str(self.path))
        if self._broken is not None:
            raise self._broken
        key = entry.request.key()
        loop = asyncio.get_running_loop()
        if not self._pending:
            loop.call_soon(self._commit)
        if key not in self._pending:
            self._pending[key] = _Pending(entry.outcome, _columns(key, entry), [])
        written: asyncio.Future[Outcome] = loop.create_future()
        self._pending[key].waiting.append(written)
        return await written

    def _commit(self) -> None:
        """Write all pending entries in one transaction and tell those who wait for them."""
        pending, self._pending = self._pending, {}
        if not pending:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            held = {key: self._insert(key, new) for key, new in pending.items()}
            self._db.execute("COMMIT")
        except (sqlite3.Error, LogError) as error:
            self._fail(error, pending)
            return
        for key, new in pending.items():
            for written in new.waiting:
                if not written.done():
                    written.set_result(held[key])

    def _insert(self, key: str, new: _Pending) -> Outcome:
        """Write one row unless its key is there already; the outcome that the key holds."""
        if self._db.execute(_INSERT, new.columns).rowcount == 1:
            return new.outcome
        return self._stored(key) or new.outcome

    def submit(self, label: str, sent: Mapping[str, str]) -> None:
        """Write down, before a batch is created, which calls will be in it: by key, what is sent for each."""
        rows = [(key, label, body) for key, body in sent.items()]
        self._write("INSERT OR REPLACE INTO submitted (key, label, sent) VALUES (?, ?, ?)", rows)

    def name_batch(self, label: str, batch: str) -> None:
        """Write down the id that the server gave to a batch."""
        self._write("UPDATE submitted SET batch = ? WHERE label = ?", [(batch, label)])

    def withdraw(self, keys: Iterable[str]) -> None:
        """Forget that these calls were submitted: no answer came of it, nor will one."""
        self._write("DELETE FROM submitted WHERE key = ?", [(key,) for key in keys])

    def withdraw_batch(self, batch: str) -> None:
        """Likewise for all calls of a batch."""
        self._write("DELETE FROM submitted WHERE batch = ?", [(batch,)])

    def submitted(self, key: str) -> Submitted | None:
        """The batch that a call was last submitted to."""
        row = self._db.execute("SELECT label, batch, sent FROM submitted WHERE key = ?", (key,)).fetchone()
        return None if row is None else Submitted(*row)

    def outstanding(self) -> list[str]:
        """The batches that hold calls whose outcome is not stored."""
        return [batch for (batch,) in self._db.execute(_OUTSTANDING)]

    def _write(self, statement: str, rows: Sequence[tuple[str, ...]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._fail(error, {}) from error

    def _fail(self, error: Exception, pending: dict[str, _Pending]) -> RunStopped:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        remedy = "make room or mend the disk, see that no other process writes there, then resume the run"
        self._broken = RunStopped(f"the journal cannot be written: {error}", file=str(self.path), remedy=remedy)
        for new in pending.values():
            for written in new.waiting:
                if not written.done():
                    written.set_exception(self._broken)
        return self._broken

    def __iter__(self) -> Iterator[Row]:
        """All committed calls in the order in which they were written."""
        try:
            for key, call, repeat, task, request, sent, reply, error, latency in self._db.execute(_ROWS):
                asked = msgspec.json.decode(request, type=_Logical)
                whole = Request(task=task, call=call, repeat=repeat, **{f: getattr(asked, f) for f in _LOGICAL})
                yield Row(key=key, request=whole, outcome=_outcome(sent, reply, error), latency=latency)
        except (sqlite3.Error, msgspec.MsgspecError) as fault:
            raise self._damaged(fault) from fault

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM calls").fetchone()[0])

    def close(self) -> None:
        """Write what is pending and close the file. Raises :class:`RunStopped` where an outcome was lost."""
        self._commit()
        self._db.close()
        if self._broken is not None:
            raise self._broken
        self._broken = RunStopped("the journal is closed", file=str(self.path))

    def __enter__(self) -> CallStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.close()
        except RunStopped:
            if error is None:
                raise

    def _damaged(self, error: Exception) -> LogError:
        remedy = (
            "restore the file from a copy; a journal that was being written when its run ended needs its -wal file "
            "beside it and a folder that can be written"
        )
        return LogError(f"the journal of calls cannot be read: {error}", file=str(self.path), remedy=remedy)


_LOGICAL = _Logical.__struct_fields__


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Open the file. Any thread may use the connection, one at a time: a run may live in a worker thread."""
    uri = path.absolute().as_uri()
    if read_only:
        # Without a -wal nobody is writing, and immutable lets SQLite read where it may create no -shm beside the file.
        settled = not path.with_name(path.name + "-wal").exists()
        uri += "?mode=ro&immutable=1" if settled else "?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _columns(key: str, entry: Entry) -> tuple[Any, ...]:
    request, outcome = entry.request, entry.outcome
    logical = _Logical(request.model, request.messages, request.sampling, dict(request.slots), request.schema)
    sent, reply, error = "", None, None
    if isinstance(outcome, Completion):
        sent, reply = outcome.sent, _json(msgspec.structs.replace(outcome, sent=""))
    else:
        error = _json(outcome)
    return key, request.call, request.repeat, request.task, _json(logical), sent, reply, error, entry.latency


def _outcome(sent: str, reply: str | None, error: str | None) -> Outcome:
    if reply is None:
        return msgspec.json.decode(error or "", type=Failure)
    return msgspec.structs.replace(msgspec.json.decode(reply, type=Completion), sent=sent)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
