"""Who could have come to hold what was planted: the arrays of simengine against a plain program on networkx.

    python benchmarks/reachability.py [--rounds N] [--check]

Both are given the contacts of the same 100,000 interactions (20,000 users, uniform; 5,000 items and as many negatives,
Zipf with exponent 1; three agents each, all read and two written) in the form that they work on, arrays and graphs,
which are made before and not timed; from the same seeds, one of them planted later, both work out earliest arrivals,
fewest hops, contacts by kind, events touched and distances in the bipartite graph. Results are compared in full. Rounds
alternate between the two; the median round of each counts. Then 1,000,000 interactions are measured, the reading of
their events too, with the peak memory of a process that does nothing else. ``--check`` exits with 1 where simengine is
not at least ``TARGET`` times as fast. The last line is that ratio.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from simengine.kernel import Version  # noqa: E402
from simengine.measure.contacts import Contacts, read_contacts  # noqa: E402
from simengine.measure.reachability import NEVER, reach  # noqa: E402
from simengine.runlog import EventLine, MessageLine  # noqa: E402
from simengine.world import Edge  # noqa: E402

TARGET = 20
USERS, ITEMS = 20_000, 5_000
FEW, MANY = 100_000, 1_000_000


def interactions(rows: int) -> Iterator[EventLine]:
    """Events as AgentCF logs them after one round, without texts."""
    draws = np.random.default_rng(1)
    weights = 1 / np.arange(1, ITEMS + 1)
    users = draws.integers(0, USERS, rows).tolist()
    items = draws.choice(ITEMS, rows, p=weights / weights.sum())
    negatives = (items + draws.integers(1, ITEMS, rows)) % ITEMS  # never the item itself, and as uneven as a choice
    for row, (user, item, negative) in enumerate(zip(users, items.tolist(), negatives.tolist(), strict=True)):
        who, taken, left = f"user:{user}", f"item:{item}", f"item:{negative}"
        line = EventLine(f"row{row}", "interaction", row)
        line.edges = (Edge(who, taken, "interaction", row), Edge(who, left, "exposure", row))
        mine, shown = f"{who}/short@0", [f"{left}/memory@0", f"{taken}/memory@0"]
        choice = MessageLine(f"row{row}#choose/r1.0", who, taken, "choice", None, [mine, *shown])
        line.messages = [choice]
        because = [choice.id, mine, *shown]
        line.memories = [
            Version(who, "short", 1, "", because=because),
            Version(taken, "memory", 1, "", because=because),
        ]
        yield line


def plantings(contacts: Contacts) -> dict[str, int]:
    """Three users: two from the start, one from the middle of the log on."""
    users = [agent for agent in contacts.agents if agent.startswith("user:")]
    return {users[7]: 0, users[len(users) // 2]: 0, users[-1]: len(contacts.events) // 2}


class Graphs:
    """A run as one would keep it in networkx: contacts, who took part in which event, and edges without their times."""

    def __init__(self, contacts: Contacts) -> None:
        name, kind = contacts.agents, contacts.kinds
        self.contacts: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self.contacts.add_nodes_from(contacts.agents)
        columns = (contacts.source, contacts.target, contacts.position, contacts.kind)
        for source, target, position, number in zip(*(column.tolist() for column in columns), strict=True):
            self.contacts.add_edge(name[source], name[target], position=position, kind=kind[number])
        self.parts: nx.Graph[Any] = nx.Graph()
        self.parts.add_edges_from(
            (position, name[agent])
            for position, agent in zip(contacts.part_position.tolist(), contacts.part_agent.tolist(), strict=True)
        )
        self.events = len(contacts.events)
        self.edges: nx.Graph[str] = nx.Graph()
        self.edges.add_edges_from((name[one], name[other]) for one, other in contacts.edges.tolist())


def with_networkx(graphs: Graphs, seeds: Mapping[str, int]) -> dict[str, Any]:
    """One pass over the contacts in their order, faster here than a search hop by hop, and static distances."""
    since: dict[str, int] = {}
    hops: dict[str, int] = {}
    counts: Counter[tuple[str, str]] = Counter()
    plantings = sorted(((position, seed) for seed, position in seeds.items()), reverse=True)
    for source, target, contact in sorted(graphs.contacts.edges(data=True), key=lambda edge: edge[2]["position"]):
        position = contact["position"]
        while plantings and plantings[-1][0] <= position:
            start, seed = plantings.pop()
            since[seed], hops[seed] = min(start, since.get(seed, start)), 0
        if source not in since:
            continue
        if since[source] <= position:
            counts[target, contact["kind"]] += 1
        since.setdefault(target, position + 1)
        hops[target] = min(hops.get(target, NEVER), hops[source] + 1)
    touched = {event for agent, start in since.items() for event in graphs.parts[agent] if event >= start}
    distances = {agent: far for far, layer in enumerate(nx.bfs_layers(graphs.edges, list(seeds))) for agent in layer}
    return {"since": since, "hops": hops, "contacts": counts, "touched": touched, "distance": distances}


def with_simengine(contacts: Contacts, seeds: Mapping[str, int]) -> dict[str, Any]:
    """The same answer in the same words."""
    found = reach(contacts, seeds)
    agents, kinds = found.agents, found.kinds
    return {
        "since": {agents[at]: int(found.since[at]) for at in np.flatnonzero(found.since < NEVER)},
        "hops": {agents[at]: int(found.hops[at]) for at in np.flatnonzero(found.hops >= 0)},
        "contacts": {
            (agents[at], kinds[kind]): int(found.contacts[at, kind]) for at, kind in np.argwhere(found.contacts)
        },
        "touched": set(np.flatnonzero(found.touched).tolist()),
        "distance": {agents[at]: int(found.distance[at]) for at in np.flatnonzero(found.distance >= 0)},
    }


def against_networkx(rounds: int) -> float:
    """How many times as fast the arrays are."""
    start = time.perf_counter()
    contacts = read_contacts(interactions(FEW))
    read = time.perf_counter()
    graphs = Graphs(contacts)
    built = time.perf_counter()
    seeds = plantings(contacts)
    ours, theirs = with_simengine(contacts, seeds), with_networkx(graphs, seeds)
    differing = [name for name in theirs if ours[name] != theirs[name]]
    if differing:
        raise SystemExit(f"the two differ in {', '.join(differing)}, so the comparison means nothing")
    print(
        f"{FEW:,} interactions, {len(contacts.position):,} contacts: made and read in {read - start:.1f} s, "
        f"made into networkx graphs in {built - read:.1f} s more"
    )
    farthest = max(ours["hops"].values())
    print(f"reached {len(ours['since']):,} of {len(contacts.agents):,} agents, in up to {farthest} hops")
    seconds: tuple[list[float], list[float]] = ([], [])
    works = (partial(reach, contacts, seeds), partial(with_networkx, graphs, seeds))
    for _ in range(rounds):
        for work, times in zip(works, seconds, strict=True):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    fast, slow = map(statistics.median, seconds)
    print(f"simengine: {fast * 1e3:.1f} ms; networkx: {slow * 1e3:.0f} ms (median of {rounds} rounds, equal results)")
    return slow / fast


def many() -> None:
    """The process that measures a million interactions; its memory holds no other thing."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    contacts = read_contacts(interactions(MANY))
    read = time.perf_counter()
    holds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seeds = plantings(contacts)
    start_reach = time.perf_counter()
    found = reach(contacts, seeds)
    end = time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{MANY:,} interactions, {len(contacts.position):,} contacts: made and read in {read - start:.1f} s, "
        f"reached {int((found.hops >= 0).sum()):,} agents in {end - start_reach:.2f} s; "
        f"peak memory {holds / 1024:.0f} MiB after reading, {after / 1024:.0f} MiB at the end, "
        f"{before / 1024:.0f} MiB of it before"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the comparison")
    parser.add_argument("--check", action="store_true", help=f"exit with 1 below {TARGET} times")
    options = parser.parse_args()
    code = "import sys; sys.path.insert(0, sys.argv[1]); import reachability; reachability.many()"
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], check=True)
    ratio = against_networkx(options.rounds)
    print(f"simengine is {ratio:.1f} times as fast as networkx (target {TARGET})")
    return int(options.check and ratio < TARGET)


if __name__ == "__main__":
    sys.exit(main())
