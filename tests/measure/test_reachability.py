"""Possible reach: cases counted by hand, and random histories against all time-respecting paths, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.errors import InputError
from simengine.kernel import Version
from simengine.measure import reachability
from simengine.measure.contacts import Contacts, merge_events, read_contacts
from simengine.measure.reachability import NEVER, Outside, Reach, outside, reach
from simengine.runlog import EventLine
from simengine.world import Edge

Step = tuple[str, str, str]
"""User, item and negative, as an event of AgentCF has them: the user and the item are written."""


def step(position: int, user: str, item: str, negative: str, text: str = "", seconds: float = 10.0) -> EventLine:
    when = position * seconds
    line = EventLine(f"e{position}", "interaction", when)
    line.edges = (Edge(user, item, "interaction", when), Edge(user, negative, "exposure", when))
    line.memories = [Version(user, "short", position, text), Version(item, "memory", position, text)]
    return line


def steps(*rows: str) -> list[EventLine]:
    """``"1 a b"``: user 1 takes a and not b. The k-th event happens at 10 k."""
    return [step(at, *_names(row)) for at, row in enumerate(rows)]


def _names(row: str) -> Step:
    user, item, negative = row.split()
    return f"user:{user}", f"item:{item}", f"item:{negative}"


def told(found: Reach, values: np.ndarray) -> dict[str, int]:  # type: ignore[type-arg]
    return dict(zip(found.agents, values.tolist(), strict=True))


def test_a_path_in_the_order_of_time() -> None:
    """1 passes on to a, a to 2, 2 to c; 3 met a before it was reached, so that only edges lead to it."""
    found = reach(read_contacts(steps("3 a z", "1 a y", "2 a x", "2 c x")), {"user:1": 0})
    assert told(found, found.hops) == {
        "user:1": 0, "item:a": 1, "user:2": 2, "item:c": 3, "user:3": -1, "item:x": -1, "item:y": -1, "item:z": -1,
    }  # fmt: skip
    assert [told(found, found.since)[agent] for agent in ("user:1", "item:a", "user:2", "item:c", "user:3")] == [
        0, 2, 3, 4, NEVER,
    ]  # fmt: skip
    when = told(found, found.time)
    assert (when["user:1"], when["item:a"], when["user:2"], when["item:c"]) == (0, 10, 20, 30)
    assert np.isnan(when["user:3"])
    assert found.touched.tolist() == [False, True, True, True]
    distance = told(found, found.distance)
    assert distance == {
        "user:1": 0, "item:a": 1, "item:y": 1, "user:2": 2, "user:3": 2, "item:x": 3, "item:c": 3, "item:z": 3,
    }  # fmt: skip


def test_exposures_are_contacts_that_are_counted_apart() -> None:
    """The negative a has taken in what 1 likes: 2, who leaves it, reads it, and so does the item that 2 takes."""
    found = reach(read_contacts(steps("1 a z", "2 b a", "2 c a", "3 c b")), {"user:1": 0})
    counts = {
        agent: {kind: n for kind, n in zip(found.kinds, row.tolist(), strict=True) if n}
        for agent, row in zip(found.agents, found.contacts, strict=True)
    }
    assert counts == {
        "user:1": {},
        "item:a": {"interaction": 1},
        "item:b": {"exposure": 1},
        "user:2": {"exposure": 2},  # and c, which was not reached before
        "item:c": {"interaction": 1, "exposure": 2},  # 2; a; in the last event b
        "user:3": {"interaction": 1, "exposure": 1},
        "item:z": {},
    }
    assert told(found, found.hops)["user:3"] == 3


def test_a_later_arrival_may_take_fewer_hops() -> None:
    """3 is reached at event 3 by a, 2 and b; at event 4 it takes a itself."""
    found = reach(read_contacts(steps("1 a z", "2 a z", "2 b z", "3 b z", "3 a z", "3 d z")), {"user:1": 0})
    assert (told(found, found.since)["user:3"], told(found, found.time)["user:3"]) == (4, 30)
    hops = told(found, found.hops)
    assert (hops["user:3"], hops["item:d"]) == (2, 3)


def test_within_an_event_all_that_it_writes_are_reached() -> None:
    """From the negative to the item by way of the user's new memory, which the item may read."""
    first, last = steps("1 a z", "2 b a")
    last.memories[1] = msgspec.structs.replace(last.memories[1], because=["user:2/short@1"])
    found = reach(read_contacts([first, last]), {"user:1": 0})
    assert (told(found, found.since)["item:b"], told(found, found.hops)["item:b"]) == (2, 2)
    # Only a reached it: the user was not reached before.
    assert found.contacts[found.agents.index("item:b")].sum() == 1


def test_what_is_only_read_is_not_reached() -> None:
    found = reach(read_contacts(steps("1 a z", "1 b z")), {"user:1": 0})
    assert told(found, found.hops)["item:z"] == -1


