"""Versioned state: for each agent a chain of cells, one per event that may write it, in the total order.

A read names the place in the order *as of* which it looks. It finds the value there as soon as every cell before that
place that matters is final, whatever cells stand behind it: a later writer never waits for an earlier reader. Cells
that nobody can ask for any more are folded into the chain's base.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from simengine.kernel.event import Agent, Initial, Order


class Blocker:
    """Something that a handler may have to wait for. Awaiting it parks the handler; the executor resumes it."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[Any] = []

    def __await__(self) -> Generator[Blocker, None, None]:
        yield self


class Version(msgspec.Struct, omit_defaults=True, gc=False):
    """One value of one slot. ``version`` counts the versions of that slot and is given at commit (0: where it began).

    ``unit`` is the unit that wrote it; ``because`` holds its causes: ids of notes, and other versions, which stand
    there by name once they are committed. ``append`` marks an entry added to a slot that keeps all of its entries.
    """

    agent: Agent
    slot: str
    version: int
    value: Any
    unit: str = ""
    because: Sequence[str | Version] = ()
    append: bool = False

    @property
    def ref(self) -> str:
        """The name of this version in the log: ``user:12/short@3``."""
        return f"{self.agent}/{self.slot}@{self.version}"


def resolved(because: Sequence[str | Version]) -> list[str]:
    """Causes as text: ids as they are, versions by the names that they have once they are committed."""
    return [cause if isinstance(cause, str) else cause.ref for cause in because]


_NOTHING: list[Version] = []


class Cell(Blocker):
    """What one event writes to one agent: unknown (``None``) until it is final, then its versions, oldest first."""

    __slots__ = ("owner", "versions")

    def __init__(self, owner: Any) -> None:
        self.waiters = []
        self.owner = owner
        self.versions: Sequence[Version] | None = None


class Chain:
    """The cells of one agent in the total order, above a base that holds all older values."""

    __slots__ = ("base", "cells", "counts", "orders")

    def __init__(self, agent: Agent, initial: Initial) -> None:
        self.orders: list[Order] = []
        self.cells: list[Cell] = []
        self.counts: dict[str, int] = {}
        self.base: dict[str, list[Version]] = {
            slot: [Version(agent, slot, 0, value)] for slot, value in initial(agent).items()
        }

    def commit(self, versions: Sequence[Version]) -> None:
        """Number versions that are final, and name their causes."""
        counts = self.counts
        for version in versions:
            counts[version.slot] = version.version = counts.get(version.slot, 0) + 1
            if version.because:
                version.because = resolved(version.because)

    def settle(self, versions: Sequence[Version]) -> None:
        """Take versions into the base, behind all that stands there."""
        for version in versions:
            if version.append:
                self.base.setdefault(version.slot, []).append(version)
            else:
                self.base[version.slot] = [version]

    def fold(self, upto: int) -> None:
        """Move the first ``upto`` cells, all committed, into the base."""
        for cell in self.cells[:upto]:
            self.settle(cell.versions or ())
        del self.orders[:upto], self.cells[:upto]


class State:
    """All chains of a run."""

    def __init__(self, initial: Initial) -> None:
        self._initial = initial
        self._chains: dict[Agent, Chain] = {}

    def chain(self, agent: Agent) -> Chain:
        """The agent's chain, begun from its initial values at first use."""
        chain = self._chains.get(agent)
        if chain is None:
            chain = self._chains[agent] = Chain(agent, self._initial)
        return chain

    def register(self, agent: Agent, order: Order, owner: Any) -> Cell:
        """Note that the event at ``order`` may write ``agent``; returns its open cell."""
        chain = self._chains.get(agent) or self.chain(agent)
        cell = Cell(owner)
        if not chain.orders or chain.orders[-1] < order:
            chain.orders.append(order)
            chain.cells.append(cell)
        else:
            at = bisect_left(chain.orders, order)
            chain.orders.insert(at, order)
            chain.cells.insert(at, cell)
        return cell

    def last_writer(self, agent: Agent, as_of: Order) -> Cell | None:
        """The last cell before ``as_of`` that has not been folded, if any."""
        chain = self._chains.get(agent)
        if chain is None or not chain.orders:
            return None
        at = bisect_left(chain.orders, as_of)
        return chain.cells[at - 1] if at else None

    def look(self, agent: Agent, slot: str, as_of: Order) -> list[Version] | Cell:
        """The slot's versions as of a place in the order, or the cell that must become final first.

        The list holds the current value last; before it stand the earlier entries of a slot that is appended to. It is
        empty where the slot was never given a value, and must not be changed.
        """
        chain = self._chains.get(agent) or self.chain(agent)
        if not chain.orders:
            return chain.base.get(slot, _NOTHING)
        found: list[Version] = []
        for at in range(bisect_left(chain.orders, as_of) - 1, -1, -1):
            cell = chain.cells[at]
            if cell.versions is None:
                return cell
            for version in reversed(cell.versions):
                if version.slot == slot:
                    found.append(version)
                    if not version.append:
                        return found[::-1]
        base = chain.base.get(slot, _NOTHING)
        return [*base, *reversed(found)] if found else base

    def commit(self, agent: Agent, cell: Cell, horizon: Order | None) -> None:
        """Number the cell's versions, then fold what no later read can ask for.

        ``horizon`` is the earliest place as of which anybody may still look, or ``None`` where everybody who is left
        looks behind this very cell. Commits come in the total order, so the first cells are the committed ones.
        """
        chain = self._chains[agent]
        chain.commit(cell.versions or ())
        chain.fold(1 if horizon is None else bisect_left(chain.orders, horizon))

    def commit_alone(self, agent: Agent, versions: Sequence[Version]) -> None:
        """The same for an event that ran while no other was under way, so that it needs no cell."""
        chain = self._chains.get(agent) or self.chain(agent)
        chain.commit(versions)
        chain.settle(versions)
