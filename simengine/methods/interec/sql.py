"""The fence round a model's SQL: one reading statement over the items or the current candidates, within limits.

SQLite runs it on a copy of the item table in memory, with an authoriser that permits ``SELECT``, reads of the two
tables and the functions in ``FUNCTIONS``, and nothing else: no other table, no recursion, no pragma, no attaching, no
clock and no randomness. So an answer is a function of the query, the table and the candidates.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice

import msgspec

from simengine.methods.interec.columns import Value
from simengine.methods.interec.faults import Code, Fault, quoted
from simengine.methods.interec.grounding import TABLES, Names, Values, renamed, unquoted
from simengine.methods.interec.growth import growth
from simengine.methods.interec.lexer import Token, cut, joined, ordered
from simengine.methods.interec.table import ItemTable

_FUNCTIONS_TEXT = (
    "abs avg coalesce count glob group_concat ifnull iif instr length like lower ltrim max min nullif round rtrim "
    "substr substring sum total trim upper"
)
FUNCTIONS = frozenset(_FUNCTIONS_TEXT.split())
"""The functions that a query may use."""

_CURRENT = "current"  # the table of the candidates' ids, behind the view that is called ``candidates``
_CHECK_EVERY = 50  # instructions of SQLite's virtual machine, one of which can take milliseconds
_LIMITS = {
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_COLUMN: 64,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 16,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 300,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_DENIED: dict[int, tuple[Code, str]] = {
    sqlite3.SQLITE_READ: ("forbidden_table", "only the tables items and candidates can be read, not {0}"),
    sqlite3.SQLITE_FUNCTION: ("forbidden_function", "there is no function {1} here; there are {functions}"),
    sqlite3.SQLITE_RECURSIVE: ("recursion", "a query may not refer to itself"),
}
# SQLite announces a table-valued function (``pragma_table_info``, ``json_each``) as an update of its own schema
_VALUED: tuple[Code, str] = ("forbidden_table", "only the tables items and candidates can be read, and no functions")
_CHANGES: tuple[Code, str] = ("forbidden_statement", "a query can only read: write one SELECT")
_NO_SUCH = re.compile(r"no such (column|table|function): (.*)", re.DOTALL)
_TOO_LARGE = re.compile(r"too (?:big|large|many|complex)|exceeds|maximum depth|parser stack", re.IGNORECASE)


class Limits(msgspec.Struct, frozen=True):
    """What a query may cost.

    Instructions of SQLite's virtual machine, ``work`` and ``work_per_item`` for each item of the table, which come to
    the same on every machine; ``seconds`` for what is slow within so few instructions; ``terms`` that it may come to
    when inner queries are put into outer ones. ``text`` is how many bytes a value or a row may have beyond the longest
    row of the table, and an answer beyond the whole table.
    """

    work: int = 100_000
    work_per_item: int = 60
    seconds: float = 2.0
    terms: int = 300_000
    text: int = 5_000


class Answer(msgspec.Struct, frozen=True):
    """The rows that a query gave.

    ``more`` is true where there are more than were asked for, ``ordered`` where the query says their order. ``sql`` is
    the query as it ran, ``missing`` what it names and the table does not hold.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    more: bool
    ordered: bool
    sql: str
    missing: tuple[str, ...] = ()