def test_a_seed_that_is_planted_later() -> None:
    """The first step of 1 passes nothing on; the planting before event 1 has the time of this event."""
    found = reach(read_contacts(steps("1 a z", "1 b z", "2 b z")), {"user:1": 1})
    assert told(found, found.hops)["item:a"] == -1
    assert (told(found, found.since)["user:1"], told(found, found.time)["user:1"]) == (1, 10)
    assert (told(found, found.since)["item:b"], told(found, found.since)["user:2"]) == (2, 3)
    assert found.touched.tolist() == [False, True, True]


@pytest.mark.parametrize("passes", [reachability._PASSES, 0])
def test_several_seeds_and_one_that_was_reached_before_its_own_planting(
    passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 is reached at event 1 with two hops, by which c has three; planted at 3, it gives d one hop only."""
    monkeypatch.setattr(reachability, "_PASSES", passes)
    lines = steps("1 a z", "2 a z", "2 c z", "2 d z")
    found = reach(read_contacts(lines), {"user:1": 0, "user:2": 3, "user:9": 2})
    assert [told(found, found.hops)[agent] for agent in ("user:2", "item:c", "item:d")] == [0, 3, 1]
    assert (told(found, found.since)["user:2"], told(found, found.time)["user:2"]) == (2, 10)
    # A seed that takes part in nothing is reached, and alone.
    assert found.agents[-1] == "user:9"
    assert (found.hops[-1], found.since[-1], found.distance[-1], found.time[-1]) == (0, 2, 0, 20)


def test_a_planting_behind_the_last_event_and_an_empty_log() -> None:
    found = reach(read_contacts(steps("1 a z")), {"user:1": 1})
    assert told(found, found.hops) == {"user:1": 0, "item:a": -1, "item:z": -1}
    assert np.isnan(found.time).all()
    empty = reach(read_contacts([]), {"user:1": 0})
    assert (empty.agents, empty.hops.tolist(), empty.touched.tolist()) == (("user:1",), [0], [])
    nobody = reach(read_contacts(steps("1 a z")), {})
    assert (nobody.hops.tolist(), nobody.distance.tolist()) == ([-1, -1, -1], [-1, -1, -1])


@pytest.mark.parametrize("position", [-1, 3])
def test_a_planting_outside_of_the_log_is_an_error(position: int) -> None:
    with pytest.raises(InputError, match=f"agent user:1, value {position}: a planting before event {position} does"):
        reach(read_contacts(steps("1 a z", "1 b z")), {"user:1": position})


def test_a_chain_longer_than_there_are_passes() -> None:
    """User k takes item k and then item k + 1: two hops more with each user."""
    rows = [f"{at // 2} {(at + 1) // 2} z" for at in range(1000)]
    found = reach(read_contacts(steps(*rows)), {"user:0": 0})
    hops = told(found, found.hops)
    assert [hops["item:0"], hops["user:1"], hops["user:499"], hops["item:500"]] == [1, 2, 998, 999]


# -- against every path ------------------------------------------------------------------------------------------------

agents = st.sampled_from([f"user:{n}" for n in range(4)] + [f"item:{n}" for n in range(4)] + ["venue:v", "group:g"])
takes_part = st.lists(st.tuples(agents, st.booleans()), min_size=1, max_size=4, unique_by=lambda part: part[0])
histories = st.lists(takes_part, max_size=9)


def history(parts: Sequence[Sequence[tuple[str, bool]]]) -> list[EventLine]:
    """Each event has some agents, of which some are written; all are causes of what is written. Users have edges."""
    lines = []
    for at, event in enumerate(parts):
        line = EventLine(f"e{at}", "any", at * 2.0)
        users = [agent for agent, _ in event if agent.startswith("user")]
        others = [agent for agent, _ in event if not agent.startswith("user")]
        line.edges = tuple(Edge(users[0], other, "interaction", at * 2.0) for other in others if users)
        because = [f"{agent}/m@0" for agent, _ in event]
        line.memories = [Version(agent, "m", 1, "", because=because) for agent, written in event if written]
        lines.append(line)
    return lines


def paths(
    parts: Sequence[Sequence[tuple[str, bool]]], agent: str, start: int, seen: tuple[str, ...]
) -> Iterator[tuple[str, int, int]]:
    """All paths from an agent that holds before an event: where each ends, the event, and the hops."""
    for at in range(start, len(parts)):
        if agent in dict(parts[at]):
            for target, written in parts[at]:
                if written and target not in seen:
                    yield target, at, len(seen)
                    yield from paths(parts, target, at + 1, (*seen, target))


def _ends(line: EventLine) -> set[str]:
    """Whoever the log of an event that writes nothing tells of."""
    return {end for edge in line.edges for end in (edge.user, edge.node)}


@pytest.mark.parametrize("passes", [reachability._PASSES, 0, 2])
@given(parts=histories, planted=st.dictionaries(agents, st.integers(0, 4), min_size=1, max_size=3))
def test_random_histories(passes: int, parts: list[list[tuple[str, bool]]], planted: dict[str, int]) -> None:
    """Without passes, all contacts are gone through in order, which must give the same."""
    seeds = {agent: min(position, len(parts)) for agent, position in planted.items()}
    lines = history(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reachability, "_PASSES", passes)
        found = reach(read_contacts(lines), seeds)
    since = dict(seeds)
    hops = dict.fromkeys(seeds, 0)
    for seed, position in seeds.items():
        for target, at, length in paths(parts, seed, position, (seed,)):
            since[target] = min(since.get(target, NEVER), at + 1)
            hops[target] = min(hops.get(target, NEVER), length)
    assert told(found, found.since) == {agent: since.get(agent, NEVER) for agent in found.agents}
    assert told(found, found.hops) == {agent: hops.get(agent, -1) for agent in found.agents}
    holds = [[since.get(agent, NEVER) <= at for agent, _ in event] for at, event in enumerate(parts)]
    assert found.touched.tolist() == [
        any(held for (agent, _), held in zip(event, row, strict=True) if line.memories or agent in _ends(line))
        for event, row, line in zip(parts, holds, lines, strict=True)
    ]
    counts = dict.fromkeys(found.agents, 0)
    for event, row in zip(parts, holds, strict=True):
        for target, written in event:
            if written:
                counts[target] += sum(source != target and held for (source, _), held in zip(event, row, strict=True))
    assert told(found, found.contacts.sum(axis=1)) == counts
    graph = networkx.Graph([(edge.user, edge.node) for line in lines for edge in line.edges])
    graph.add_nodes_from(seeds)
    layers = enumerate(networkx.bfs_layers(graph, list(seeds)))
    distance = {agent: far for far, layer in layers for agent in layer}
    assert told(found, found.distance) == {agent: distance.get(agent, -1) for agent in found.agents}


# -- two runs side by side ---------------------------------------------------------------------------------------------

ROWS = ("1 a z", "2 a z", "2 b z", "3 c z")


def run(*texts: str, rows: Sequence[str] = ROWS) -> list[EventLine]:
    return [step(at, *_names(row), text) for at, (row, text) in enumerate(zip(rows, texts, strict=True))]


def contacts_of(control: list[EventLine], treatment: list[EventLine]) -> Contacts:
    return read_contacts(merge_events(control, treatment))


def strays(control: list[EventLine], treatment: list[EventLine], seeds: Mapping[str, int]) -> list[Outside]:
    return outside(reach(contacts_of(control, treatment), seeds), control, treatment)


def test_differences_inside_of_the_reach_are_none_outside() -> None:
    assert strays(run("p", "q", "r", "s"), run("P", "Q", "R", "s"), {"user:1": 0}) == []


def test_an_agent_that_nothing_leads_to() -> None:
    found = strays(run("p", "q", "r", "s"), run("P", "q", "r", "S"), {"user:1": 0})
    assert found == [Outside("user:3", "e3"), Outside("item:c", "e3")]


def test_an_agent_that_differs_before_anything_leads_to_it() -> None:
    """b is reached in e2, so that it may differ from then on; 2, in e1."""
    rows = ("2 b z", *ROWS[:3])
    before, after = run("p", "q", "r", "s", rows=rows), run("P", "Q", "R", "S", rows=rows)
    assert strays(before, after, {"user:1": 1}) == [Outside("user:2", "e0"), Outside("item:b", "e0")]


def test_versions_and_causes_may_be_numbered_otherwise() -> None:
    """A planting that is an event of its own shifts the numbers of the seed's versions."""
    planting = EventLine("plant", "planting", 0, memories=[Version("user:1", "short", 1, "I like jazz.")])
    control, treatment = run("p", "q", "r", "s"), run("p", "q", "r", "s")
    for line in treatment:
        for version in line.memories:
            version.version += 1
            version.because = ["user:1/short@2"] if version.agent == "user:1" else []
    assert strays(control, [planting, *treatment], {"user:1": 0}) == []
    assert strays(control, [planting, *treatment], {"user:2": 0}) == [Outside("user:1", "plant")]


def test_an_update_that_failed_in_one_run_only() -> None:
    """In the treatment the item a is not written: what it lacks is a difference that 1 has led to, and goes on."""
    control, treatment = run("p", "q", "r", "s"), run("P", "Q", "R", "s")
    del treatment[0].memories[1]
    assert strays(control, treatment, {"user:1": 0}) == []
    alone = reach(read_contacts(treatment), {"user:1": 0})
    assert [stray.agent for stray in outside(alone, control, treatment)] == ["item:a", "user:2", "item:b"]


def test_events_that_the_reach_does_not_know() -> None:
    """Then an agent may differ if it is ever reached."""
    more = [*run("p", "q", "r", "s"), step(9, "user:1", "item:q", "item:z")]
    found = outside(reach(read_contacts(run("p", "q", "r", "s")), {"user:1": 0}), more, run("p", "q", "r", "s"))
    assert found == [Outside("item:q", "e9")]
    assert outside(reach(read_contacts([]), {}), iter(more), iter(more)) == []
