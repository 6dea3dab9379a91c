"""The bipartite graph of a run: users on one side, items, groups and venues on the other, edges with their times.

Edges are kept in arrays and handed to networkx on demand: a networkx edge takes several hundred bytes, and a run may
have millions of them. Here an edge takes about 60 bytes beside its time and its place in the order, which it shares
with its event.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from simengine.errors import KernelError
from simengine.world import agents

if TYPE_CHECKING:
    import networkx


class Edge(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edge: who, with which node of the other side, what it is (``interaction``, ``exposure`` ...), and when."""

    user: str
    node: str
    kind: str
    time: int | float = 0


class Graph:
    """Grows as events are issued; a query sees what stands before a place in the total order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._kinds: list[str] = []
        self._ends = (array("l"), array("l"))
        self._kind = array("b")
        self._time: list[int | float] = []
        self._order: list[tuple[Any, ...]] = []
        self._of: list[array[int]] = []

    def __len__(self) -> int:
        return len(self._order)

    def add(self, edge: Edge, order: tuple[Any, ...]) -> None:
        """Take in an edge that an event at ``order`` makes. Raises :class:`KernelError` where it joins one side."""
        if agents.kind(edge.user) != "user" or agents.kind(edge.node) == "user":
            raise KernelError(
                f"an edge of kind {edge.kind!r} must join a user with a node of the other side",
                remedy="let users meet at a venue, and items through a user",
                agent=edge.user,
                node=edge.node,
            )
        number = len(self._order)
        self._order.append(order)
        self._time.append(edge.time)
        for end, name in zip(self._ends, (edge.user, edge.node), strict=True):
            node = self._node(name)
            end.append(node)
            self._attach(node, number)
        if edge.kind not in self._kinds:
            self._kinds.append(edge.kind)
        self._kind.append(self._kinds.index(edge.kind))

    def edges(self, agent: str | None = None, before: tuple[Any, ...] | None = None) -> Iterator[Edge]:
        """The edges (of one agent) that stand before a place in the order, in that order.

        Edges of one event come as they were added. What is added later does not join an iteration under way.
        """
        place = self._order.__getitem__
        numbers: Sequence[int]
        if agent is None:
            numbers = sorted(range(len(self._order)), key=place)
        else:
            numbers = self._of[self._numbers[agent]] if agent in self._numbers else ()
        upto = len(numbers) if before is None else bisect_left(numbers, before, key=place)
        for number in numbers[:upto]:
            user, node = (self._names[end[number]] for end in self._ends)
            yield Edge(user, node, self._kinds[self._kind[number]], self._time[number])

    def to_networkx(self, before: tuple[Any, ...] | None = None) -> networkx.MultiGraph[str]:
        """The graph for networkx: ``bipartite`` 0 for users and 1 for the rest; ``kind`` and ``time`` on edges."""
        import networkx

        graph: networkx.MultiGraph[str] = networkx.MultiGraph()
        for edge in self.edges(before=before):
            for name in (edge.user, edge.node):
                graph.add_node(name, bipartite=int(agents.kind(name) != "user"))
            graph.add_edge(edge.user, edge.node, kind=edge.kind, time=edge.time)
        return graph

    def _attach(self, node: int, number: int) -> None:
        """Keep the node's edges in the total order; only an edge of a child event may come out of turn."""
        mine, place = self._of[node], self._order.__getitem__
        if not mine or place(mine[-1]) <= place(number):
            mine.append(number)
        else:
            insort(mine, number, key=place)

    def _node(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            self._of.append(array("l"))
        return number
