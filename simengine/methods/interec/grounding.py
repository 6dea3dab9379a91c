"""Puts the names and values of a query on firm ground: what the item table calls them, where likeness settles it.

A value is looked at where a column of titles, tags or names is compared with texts: by ``=``, ``<>``, ``LIKE`` or
``IN``, the column bare or under ``lower`` or ``upper``. What would match something as it stands is left as it stands.
Else a tag is asked for as a whole between its bars, and a title or a name is replaced by the one that is meant. What
is like nothing stays as written, so that it matches nothing, and is named among the ``missing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simengine.methods.interec.columns import BAR, COLUMNS
from simengine.methods.interec.faults import Fault, quoted
from simengine.methods.interec.lexer import COMPARISONS, Token
from simengine.methods.interec.table import ItemTable
from simengine.methods.interec.vocabulary import Found, Vocabulary

TABLES = ("items", "candidates")
SOUGHT = 30
"""Titles and names that a query may ask for in other words than the table's; each is held against all of them."""

_EQUAL = frozenset({"=", "=="})
_UNEQUAL = frozenset({"<>", "!="})
_CASES = ("LOWER", "UPPER")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}  # LIKE knows no other capitals
_OPEN, _CLOSE, _COMMA = (Token("sign", it) for it in "(),")
_LIKE, _NOT, _OR = (Token("name", it) for it in ("LIKE", "NOT", "OR"))


class Names:
    """The names of the columns and tables that a query can mean."""

    def __init__(self, table: ItemTable) -> None:
        named = [(name, it.name) for it in table.columns for name in (it.name, *it.other_names)]
        self.columns = tuple(it.name for it in table.columns)
        self._columns = Vocabulary(name for name, _ in named)
        self._of = [column for _, column in named]
        self._tables = Vocabulary(TABLES)

    def column(self, name: str) -> str | None:
        """The column that a name means, if it means one."""
        meant = {self._of[at] for at in self._columns.find(name).named}
        return meant.pop() if len(meant) == 1 else None

    def table(self, name: str) -> str | None:
        """The table that a name means, if it means one."""
        at = self._tables.find(name).at
        return None if at is None else TABLES[at]


