"""Who could have passed something on to whom, in events made by hand, with the contacts as one counts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from simengine.errors import LogError
from simengine.kernel import Version
from simengine.measure.contacts import Contacts, merge_events, pair_events, read_contacts
from simengine.runlog import EventLine, MessageLine, Reader
from simengine.world import Edge


def event(
    name: str,
    *,
    time: float = 0,
    edges: Sequence[tuple[str, str, str]] = (),
    writes: dict[str, list[str]] | None = None,
    says: Sequence[tuple[str, list[str]]] = (),
    parent: str | None = None,
) -> EventLine:
    """``writes``: memories (agent and slot) with their causes; ``says``: ids of messages with their causes."""
    line = EventLine(name, "any", time, parent)
    line.edges = tuple(Edge(*edge, time) for edge in edges)
    line.messages = [MessageLine(ident, "user:x", "user:x", "word", None, causes) for ident, causes in says]
    for memory, causes in (writes or {}).items():
        agent, slot = memory.rsplit("/", 1)
        line.memories.append(Version(agent, slot, 1, "text", because=causes))
    return line


def spelled(contacts: Contacts) -> set[tuple[str, str, str, str]]:
    """The contacts in names: event, source, target, kind. None stands twice."""
    columns: Any = (contacts.position, contacts.source, contacts.target, contacts.kind)
    rows = [
        (contacts.events[at], contacts.agents[source], contacts.agents[target], contacts.kinds[kind])
        for at, source, target, kind in zip(*columns, strict=True)
    ]
    assert len(set(rows)) == len(rows)
    return set(rows)


STEP = [("user:1", "item:a", "interaction"), ("user:1", "item:b", "exposure")]


def test_a_step_of_agentcf_has_four_contacts() -> None:
    """The negative is read by both; an edge between two gives the kind, else that of the source."""
    line = event("e", edges=STEP, writes={"user:1/short": [], "item:a/memory": []})
    assert spelled(read_contacts([line])) == {
        ("e", "user:1", "item:a", "interaction"),
        ("e", "item:a", "user:1", "interaction"),
        ("e", "item:b", "user:1", "exposure"),
        ("e", "item:b", "item:a", "exposure"),
    }


def test_a_negative_that_is_written_too_is_a_target() -> None:
    line = event("e", edges=STEP, writes={"item:b/memory": []})
    assert spelled(read_contacts([line])) == {
        ("e", "user:1", "item:b", "exposure"),
        ("e", "item:a", "item:b", "interaction"),
    }


@pytest.mark.parametrize(
    ("cause", "source", "kind"),
    [
        ("user:2/short@3", "user:2", "read"),
        ("item:c/memory@0", "item:c", "read"),
        ("group:jazz/members@1", "group:jazz", "group"),
        ("grouping:current/groups@1", "grouping:current", "group"),
        ("venue:talk/a/b/thread@2", "venue:talk/a/b", "venue"),
        ("workshop:1/memory@2", "workshop:1", "workshop"),
    ],
)
def test_without_an_edge_the_kind_says_what_the_source_is(cause: str, source: str, kind: str) -> None:
    """A kind of agent that nobody knew when this was written needs nothing but its name."""
    by_memory = event("e", writes={"user:1/short": [cause]})
    by_message = event("e", writes={"user:1/short": ["e#talk.0"]}, says=[("e#talk.0", [cause])])
    for line in (by_memory, by_message):
        assert spelled(read_contacts([line])) == {("e", source, "user:1", kind)}


@pytest.mark.parametrize(("node", "kind"), [("venue:1", "attendance"), ("group:jazz", "membership")])
def test_edges_of_venues_and_groups_keep_their_kind(node: str, kind: str) -> None:
    line = event("e", edges=[("user:1", node, kind), ("user:2", node, kind)], writes={f"{node}/memory": []})
    assert spelled(read_contacts([line])) == {("e", f"user:{n}", node, kind) for n in (1, 2)}


def test_a_slot_may_hold_the_mark_behind_an_agent() -> None:
    """A writer's id may hold a slash, and a slot that is named after him too."""
    wrote = EventLine("w", "review", 0, memories=[Version("venue:v", "positive:a/b", 1, "text")])
    read = event("r", writes={"user:1/short": ["venue:v/positive:a/b@1"]})
    assert spelled(read_contacts([wrote, read])) == {("r", "venue:v", "user:1", "venue")}


