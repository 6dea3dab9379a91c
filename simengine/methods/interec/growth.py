"""How large a query may become inside SQLite, which puts inner queries and aliases in the place of their names.

A short text can stand for a huge one: where each query of a chain uses the one before thirty times, five of them make
millions of terms, before anything runs that a limit of work could stop. So that is reckoned from the text, beforehand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from simengine.methods.interec.lexer import COMPARISONS, Token

_RESERVED_TEXT = (
    "ALL AND AS BETWEEN CASE COLLATE DISTINCT ELSE ESCAPE EXCEPT EXISTS FROM GROUP HAVING IN INTERSECT IS ISNULL JOIN "
    "LIMIT NOT NOTNULL NULL ON OR ORDER SELECT THEN UNION USING VALUES WHEN WHERE"
)
_RESERVED = frozenset(_RESERVED_TEXT.split())  # what SQLite never takes for a name; many other words it does
_OPERATORS = ("LIKE", "GLOB")  # words that are operators behind a value, and names elsewhere
_END = Token("sign", "")


def growth(tokens: Sequence[Token]) -> int:
    """A bound for how many terms a query has when all names are replaced by what they stand for.

    A query in brackets, its branches of a ``UNION`` included, multiplies what is put into it at most by how often it
    uses a name, and once more by how often it uses another, since one may be an alias of its own.
    """
    blocks = _blocks(tokens)
    uses = (Counter(names).most_common(2) for names, _ in blocks)
    factors = prod(count for found in uses for _, count in found)
    return factors * max([size for _, size in blocks[1:]], default=1)


def _blocks(tokens: Sequence[Token]) -> list[tuple[list[str], int]]:
    """Of each query, the outermost first: the names that stand in it itself, and of how many tokens it is made."""
    names: list[list[str]] = [[]]
    sizes = [0]
    inside = [0]  # the query of each bracket that is open
    for (token, after), name in zip(pairwise([*tokens, _END]), _names(tokens), strict=True):
        if token.says("("):
            if after.says("SELECT", "WITH", "VALUES"):
                names.append([])
                sizes.append(0)
                inside.append(len(names) - 1)
            else:
                inside.append(inside[-1])
        elif token.says(")") and len(inside) > 1:
            inside.pop()
        sizes[inside[-1]] += 1
        if name:
            names[inside[-1]].append(name)
    return list(zip(names, sizes, strict=True))


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    """What each token names, in lower case: a column, an alias, a table, or with a star all columns; else nothing."""
    behind_value = False
    for token, after in pairwise([*tokens, _END]):
        operator = token.says(*_RESERVED) or (behind_value and token.says(*_OPERATORS))
        star = token.says("*") and not behind_value
        named = token.named and not operator and not after.says("(", ".")
        yield token.value.lower() if named or star else ""
        behind_value = not operator and not token.says("(", ",", ".", "+", "-", "*", "/", "%", "||", *COMPARISONS)
