"""What the tools give back: plain values, each of which says in a few words what it is."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from simengine.llm.tokens import CHARACTERS
from simengine.methods.interec.columns import Value

By: TypeAlias = Literal["popularity", "similarity", "preference"]
"""What a ranking can go by."""

TOKENS = 512
"""How many tokens a look-up's answer may take, by the rule of four characters a token."""

_SHORTEST_CELL = 40  # characters of a value that are always shown


class Named(msgspec.Struct, frozen=True, omit_defaults=True):
    """What titles came to: dense ids in the order of the titles, each once, and the titles that named no one item."""

    ids: tuple[int, ...] = ()
    unmatched: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [("not found", self.unmatched), ("may mean several items", self.ambiguous)]
        return "; ".join(f"{what}: {', '.join(map(repr, titles))}" for what, titles in parts if titles)


class Rows(msgspec.Struct, frozen=True, tag="rows", omit_defaults=True):
    """The answer to a look-up. ``more``: further rows were left out; ``missing``: what the table does not hold."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    more: bool = False
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        room = int(TOKENS * CHARACTERS)
        cell = max(_SHORTEST_CELL, room // (2 * max(len(self.columns), 1)))
        shown: list[str] = []
        for row in self.rows:
            line = ", ".join(f"{name}: {_cut(value, cell)}" for name, value in zip(self.columns, row, strict=True))
            room -= len(line) + 1
            if room < 0:
                break
            shown.append(line)
        left = "more rows are not shown" if self.more or len(shown) < len(self.rows) else ""
        missing = f"not found: {', '.join(self.missing)}" if self.missing else ""
        return "\n".join(filter(None, (*shown, left, missing))) or "no rows"


class Narrowed(msgspec.Struct, frozen=True, tag="narrowed", omit_defaults=True):
    """What a filter kept. ``cut`` says which of too many were kept: the ``first``, or a ``sample``.

    ``outside`` counts ids that a query gave and that are no candidates.
    """

    kept: int
    cut: Literal["", "first", "sample"] = ""
    outside: int = 0
    missing: tuple[str, ...] = ()
    seeds: Named = Named()

    def __str__(self) -> str:
        parts = [f"{self.kept} candidates are left"]
        if self.cut:
            parts.append("the first of an order" if self.cut == "first" else "a sample of more")
        if self.outside:
            parts.append(f"{self.outside} that were no candidates are left out")
        if self.missing:
            parts.append(f"not found: {', '.join(self.missing)}")
        return "; ".join(filter(None, (*parts, str(self.seeds))))


class Ranked(msgspec.Struct, frozen=True, tag="ranked", omit_defaults=True):
    """By what candidates were ranked; ``instead_of`` names what was asked for where that could not be done."""

    by: By
    kept: int
    instead_of: By | Literal[""] = ""
    liked: Named = Named()
    unwanted: Named = Named()

    def __str__(self) -> str:
        lacking = {"similarity": "no soft filter has come before", "preference": "no liked item can be scored"}
        head = f"{self.kept} candidates, ranked by {self.by}"
        instead = f"not by {self.instead_of}, since {lacking[self.instead_of]}" if self.instead_of else ""
        return "; ".join(filter(None, (head, instead, str(self.liked), str(self.unwanted))))


class Stored(msgspec.Struct, frozen=True, tag="stored", omit_defaults=True):
    """What was stored as candidates."""

    named: Named

    def __str__(self) -> str:
        return "; ".join(filter(None, (f"{len(self.named.ids)} candidates are stored", str(self.named))))


class Shown(msgspec.Struct, frozen=True):
    """One item of the answer: its dense id, its id in the data set, its title."""

    id: int
    item: str
    title: str


class Fetched(msgspec.Struct, frozen=True, tag="fetched", omit_defaults=True):
    """The best candidates, in order, of how many there were; ``by`` is what the order goes by."""

    items: tuple[Shown, ...]
    candidates: int
    by: str

    def __str__(self) -> str:
        titles = "\n".join(f"{place}. {it.title}" for place, it in enumerate(self.items, 1))
        return f"the first {len(self.items)} of {self.candidates} candidates, by {self.by}:\n{titles}"


Result: TypeAlias = Rows | Narrowed | Ranked | Stored | Fetched


def _cut(value: Value, longest: int) -> str:
    text = "unknown" if value is None else str(value)
    return text if len(text) <= longest else text[: longest - 3] + "..."
