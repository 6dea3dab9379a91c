"""Cuts the text of a query into tokens, so that what reaches SQLite is put together from tokens and nothing else.

Comments, several statements and characters that a query has no use for end here. A reference to an earlier step,
``$2.release_date``, is a token of its own, bare or alone between quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, cast

from simengine.methods.interec.columns import Value
from simengine.methods.interec.faults import Fault, quoted

TokenKind: TypeAlias = Literal["name", "quoted", "string", "number", "reference", "sign"]

LONGEST = 2000
"""Characters that a query may have."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
REFERENCE = re.compile(r"\$(\d{1,6})\.([A-Za-z_]\w*)", re.ASCII)
COMPARISONS = frozenset({"=", "==", "<>", "!=", "<", ">", "<=", ">="})

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
    | (?P<comment>--|/\*)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]`]*\])
    | (?P<reference>\$\d{1,6}\.[A-Za-z_]\w*)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    | (?P<name>[A-Za-z_]\w*)
    | (?P<sign><=|>=|<>|!=|==|\|\||[-+*/%<>=(),.;])
    """,
    re.VERBOSE | re.ASCII,
)


class Token(NamedTuple):
    """A token and what it says: a name or a number as written, a text in quotes without them."""

    kind: TokenKind
    value: str

    @property
    def sql(self) -> str:
        """The token as it is written for SQLite."""
        if self.kind == "string":
            return "'" + self.value.replace("'", "''") + "'"
        if self.kind == "quoted":  # SQLite takes unknown names between double quotes for texts, but not between these
            return "`" + self.value.replace("`", "``") + "`"
        return self.value

    def says(self, *words: str) -> bool:
        """True for a bare word or a sign that is one of these, in capitals."""
        return self.kind in ("name", "sign") and self.value.upper() in words

    @property
    def named(self) -> bool:
        """True for a name, quoted or not."""
        return self.kind in ("name", "quoted")


def cut(sql: str) -> list[Token]:
    """The tokens of one statement, without a semicolon behind it.

    Raises :class:`Fault`: ``too_long``, ``empty``, ``comment``, ``several_statements``, ``bad_sql`` for a character or
    a number that no query needs, or a quote that is not closed.
    """
    if len(sql) > LONGEST:
        raise Fault("too_long", f"the query has {len(sql)} characters, of {LONGEST}")
    tokens: list[Token] = []
    at = 0
    while at < len(sql):
        found = _TOKEN.match(sql, at)
        if found is None:
            raise Fault("bad_sql", f"the query cannot be read from {quoted(sql[at:], 20)} on")
        if found.lastgroup == "comment":
            raise Fault("comment", "the query holds a comment; write it without")
        if found.lastgroup != "blank":
            tokens.append(_token(found))
        at = found.end()
    while tokens and tokens[-1].says(";"):
        tokens.pop()
    if not tokens:
        raise Fault("empty", "there is no query")
    if any(token.says(";") for token in tokens):
        raise Fault("several_statements", "the query holds several statements; write one")
    return tokens


def joined(tokens: Sequence[Token]) -> str:
    """The query that the tokens make."""
    return " ".join(token.sql for token in tokens)


def references(sql: str) -> list[tuple[int, str]]:
    """The steps and columns that a query refers to, in order. Raises like :func:`cut`."""
    named = (REFERENCE.fullmatch(token.value) for token in cut(sql) if token.kind == "reference")
    return [(int(it[1]), it[2]) for it in named if it]


def filled(sql: str, values: Callable[[int, str], Sequence[Value]]) -> str:
    """The query with each reference replaced by the values that it stands for, as literals.

    One value stands alone; several stand in brackets, or between brackets where the reference has its own already.
    """
    tokens: list[Token] = []
    for token in cut(sql):
        match = REFERENCE.fullmatch(token.value) if token.kind == "reference" else None
        tokens += _literals(values(int(match[1]), match[2]), tokens) if match else [token]
    return joined(tokens)


def ordered(tokens: Sequence[Token]) -> bool:
    """True where the outermost query says in which order its rows come."""
    depth = 0
    for token, after in pairwise(tokens):
        depth += token.says("(") - token.says(")")
        if depth == 0 and token.says("ORDER") and after.says("BY"):
            return True
    return False


def _token(found: re.Match[str]) -> Token:
    kind, text = cast(TokenKind, found.lastgroup), found[0]
    if kind in ("string", "quoted"):
        end = "]" if text[0] == "[" else text[0]
        value = text[1:-1] if end == "]" else text[1:-1].replace(end * 2, end)
        if _NO_TEXT.search(value):
            raise Fault("bad_sql", "the query holds a character that no text can hold")
        return Token("reference" if REFERENCE.fullmatch(value) else kind, value)
    return Token(kind, text)


def _literals(values: Sequence[Value], before: Sequence[Token]) -> list[Token]:
    made: list[Token] = []
    for value in values:
        made += [Token("sign", ",")] * bool(made) + [_literal(value)]
    in_brackets = bool(before) and before[-1].says("(", ",")
    return made if len(values) == 1 or in_brackets else [Token("sign", "("), *made, Token("sign", ")")]


def _literal(value: Value) -> Token:
    if value is None:
        return Token("name", "NULL")
    return Token("string", value) if isinstance(value, str) else Token("number", repr(value))
