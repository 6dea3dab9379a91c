"""The item table of a source: one row for each item that is wanted, whatever its metadata are like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from simengine.data.sources.lines import Lines, Reading, Watch
from simengine.errors import InputError

_TELL_EVERY = 8_192  # rows
_SHOWN = 3  # ids, where two tables do not join


@dataclass(frozen=True, eq=False)
class Found:
    """The items that are wanted, and all that occur in the logs, with the domain of each."""

    domains: Mapping[str, str]
    every: Mapping[str, str]

    def domain(self, item: str) -> str:
        """The item's domain; empty where none is told."""
        return self.domains.get(item, "")


@dataclass(eq=False)
class Catalogue:
    """Rows of texts by column. Of a catalogue that is not ``whole`` only the items that occur in the logs are wanted.

    ``seen`` are the first ids that were met, ``joined`` says whether any that was met occurs, ``said`` are notes.
    """

    columns: Sequence[str]
    found: Found
    whole: bool = False
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    repeated: int = 0
    unread_prices: int = 0
    without_id: int = 0
    seen: list[str] = field(default_factory=list)
    joined: bool = False
    said: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def wants(self, item: str) -> bool:
        """Whether an item is to be added; one that is there already is counted."""
        if not item:
            self.without_id += 1
            return False
        if len(self.seen) < _SHOWN:
            self.seen.append(item)
        self.joined = self.joined or item in self.found.every
        if item in self.rows:
            self.repeated += 1
            return False
        return self.whole or item in self.found.domains

    def add(self, item: str, row: tuple[tuple[str, ...], bool]) -> None:
        """Take in an item that is wanted, with its texts, and whether its price could be read."""
        self.rows[item], read = row
        self.unread_prices += not read

    def tell(self, watch: Watch, lines: Lines, number: int) -> None:
        """Say now and then how far reading is."""
        if number % _TELL_EVERY == 0:
            watch(Reading(lines.file, lines.done, lines.total, number))

    def no_overlap(self, path: Path, domain: str = "") -> InputError:
        """The error where a table has none of the items that occur: the two have different keys."""
        occur = (item for item, of in self.found.every.items() if not domain or of == domain)
        here, there = (", ".join(map(repr, islice(keys, _SHOWN))) for keys in (occur, self.seen))
        return InputError(
            f"none of the items of the reviews is in this table: the reviews have {here}, the table {there or 'none'}",
            remedy="Give the table that belongs to the reviews, with the same ids.",
            file=str(path),
        )

    def completed(self) -> Sequence[Sequence[str]]:
        """The columns, in order, with a row of nothing but id and domain for each item that occurs and has none."""
        rows = dict(self.rows)
        for item, domain in self.found.domains.items():
            if item not in rows:
                rows[item] = tuple({"item_id": item, "domain": domain}.get(name, "") for name in self.columns)
        return list(zip(*rows.values(), strict=True))

    def notes(self) -> Iterator[str]:
        """What was odd."""
        yield from self.said
        missing = sum(item not in self.rows for item in self.found.domains)
        for count, what in (
            (missing, "items that occur are not in the item table; they have no title"),
            (self.repeated, "rows of the item table repeat an item; the first of each counts"),
            (self.without_id, "rows of the item table have no id, and are left out"),
            (self.unread_prices, "prices cannot be read, and are left empty"),
        ):
            if count:
                yield f"{count} {what}"
