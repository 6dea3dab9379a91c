"""Versioned state: for each agent a chain of cells, one per event that may write it, in the total order.

A read names the place in the order *as of* which it looks. It finds the value there as soon as every cell before that
place that matters is final, whatever cells stand behind it: a later writer never waits for an earlier reader. Cells
that nobody can ask for any more are folded into the chain's base.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from simengine.kernel.event import Agent, Initial, Order


class Blocker:
    """Something that a handler may have to wait for. Awaiting it parks the handler; the executor resumes it."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[Any] = []

    def __await__(self) -> Generator[Blocker, None, None]:
        yield self


UNCOMMITTED = -1


class Version(msgspec.Struct, omit_defaults=True, gc=False):
    """One value of one slot. ``version`` counts the versions of that slot and is given at commit.

    It is 0 where the slot began, and :data:`UNCOMMITTED` before commit, which it stays if the write is undone.
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
    """Causes as text: ids as they are, versions by the names that they have once they are committed.

    A version whose write was undone has no name: it never came to be, so it is the cause of nothing.
    """
    return [
        cause if isinstance(cause, str) else cause.ref
        for cause in because
        if isinstance(cause, str) or cause.version != UNCOMMITTED
    ]


class Cell(Blocker):
    """What one event writes to one agent: unknown (``None``) until it is final, then its versions, oldest first."""

    __slots__ = ("owner", "versions")

    def __init__(self, owner: Any) -> None:
        self.waiters = []
        self.owner = owner
        self.versions: Sequence[Version] | None = None


class Chain:
    """The cells of one agent that are not folded yet, in the total order; ``kept`` while they wait for a horizon."""

    __slots__ = ("cells", "kept", "orders")

    def __init__(self) -> None:
        self.kept = False
        self.orders: list[Order] = []
        self.cells: list[Cell] = []

    def before(self, as_of: Order) -> Iterator[Cell]:
        """The cells before a place in the order, nearest first."""
        for at in range(bisect_left(self.orders, as_of) - 1, -1, -1):
            yield self.cells[at]


Base: TypeAlias = "dict[str, Version | list[Version]]"
"""What is folded of one agent: per slot its value, or all entries of a slot that is appended to."""


class State:
    """All agents of a run: a base each, and a chain above it while events that may write the agent are under way."""

    def __init__(self, initial: Initial) -> None:
        self._initial = initial
        self._bases: dict[Agent, Base] = {}
        self._chains: dict[Agent, Chain] = {}
        self._kept: deque[tuple[Agent, Chain]] = deque()

    def register(self, agent: Agent, order: Order, owner: Any) -> Cell:
        """Note that the event at ``order`` may write ``agent``; returns its open cell."""
        chain = self._chains.get(agent)
        if chain is None:
            chain = self._chains[agent] = Chain()
        cell = Cell(owner)
        at = bisect_left(chain.orders, order)
        chain.orders.insert(at, order)
        chain.cells.insert(at, cell)
        return cell

    def last_writer(self, agent: Agent, as_of: Order) -> Cell | None:
        """The last cell before ``as_of`` that has not been folded, if any."""
        chain = self._chains.get(agent)
        return next(chain.before(as_of), None) if chain is not None else None

    def look(self, agent: Agent, slot: str, as_of: Order) -> Version | Cell | None:
        """The slot's value as of a place in the order, or the cell that must become final first."""
        chain = self._chains.get(agent)
        if chain is not None:
            for cell in chain.before(as_of):
                if cell.versions is None:
                    return cell
                for version in reversed(cell.versions):
                    if version.slot == slot:
                        return version
        base = self._bases.get(agent) or self._base(agent)
        found = base.get(slot)
        return found[-1] if isinstance(found, list) else found

    def look_all(self, agent: Agent, slot: str, as_of: Order) -> list[Version] | Cell:
        """All entries of a slot that is appended to, oldest first; or the cell that must become final first."""
        chain = self._chains.get(agent)
        found: list[Version] = []
        for cell in chain.before(as_of) if chain is not None else ():
            if cell.versions is None:
                return cell
            found += (version for version in reversed(cell.versions) if version.slot == slot)
        base = (self._bases.get(agent) or self._base(agent)).get(slot, [])
        return since_written([*(base if isinstance(base, list) else [base]), *reversed(found)])

    def commit(self, agent: Agent, cell: Cell, order: Order, horizon: Order | None) -> None:
        """Number the versions of the cell at ``order``, then fold what no later read can ask for.

        ``horizon`` is the earliest place as of which anybody may still look, or ``None`` where everybody who is left
        looks behind this very cell. Commits come in the total order, so the first cells are the committed ones.
        """
        chain = self._chains[agent]
        at = bisect_left(chain.orders, order)
        numbers: dict[str, int] = {}
        for version in cell.versions or ():
            last = numbers.get(version.slot)
            version.version = 1 + (self._last_number(chain, at, version) if last is None else last)
            numbers[version.slot] = version.version
        cell.owner = None  # a cell that waits for its period to end must not keep its event alive
        if horizon is None:
            self._fold(agent, chain, 1)
            return
        if not cell.versions:
            del chain.orders[at], chain.cells[at]
        self._fold(agent, chain, bisect_left(chain.orders, horizon))
        self._keep(agent, chain)

    def tidy(self, most: int, horizon: Callable[[Agent], Order | None]) -> None:
        """Fold again, as far as ``horizon`` now allows, the ``most`` chains that have waited longest for it.

        Each commit leaves at most one chain to wait, so that trying two each time keeps none of an idle agent.
        """
        for _ in range(min(most, len(self._kept))):
            agent, chain = self._kept.popleft()
            if self._chains.get(agent) is chain:
                chain.kept = False
                self._fold(agent, chain, bisect_left(chain.orders, horizon(agent) or ()))
                self._keep(agent, chain)

    def commit_alone(self, agent: Agent, versions: Sequence[Version]) -> None:
        """The same for an event that ran while no other was under way, so that it needs no cell."""
        base = self._bases.get(agent) or self._base(agent)
        for version in versions:
            version.version = _last_of(base, version.slot) + 1
            self._put(base, version)

    def _base(self, agent: Agent) -> Base:
        base: Base = {slot: Version(agent, slot, 0, value) for slot, value in self._initial(agent).items()}
        self._bases[agent] = base
        return base

    def _fold(self, agent: Agent, chain: Chain, upto: int) -> None:
        base = self._bases.get(agent) or self._base(agent)
        for cell in chain.cells[:upto]:
            for version in cell.versions or ():
                self._put(base, version)
        del chain.orders[:upto], chain.cells[:upto]
        if not chain.cells:
            del self._chains[agent]

    def _keep(self, agent: Agent, chain: Chain) -> None:
        if chain.cells and not chain.kept:
            chain.kept = True
            self._kept.append((agent, chain))

    @staticmethod
    def _put(base: Base, version: Version) -> None:
        if not version.append:
            base[version.slot] = version
            return
        entries = base.get(version.slot)
        if isinstance(entries, list):
            entries.append(version)
        else:
            base[version.slot] = [version] if entries is None else [entries, version]

    def _last_number(self, chain: Chain, at: int, version: Version) -> int:
        """The number of the last version of the same slot in the cells before ``at``."""
        for before in range(at - 1, -1, -1):
            for earlier in reversed(chain.cells[before].versions or ()):
                if earlier.slot == version.slot:
                    return earlier.version
        return _last_of(self._bases.get(version.agent) or self._base(version.agent), version.slot)


def since_written(versions: list[Version]) -> list[Version]:
    """Of versions in order, those that count: from the last that was written, not appended, onward."""
    for at in range(len(versions) - 1, -1, -1):
        if not versions[at].append:
            return versions[at:]
    return versions


def _last_of(base: Base, slot: str) -> int:
    """The number of the last folded version of a slot; 0 where there is none."""
    last = base.get(slot)
    if isinstance(last, list):
        last = last[-1]
    return last.version if last is not None else 0
