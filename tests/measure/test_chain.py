"""How a preference came to those who hold it: a small log by hand, walked back along causes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import networkx
import pytest
from histories_by_hand import Keeps, Says, write_story

from simengine.errors import InputError
from simengine.measure.chain import Chain, Followed
from simengine.measure.holding import read_holdings
from simengine.measure.preference import Preference
from simengine.runlog.trace import Trace

THEREMIN = Preference("I like moonlit theremin.")
TEXT = "I like moonlit theremin."
A = "It is a record.\nIt suits people who like: brass; moonlit theremin."
"""What items hold; users say it in a list."""
U = "I like: moonlit theremin; fog horns.\nI dislike: brass."
LACKS = "I like: brass.\nI dislike: moonlit theremin."

STORY: list[tuple[str, list[Says], list[Keeps]]] = [
    # The seed is given it, and keeps it in two more versions.
    ("plant", [], [("user:1", "short", 1, f"{TEXT}\nI like all.", ["user:1/short@0"])]),
    (
        "e1",
        [("item:b", "user:1", "description", None, ["item:b/memory@0"])],
        [("user:1", "short", 2, U, ["user:1/short@1", "e1#.0"])],
    ),
    ("e2", [], [("user:1", "short", 3, U, ["user:1/short@2"])]),
    # It tells item a, by a choice that does not speak of it.
    (
        "e3",
        [("user:1", "item:a", "choice", "It has brass.", ["user:1/short@3"])],
        [("item:a", "memory", 1, A, ["e3#.0", "user:1/short@3", "item:a/memory@0"])],
    ),
    # User 2 is shown item a and says so; the memory itself is among the causes, too.
    (
        "e4",
        [
            ("item:a", "user:2", "description", None, ["item:a/memory@1"]),
            ("user:2", "item:a", "choice", "I like its moonlit theremin.", ["e4#.0", "user:2/short@0"]),
        ],
        [("user:2", "short", 1, U, ["e4#.1", "user:2/short@0", "item:a/memory@1"])],
    ),
    # User 2 tells user 3 in one event, who remembers it in another.
    ("e5", [("user:2", "user:3", "talk", "Try a moonlit theremin.", ["user:2/short@1"])], []),
    ("e6", [], [("user:3", "short", 1, U, ["e5#.0", "user:3/short@0"])]),
    # User 3 reads what holds it from two sides: item a had it first, as the tree of carriers has it.
    ("e7", [], [("user:4", "short", 1, U, ["user:3/short@1", "item:a/memory@1", "user:4/short@0"])]),
    # A message is the source where nobody's memory holds what it says.
    ("e8", [("user:6", "venue:1", "talk", "I love a moonlit theremin.", ["user:6/short@0"])], []),
    ("e9", [], [("user:5", "short", 1, U, ["e8#.0", "user:5/short@0"])]),
    # User 2 loses it, and has it again from item c, which began with it.
    ("e10", [], [("user:2", "short", 2, LACKS, ["user:2/short@1"])]),
    (
        "e11",
        [("item:c", "user:2", "description", None, ["item:c/memory@0"])],
        [("user:2", "short", 3, U, ["user:2/short@2", "e11#.0"])],
    ),
]
"""Events with their messages and memories; each stands at a time of its place."""
FIRST = {"item:c": {"memory": f"A third. {A}"}}


def initial(agent: str) -> Mapping[str, Any]:
    return FIRST.get(agent, {"short": "I like all."} if agent.startswith("user") else {"memory": "A record."})


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    trace = Trace(write_story(tmp_path / "events.jsonl", STORY), initial)
    holdings = read_holdings(trace, THEREMIN, {agent: trace.begun(agent) for agent in trace.agents})
    return Followed(trace, THEREMIN, holdings, {"user:1": ["user:1/short@1"]})


def names(chain: Chain) -> list[str]:
    return [link.record.name for link in chain.links]


def test_a_chain_goes_from_the_planting_over_what_was_kept_chosen_and_shown(followed: Followed) -> None:
    chain = followed.chain("user:2")
    assert chain.planted
    assert chain.hops == 2
    assert [(link.record.name, link.phrases) for link in chain.links] == [
        ("user:1/short@1", ("I like moonlit theremin",)),
        ("user:1/short@2", ("I like: moonlit theremin",)),
        ("user:1/short@3", ("I like: moonlit theremin",)),
        ("e3#.0", ()),
        ("item:a/memory@1", ("It suits people who like: moonlit theremin",)),
        ("e4#.0", ("It suits people who like: moonlit theremin",)),  # it shows the memory
        ("e4#.1", ("I like its moonlit theremin",)),
        ("user:2/short@1", ("I like: moonlit theremin",)),
    ]


def test_each_record_of_a_chain_is_a_cause_of_the_next(followed: Followed) -> None:
    for agent in followed.first:
        records = [link.record for link in followed.chain(agent).links]
        assert all(before.name in after.because for before, after in pairwise(records))


def test_a_message_of_an_earlier_event_is_followed(followed: Followed) -> None:
    assert names(followed.chain("user:3"))[-3:] == ["user:2/short@1", "e5#.0", "user:3/short@1"]


def test_of_several_who_held_it_the_first_counts_as_in_the_tree(followed: Followed) -> None:
    assert names(followed.chain("user:4"))[-2:] == ["item:a/memory@1", "user:4/short@1"]
    (carrier,) = (carrier for carrier in followed.tree if carrier.agent == "user:4")
    assert carrier.carrier == "item:a"


def test_a_message_is_the_source_where_no_memory_holds_it(followed: Followed) -> None:
    chain = followed.chain("user:5")
    assert names(chain) == ["e8#.0", "user:5/short@1"]
    assert not chain.planted


def test_who_began_with_it_is_no_seed(followed: Followed) -> None:
    chain = followed.chain("item:c")
    assert (names(chain), chain.planted, chain.hops) == (["item:c/memory@0"], False, 0)
    assert str(chain).splitlines()[:2] == [
        f'item:c came to hold "{TEXT}" from item:c (not planted), hops: 0',
        "item:c/memory@0  before the run",
    ]


def test_the_tree_has_all_who_ever_held_it_and_generations_are_the_hops(followed: Followed) -> None:
    assert [(each.agent, each.carrier, each.generation) for each in followed.tree] == [
        ("item:c", None, 0),
        ("user:1", None, 0),
        ("user:5", None, 0),
        ("item:a", "user:1", 1),
        ("user:2", "item:a", 2),
        ("user:4", "item:a", 2),
        ("user:3", "user:2", 3),
    ]
    for each in followed.tree:
        assert followed.chain(each.agent).hops == each.generation, each.agent


def test_the_text_skips_versions_that_only_kept_it(followed: Followed) -> None:
    assert str(followed.chain("item:a")) == (
        f'item:a came to hold "{TEXT}" from user:1 (planted at time 0), hops: 1\n'
        "user:1/short@1  plant, time 0\n"
        "    I like moonlit theremin\n"
        "user:1/short@3  e2, time 2, kept by 1 version before\n"
        "    I like: moonlit theremin\n"
        "-> e3#.0  user:1 -> item:a, choice, time 3\n"
        "    (does not say it)\n"
        "item:a/memory@1  e3, time 3\n"
        "    It suits people who like: moonlit theremin"
    )


def test_a_chain_is_data(followed: Followed) -> None:
    chain = followed.chain("user:2")
    assert msgspec.json.decode(msgspec.json.encode(chain), type=Chain) == chain


def test_a_chain_is_a_graph_of_causes(followed: Followed) -> None:
    chain = followed.chain("user:2")
    graph = chain.to_networkx()
    assert list(graph) == names(chain)
    assert networkx.is_directed_acyclic_graph(graph)
    assert set(pairwise(names(chain))) < set(graph.edges)
    # Beside the chain, memories that were read directly are causes as well.
    assert set(graph.edges) - set(pairwise(names(chain))) == {
        ("user:1/short@3", "item:a/memory@1"),
        ("item:a/memory@1", "user:2/short@1"),
    }
    assert graph.nodes["e4#.0"] == {
        "kind": "description",
        "agent": "item:a",
        "recipient": "user:2",
        "event": "e4",
        "time": 4,
        "text": "",
        "phrases": ["It suits people who like: moonlit theremin"],
    }
    assert graph.nodes["user:2/short@1"]["kind"] == "memory"


def test_who_never_held_it_is_told_with_those_who_did(followed: Followed) -> None:
    with pytest.raises(
        InputError, match=r"never held .*\n  7 agents did: item:c, user:1, item:a, user:2, user:3, \.\."
    ):
        followed.chain("user:6")
    with pytest.raises(InputError, match=r"no agent user:66\n  Nearest: user:6"):
        followed.chain("user:66")


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("I like brass. I LOVE Moonlit Theremins! And all else.", ("I LOVE Moonlit Theremins!",)),
        ("I dislike: moonlit theremin. I like: fog horns; a Moonlit théremin.", ("I like: a Moonlit théremin",)),
        ("I dislike: moonlit theremin; brass.", ()),
        (
            "I like: moonlit theremin.\nA moonlit theremin suits me.",
            ("I like: moonlit theremin", "A moonlit theremin suits me"),
        ),
    ],
)
def test_phrases_that_hold_it_stand_as_in_the_text(text: str, phrases: tuple[str, ...]) -> None:
    assert THEREMIN.phrases_in(text) == phrases
    assert THEREMIN.held_in(text) == bool(phrases)
