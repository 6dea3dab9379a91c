"""The candidate bus and the tracker of one turn: which items are still in the running, and what each tool did to them.

Both are made of immutable plain values. A bus belongs to one turn of one conversation and shares nothing with others.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from simengine.methods.interec.faults import Code, Fault
from simengine.methods.interec.results import Result

Order: TypeAlias = Literal["", "query", "similarity", "popularity", "preference"]
"""By what candidates are ordered: not at all, by a query's own order, or by scores."""

_LONGEST_INPUT = 2_500  # characters of a tool's input that the tracker keeps


class Candidates(msgspec.Struct, frozen=True):
    """The items in the running, by dense ids from 1; ``None`` stands for all.

    ``order`` says by what they are ordered. ``similarity`` holds, for each, its similarity to the seeds of the last
    soft filter; it is empty where there was none.
    """

    ids: tuple[int, ...] | None = None
    order: Order = ""
    similarity: tuple[float, ...] = ()

    def among(self, size: int) -> tuple[int, ...]:
        """The ids, of a catalogue of so many items."""
        return tuple(range(1, size + 1)) if self.ids is None else self.ids

    def count(self, size: int) -> int:
        """How many there are, of a catalogue of so many items."""
        return size if self.ids is None else len(self.ids)

    def narrowed(self, ids: tuple[int, ...], order: Order) -> Candidates:
        """These of the candidates, in this order; their similarities go with them."""
        if not self.similarity:
            return Candidates(ids, order)
        similar = dict(zip(self.ids or (), self.similarity, strict=True))
        return Candidates(ids, order, tuple(similar[it] for it in ids))


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One use of a tool, or one plan that was refused (``tool`` is ``plan``).

    ``step`` counts from 1 within its plan, 0 for a plan as a whole. ``input`` is JSON, ``output`` says in a few words
    what came out. ``before`` and ``after`` count the candidates. ``code`` is empty where it went well; then ``result``
    is what the tool gave.
    """

    step: int
    tool: str
    input: str
    output: str
    before: int
    after: int
    code: Code | Literal[""] = ""
    result: Result | None = None

    @property
    def ok(self) -> bool:
        """True where the tool did what it was asked for."""
        return not self.code


class Snapshot(msgspec.Struct, frozen=True):
    """A bus at one moment, as plain data."""

    candidates: Candidates = Candidates()
    records: tuple[Record, ...] = ()


class Bus:
    """The candidates, from all of a catalogue of ``size`` items on, and the tracker."""

    def __init__(self, size: int, at: Snapshot | None = None) -> None:
        self.size = size
        self._at = at or Snapshot()

    @property
    def candidates(self) -> Candidates:
        """The items in the running."""
        return self._at.candidates

    @property
    def records(self) -> tuple[Record, ...]:
        """What the tools did so far, in order."""
        return self._at.records

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return self.candidates.count(self.size)

    def snapshot(self) -> Snapshot:
        """The bus as it is now; nothing that happens later changes it."""
        return self._at

    def reset(self) -> None:
        """Begin again from all items. The tracker keeps what has happened."""
        self._at = Snapshot(Candidates(), self.records)

    def done(self, step: int, tool: str, given: str, result: Result, after: Candidates) -> Record:
        """Take what a tool has made of the candidates, and track it."""
        record = Record(step, tool, _kept(given), str(result), self.count, after.count(self.size), result=result)
        self._at = Snapshot(after, (*self.records, record))
        return record

    def failed(self, step: int, tool: str, given: str, fault: Fault) -> Record:
        """Track a fault; the candidates are left as they were."""
        record = Record(step, tool, _kept(given), fault.detail, self.count, self.count, fault.code)
        self._at = Snapshot(self.candidates, (*self.records, record))
        return record


def _kept(given: str) -> str:
    return given if len(given) <= _LONGEST_INPUT else given[:_LONGEST_INPUT] + "..."