def test_what_goes_on_from_an_earlier_event_goes_on_from_who_took_part_in_it() -> None:
    """By its parent, and by a message of an earlier event, whose id may hold the mark of messages itself."""
    first = event("a#1", edges=STEP)
    child = event("a#1/later", writes={"user:2/short": []}, parent="a#1")
    reader = event("r", writes={"user:3/short": ["a#1#talk/#2.0"]})
    sources = {"user:1", "item:a", "item:b"}
    assert spelled(read_contacts([first, child, reader])) == {
        *(("a#1/later", source, "user:2", "read") for source in sources),
        *(("r", source, "user:3", "read") for source in sources),
    }


@pytest.mark.parametrize(
    "line", [event("e", parent="gone"), event("e", writes={"user:1/short": ["gone#talk.0"]})], ids=["parent", "message"]
)
def test_an_event_out_of_nowhere_is_an_error(line: EventLine) -> None:
    with pytest.raises(LogError, match="goes on from gone, which does not stand before it"):
        read_contacts([line])


def test_positions_times_and_parts() -> None:
    """An event that writes nothing has no contact, and those who took part in it all the same."""
    lines = [event("a", time=1.5, edges=STEP), event("b", time=7, edges=STEP[:1], writes={"item:a/memory": []})]
    contacts = read_contacts(lines)
    assert contacts.events == ("a", "b")
    assert (contacts.position.tolist(), contacts.time.tolist(), contacts.times.tolist()) == ([1], [7.0], [1.5, 7.0])
    parts = zip(contacts.part_position.tolist(), contacts.part_agent.tolist(), strict=True)
    assert [(at, contacts.agents[agent]) for at, agent in parts] == [
        (0, "user:1"), (0, "item:a"), (0, "item:b"), (1, "user:1"), (1, "item:a"),
    ]  # fmt: skip
    assert contacts.edges.tolist() == [[0, 1], [0, 2], [0, 1]]
    assert len(read_contacts([]).position) == 0


def test_a_log_of_agentcf(request: pytest.FixtureRequest) -> None:
    """In each step of the golden run, as often as item and user are written, the counts of the first test."""
    with Reader(request.config.rootpath / "replays" / "golden-agentcf" / "events.jsonl") as reader:
        lines = [line for line in reader if line.kind == "interaction"]
    found = spelled(read_contacts(lines))
    assert len(lines) > 3
    for line in lines:
        user, taken, left = (f"{kind}:{line.data[key]}" for kind, key in
                             (("user", "user"), ("item", "item"), ("item", "negative")))  # fmt: skip
        assert {row[1:] for row in found if row[0] == line.event} == {
            (user, taken, "interaction"),
            (taken, user, "interaction"),
            (left, user, "exposure"),
            (left, taken, "exposure"),
        }


@pytest.mark.parametrize(
    ("control", "treatment", "pairs"),
    [
        ("abc", "abc", "aa bb cc"),
        ("abc", "apbc", "aa -p bb cc"),
        ("axbc", "aybc", "aa x- -y bb cc"),
        ("abcx", "ab", "aa bb c- x-"),
        ("", "ab", "-a -b"),
        ("axyzb", "ab", "aa x- y- z- bb"),
    ],
)
def test_two_logs_side_by_side(control: str, treatment: str, pairs: str) -> None:
    found = pair_events(map(event, control), map(event, treatment))
    assert " ".join("".join(line.event if line else "-" for line in pair) for pair in found) == pairs


def test_logs_are_not_read_further_than_needed() -> None:
    read: list[str] = []

    def lines(names: str) -> Any:
        for name in names:
            read.append(name)
            yield event(name)

    pairs = pair_events(lines("abcdef"), lines("apbcdef"))
    for _ in range(3):
        next(pairs)  # a, p, b
    assert "d" not in read


def test_merged_events_hold_what_either_run_did() -> None:
    """An update that failed in one run is a contact by the other."""
    done = event("e", edges=STEP[:1], writes={"user:1/short": [], "item:a/memory": []})
    failed = event("e", edges=STEP[:1], writes={"user:1/short": ["user:9/short@0"]})
    only = event("x", writes={"user:2/short": ["user:1/short@1"]})
    merged = read_contacts(merge_events([done, only], [failed]))
    assert spelled(merged) == {
        ("e", "user:1", "item:a", "interaction"),
        ("e", "item:a", "user:1", "interaction"),
        ("e", "user:9", "user:1", "read"),
        ("e", "user:9", "item:a", "read"),
        ("x", "user:1", "user:2", "read"),
    }