class Fence:
    """Asks the item table. It keeps nothing between queries; one serves any number of conversations, in one thread."""

    def __init__(
        self, table: ItemTable, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._table = table
        self._limits = limits or Limits()
        self._clock = clock
        self._names = Names(table)
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        self._connection.deserialize(table.image)
        self._connection.execute("PRAGMA temp_store = FILE")  # what is sorted may be far larger than the table
        self._connection.execute(f"CREATE TEMP TABLE {_CURRENT} (id INTEGER PRIMARY KEY)")
        for limit, value in _LIMITS.items():
            self._connection.setlimit(limit, value)
        self._widest = table.longest + self._limits.text
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._widest)
        self._denied: tuple[Code, str] | None = None
        self._stopped: Code | None = None

    def image(self) -> bytes:
        """The database as it is now; it is always that of the table."""
        return self._connection.serialize()

    def close(self) -> None:
        """Let the copy of the table go."""
        self._connection.close()

    def ask(self, sql: str, candidates: Sequence[int] | None = None, *, rows: int) -> Answer:
        """At most so many rows of what ``sql`` gives, while ``candidates`` (dense ids; all where none) are current.

        Raises :class:`Fault` with a code of the text, of the work, or ``not_found`` where it asks for a column or a
        table that is not there, or for nothing but values that are not.
        """
        tokens = unquoted(cut(sql))
        if not tokens[0].says("SELECT", "WITH"):
            raise Fault(*_CHANGES)
        if any(token.kind == "reference" for token in tokens):
            raise Fault("unknown_reference", "a query refers to a step, and there is none before it")
        self._fill(candidates)
        try:
            self._shut()
            values = Values(self._table, self._compiled(tokens))
            final = values.grounded()
            columns, found = self._run(self._bounded(final), rows + 1)
        finally:
            self._open()
        if values.missing and not any(value is not None and value != 0 for row in found for value in row):
            raise Fault("not_found", f"there is no {', no '.join(values.missing)}")
        return Answer(columns, found[:rows], len(found) > rows, ordered(final), joined(final), tuple(values.missing))

    def _fill(self, candidates: Sequence[int] | None) -> None:
        """Let the view show these candidates."""
        chosen = "" if candidates is None else f" WHERE id IN (SELECT id FROM {_CURRENT})"
        self._connection.execute("DROP VIEW IF EXISTS temp.candidates")
        self._connection.execute(f"CREATE TEMP VIEW candidates AS SELECT * FROM main.items{chosen}")
        self._connection.execute(f"DELETE FROM {_CURRENT}")
        self._connection.executemany(f"INSERT INTO {_CURRENT} VALUES (?)", ((it,) for it in candidates or ()))

    def _shut(self) -> None:
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.set_authorizer(self._authorise)

    def _open(self) -> None:
        self._connection.set_progress_handler(None, 0)
        self._connection.set_authorizer(None)
        self._connection.execute("PRAGMA query_only = OFF")

    def _authorise(self, action: int, first: str | None, second: str | None, base: str | None, by: str | None) -> int:
        """Permit what is listed above; of what is not, keep the first for the fault."""
        readable = first in TABLES or (first == _CURRENT and by == "candidates")
        # the rows of an inner query as they are counted: no column, no database, and by no name of SQLite's own
        inner = not base and not second and not (first or "").lower().startswith("sqlite_")
        permitted = (
            action == sqlite3.SQLITE_SELECT
            or (action == sqlite3.SQLITE_READ and (readable or inner))
            or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FUNCTIONS)
        )
        if permitted:
            return sqlite3.SQLITE_OK
        valued = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
        code, detail = _VALUED if valued else _DENIED.get(action, _CHANGES)
        named = detail.format(quoted(first or ""), quoted(second or ""), functions=", ".join(sorted(FUNCTIONS)))
        self._denied = self._denied or (code, named)
        return sqlite3.SQLITE_DENY

    def _compiled(self, tokens: list[Token]) -> list[Token]:
        """The tokens with unknown names of columns and tables grounded, until SQLite can compile them."""
        for _ in range(len(tokens)):
            try:
                self._execute(f"EXPLAIN {self._bounded(tokens)}")
                return tokens
            except sqlite3.Error as error:
                tokens = self._repaired(tokens, error)
        raise Fault("bad_sql", "the names of the query cannot be settled")

    def _bounded(self, tokens: Sequence[Token]) -> str:
        """The query that the tokens make, if SQLite can be trusted to compile it in bounded time and space."""
        if growth(tokens) > self._limits.terms:
            raise Fault("too_large", "the query uses its inner queries too often; write it with fewer of them")
        return joined(tokens)

    def _repaired(self, tokens: list[Token], error: sqlite3.Error) -> list[Token]:
        unknown = _NO_SUCH.match(str(error))
        if self._denied or not unknown or unknown[1] == "function":
            raise self._fault(error) from None
        name = unknown[2].split(".")[-1]
        meant = self._names.column(name) if unknown[1] == "column" else self._names.table(name)
        if meant is None or meant == name.lower():
            known = self._names.columns if unknown[1] == "column" else TABLES
            raise Fault("not_found", f"there is no {unknown[1]} {quoted(unknown[2])}; there are {', '.join(known)}")
        return renamed(tokens, name, meant)

    def _run(self, sql: str, rows: int) -> tuple[tuple[str, ...], tuple[tuple[Value, ...], ...]]:
        started, passed = self._clock(), 0
        most = self._limits.work + self._limits.work_per_item * len(self._table)

        def check() -> bool:
            nonlocal passed
            passed += _CHECK_EVERY
            late = self._clock() - started > self._limits.seconds
            self._stopped = "too_much_work" if passed > most else "too_slow" if late else None
            return self._stopped is not None

        self._connection.set_progress_handler(check, _CHECK_EVERY)
        try:
            with closing(self._execute(sql)) as cursor:
                columns = tuple(described[0] for described in cursor.description or ())
                return columns, self._fetched(cursor, rows)
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def _fetched(self, cursor: sqlite3.Cursor, rows: int) -> tuple[tuple[Value, ...], ...]:
        """The first rows, none of them wider than one can be inside SQLite, and all no larger than the table."""
        found: list[tuple[Value, ...]] = []
        room = len(self._table.image) + self._limits.text
        for row in islice(cursor, rows):
            found.append(tuple(map(_plain, row)))
            width = sum(len(value) for value in found[-1] if isinstance(value, str))
            room -= width
            if width > self._widest or room < 0:
                raise Fault("too_large", "the query gives too much text; ask for fewer columns")
        return tuple(found)

    def _execute(self, sql: str) -> sqlite3.Cursor:
        self._denied = self._stopped = None
        return self._connection.execute(sql)

    def _fault(self, error: sqlite3.Error) -> Fault:
        """What a failure of SQLite means."""
        if self._denied:
            return Fault(*self._denied)
        if self._stopped:
            return Fault(self._stopped, "the query takes too long; ask for less, and join no table with itself")
        unknown = _NO_SUCH.match(str(error))
        if unknown and unknown[1] == "function":
            code, detail = _DENIED[sqlite3.SQLITE_FUNCTION]
            return Fault(code, detail.format("", quoted(unknown[2]), functions=", ".join(sorted(FUNCTIONS))))
        return Fault("too_large" if _TOO_LARGE.search(str(error)) else "bad_sql", f"SQLite says: {quoted(str(error))}")


def _plain(value: object) -> Value:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    assert value is None or isinstance(value, int | float | str)
    return value
