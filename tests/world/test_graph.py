"""The bipartite graph: what a place in the order sees, both sides for networkx, and memory per edge."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms import bipartite

from simengine.errors import KernelError
from simengine.world import Edge, Graph


def edge(user: int, node: str, time: int | float = 0, kind: str = "interaction") -> Edge:
    return Edge(f"user:{user}", node, kind, time)


def test_a_query_sees_what_stands_before_its_place_even_among_equal_times() -> None:
    graph = Graph()
    for row in range(3):
        graph.add(edge(row, "item:1", 5), (0, 5, f"row{row}"))
    assert [e.user for e in graph.edges("item:1", before=(0, 5, "row0"))] == []
    assert [e.user for e in graph.edges("item:1", before=(0, 5, "row2"))] == ["user:0", "user:1"]
    assert [e.user for e in graph.edges("item:1", before=(0, 5))] == [], "a place at a time stands before all of it"
    assert [e.user for e in graph.edges("item:1", before=(1,))] == ["user:0", "user:1", "user:2"]


def test_an_event_does_not_see_its_own_edges_and_they_keep_their_order() -> None:
    graph = Graph()
    graph.add(edge(1, "item:2"), (0, 0, "a"))
    for node in ("item:9", "item:3", "item:5"):
        graph.add(edge(1, node, 1, "exposure"), (0, 1, "b"))
    assert [e.node for e in graph.edges("user:1", before=(0, 1, "b"))] == ["item:2"]
    assert [e.node for e in graph.edges("user:1")] == ["item:2", "item:9", "item:3", "item:5"]


def test_the_edge_of_a_child_that_is_issued_late_stands_at_its_place() -> None:
    graph = Graph()
    graph.add(edge(1, "item:1", 1), (0, 1, "a"))
    graph.add(edge(1, "item:1", 9), (0, 9, "b"))
    graph.add(edge(1, "venue:1", 3, "attendance"), (0, 3, "a", "", 0))
    for query in (graph.edges("user:1"), graph.edges()):
        assert [e.time for e in query] == [1, 3, 9]
    assert [e.node for e in graph.edges("user:1", before=(0, 9, "b"))] == ["item:1", "venue:1"]


places = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3))
added = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["item:1", "item:2", "venue:1"]), places), max_size=12)


@given(added, places)
def test_queries_are_those_of_a_sorted_list(made: list[tuple[int, str, Any]], before: Any) -> None:
    graph = Graph()
    for user, node, place in made:
        graph.add(edge(user, node, place[1]), place)
    assert len(graph) == len(made)
    expected = [edge(user, node, place[1]) for user, node, place in sorted(made, key=lambda each: each[2])]
    seen = [e for e, place in zip(expected, sorted(each[2] for each in made), strict=True) if place < before]
    assert list(graph.edges()) == expected
    assert list(graph.edges(before=before)) == seen
    for agent in ("user:0", "item:1", "venue:1", "user:7"):
        assert list(graph.edges(agent, before)) == [e for e in seen if agent in (e.user, e.node)]


def test_a_query_under_way_does_not_see_what_is_added_meanwhile() -> None:
    graph = Graph()
    graph.add(edge(1, "item:1", 2), (0, 2))
    graph.add(edge(1, "item:2", 3), (0, 3))
    query = graph.edges("user:1")
    seen = [next(query)]
    graph.add(edge(1, "item:0", 1), (0, 1))
    graph.add(edge(1, "item:9", 4), (0, 4))
    assert [e.node for e in (*seen, *query)] == ["item:1", "item:2"]


@pytest.mark.parametrize("time", [0, 880_606_923, 1.5, 2**60 + 1, -3])
def test_a_time_comes_back_as_it_was_given(time: int | float) -> None:
    graph = Graph()
    graph.add(edge(1, "item:1", time), (0, time))
    (found,) = graph.edges("item:1")
    assert found.time == time
    assert type(found.time) is type(time)


@pytest.mark.parametrize(
    ("one", "other"), [("user:1", "user:2"), ("item:1", "venue:1"), ("item:1", "user:1"), ("user:1", "user:1")]
)
def test_an_edge_joins_a_user_with_the_other_side(one: str, other: str) -> None:
    graph = Graph()
    with pytest.raises(KernelError, match="the other side") as caught:
        graph.add(Edge(one, other, "attendance"), (0,))
    assert caught.value.where == {"agent": one, "node": other}
    assert len(graph) == 0
    assert list(graph.edges(one)) == []


def test_for_networkx_it_is_truly_bipartite() -> None:
    graph = Graph()
    for at, (user, node, kind) in enumerate(
        [(1, "item:1", "interaction"), (2, "item:1", "interaction"), (2, "venue:talk", "attendance"),
         (1, "venue:talk", "attendance"), (3, "group:jazz", "membership"), (1, "item:1", "exposure")]
    ):  # fmt: skip
        graph.add(edge(user, node, at, kind), (0, at))
    view = graph.to_networkx()
    assert bipartite.is_bipartite(view)
    users = {name for name, side in view.nodes(data="bipartite") if side == 0}
    assert users == {"user:1", "user:2", "user:3"}
    assert bipartite.is_bipartite_node_set(view, users)
    assert view.number_of_edges() == len(graph) == 6
    assert sorted(data["kind"] for data in view["user:1"]["item:1"].values()) == ["exposure", "interaction"]
    assert view["user:3"]["group:jazz"][0] == {"kind": "membership", "time": 4}
    assert networkx.shortest_path(view, "item:1", "venue:talk")[1] in users
    early = graph.to_networkx(before=(0, 2))
    assert sorted(early) == ["item:1", "user:1", "user:2"]


MILLION = """
import resource
from simengine.world import Edge, Graph

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)

import sys
before = peak()
graph = Graph()
for row in range(1_000_000):
    user, item, time = f"user:{row % 20_000}", f"item:{row * 7919 % 5_000}", 880_000_000 + row
    graph.add(Edge(user, item, "interaction", time), (0, time, user, item, 0))
assert len(graph) == 1_000_000
assert sum(1 for _ in graph.edges("user:7")) == 50
assert sum(1 for _ in graph.edges("item:7", before=(0, 880_500_000))) == 100
print(before, peak())
"""


@pytest.mark.slow
def test_a_million_edges_take_far_less_than_a_gigabyte() -> None:
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True)
    before, after = map(float, done.stdout.split())
    assert after - before < 400, f"MiB that a million edges take, their places in the order included: {after - before}"