def unquoted(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with texts that stand between double quotes told from names.

    Behind a comparison, ``LIKE`` or ``IN (`` it is a text, unless a column is called just so or a dot follows.
    """
    names = {column.name for column in COLUMNS}
    made: list[Token] = []
    for at, token in enumerate(tokens):
        dotted = at + 1 < len(tokens) and tokens[at + 1].says(".")
        text = token.kind == "quoted" and token.value.lower() not in names and not dotted and _awaits_value(made)
        made.append(Token("string", token.value) if text else token)
    return made


def renamed(tokens: Iterable[Token], old: str, new: str) -> list[Token]:
    """The tokens with one name in place of another, whatever its case."""
    return [Token("name", new) if it.named and it.value.lower() == old.lower() else it for it in tokens]


class _Operand(NamedTuple):
    start: int
    column: str
    tokens: tuple[Token, ...]


class Values:
    """Grounds the values of one query; ``missing`` are those that nothing is like, as ``tags 'Roguelyke'``.

    Raises :class:`Fault` (``too_large``) where more than ``SOUGHT`` have to be sought by likeness.
    """

    def __init__(self, table: ItemTable, tokens: Sequence[Token]) -> None:
        self._table = table
        self._tokens = tokens
        self._out: list[Token] = []
        self._sought = 0
        self._lowered: dict[str, list[str]] = {}
        self.missing: list[str] = []

    def grounded(self) -> list[Token]:
        """The tokens of the grounded query."""
        at = 0
        while at < len(self._tokens):
            at = self._comparison(at) or self._taken(at)
        return self._out

    def _taken(self, at: int) -> int:
        self._out.append(self._tokens[at])
        return at + 1

    def _comparison(self, at: int) -> int:
        """Take the comparison whose operator stands at ``at``; the place behind it, 0 where there is none to take."""
        operand = _operand(self._out, self._table)
        if operand is None:
            return 0
        negated = self._tokens[at].says("NOT")
        operator = self._says(at + negated)
        end, texts = self._texts(at + negated + 1, listed=operator == "IN")
        fits = operator in ("LIKE", "IN") or (not negated and operator in _EQUAL | _UNEQUAL)
        if not fits or not texts or self._says(end) in ("||", "ESCAPE"):
            return 0
        del self._out[operand.start :]
        exclude = negated or operator in _UNEQUAL
        if self._table.kind(operand.column) == "tags":
            self._out += self._tags(operand, texts, operator == "LIKE", exclude)
        elif operator == "IN":
            found = [self._text(operand.column, it, exclude) for it in texts]
            self._out += [*operand.tokens, *[_NOT] * negated, Token("name", "IN"), *_listed(found)]
        else:
            find = self._pattern if operator == "LIKE" else self._text
            found_one = find(operand.column, texts[0], exclude)
            self._out += [*operand.tokens, *self._tokens[at : at + negated + 1], Token("string", found_one)]
        return end

    def _says(self, at: int) -> str:
        token = self._tokens[at] if at < len(self._tokens) else None
        return token.value.upper() if token and token.kind in ("name", "sign") else ""

    def _texts(self, at: int, listed: bool) -> tuple[int, list[str]]:
        """The text at ``at``, or those in brackets there, and the place behind; none where something else stands."""
        if not listed:
            single = at < len(self._tokens) and self._tokens[at].kind == "string"
            return (at + 1, [self._tokens[at].value]) if single else (at, [])
        texts: list[str] = []
        while at + 1 < len(self._tokens) and self._says(at) == (",") * bool(texts) + "(" * (not texts):
            if self._tokens[at + 1].kind != "string":
                return at, []
            texts.append(self._tokens[at + 1].value)
            at += 2
        return (at + 1, texts) if self._says(at) == ")" else (at, [])

    def _tags(self, operand: _Operand, texts: Sequence[str], pattern: bool, exclude: bool) -> list[Token]:
        """``(tags LIKE '%|One|%' OR tags LIKE '%|Other|%')`` in place of a comparison with tags."""
        made: list[Token] = []
        for text in texts:
            like = Token("string", self._tag(operand.column, text, pattern, exclude))
            made += [_OR] * bool(made) + [*operand.tokens, _LIKE, like]
        return [*[_NOT] * exclude, _OPEN, *made, _CLOSE]

    def _tag(self, column: str, text: str, pattern: bool, exclude: bool) -> str:
        bare = text.strip(f"%{BAR} ") if pattern else text.strip(f"{BAR} ")
        if not bare or (pattern and "%" in bare):
            return text
        words = self._table.words[column]
        found = self._table.vocabularies[column].find(bare)
        if found.at is not None and (not pattern or _lower(words[found.at]) == _lower(bare)):
            return _whole(words[found.at])
        if pattern and any(_lower(bare) in _lower(word) for word in words):
            return f"%{bare}%"
        if found.at is not None:
            return _whole(words[found.at])
        self._miss(column, bare, exclude)
        return _whole(bare)

    def _text(self, column: str, text: str, exclude: bool) -> str:
        """The title or name that ``text`` means."""
        known = self._known(column)
        if text in known:
            return text
        self._sought += 1
        if self._sought > SOUGHT:
            raise Fault("too_large", f"the query names more than {SOUGHT} values that are called otherwise here")
        found = self._find(column, text)
        meant = dict.fromkeys(known[at] for at in found.named)
        if len(meant) == 1:
            return next(iter(meant))
        self._miss(column, text, exclude, ambiguous=len(meant) > 1)
        return text

    def _pattern(self, column: str, text: str, exclude: bool) -> str:
        """The pattern itself where it matches something or is none of the simple ones, else what it means."""
        bare = text.strip("%")
        if not bare or "%" in bare or "_" in bare:
            return text
        asked, first, last = _lower(bare), text.startswith("%"), text.endswith("%")
        if column not in self._lowered:
            self._lowered[column] = list(map(_lower, self._known(column)))
        for known in self._lowered[column]:
            if known == asked or (asked in known and first and last):
                return text
            if (first and known.endswith(asked)) or (last and known.startswith(asked)):
                return text
        meant = self._text(column, bare.strip(), exclude)
        return text if meant == bare.strip() else meant

    def _known(self, column: str) -> Sequence[str]:
        return self._table.titles if column == "title" else self._table.words[column]

    def _find(self, column: str, text: str) -> Found:
        return self._table.by_title.find(text) if column == "title" else self._table.vocabularies[column].find(text)

    def _miss(self, column: str, text: str, exclude: bool, ambiguous: bool = False) -> None:
        if not exclude:  # what is not there is excluded already
            self.missing.append(f"{column} {quoted(text)}" + " (may mean several)" * ambiguous)


def _operand(out: Sequence[Token], table: ItemTable) -> _Operand | None:
    """The column that stands at the end of ``out``, if its values can be grounded."""
    if len(out) >= 4 and out[-1].says(")"):
        inner = _operand(out[:-1], table)
        start = inner.start - 2 if inner else -1
        cased = inner and start >= 0 and out[start + 1].says("(") and out[start].says(*_CASES)
        return inner._replace(start=start) if inner and cased else None
    if not out or not out[-1].named or table.kind(out[-1].value) not in ("title", "tags", "text"):
        return None
    start = len(out) - 1
    if start >= 2 and out[start - 1].says(".") and out[start - 2].named:
        start -= 2
    return _Operand(start, out[-1].value.lower(), tuple(out[start:]))


def _awaits_value(before: Sequence[Token]) -> bool:
    if not before:
        return False
    if before[-1].says("LIKE", "GLOB", *COMPARISONS):
        return True
    at = len(before) - 1
    while at > 0 and before[at].says(",") and before[at - 1].kind in ("string", "number"):
        at -= 2
    return at > 0 and before[at].says("(") and before[at - 1].says("IN")


def _listed(texts: Sequence[str]) -> list[Token]:
    made = [token for text in texts for token in (_COMMA, Token("string", text))]
    return [_OPEN, *made[1:], _CLOSE]


def _whole(tag: str) -> str:
    return f"%{BAR}{tag}{BAR}%"


def _lower(text: str) -> str:
    return text.translate(_LOWER)
