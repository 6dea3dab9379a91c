"""Who could have it, counted by kind of contact and by distance: cases counted by hand."""

from __future__ import annotations

import numpy as np

from simengine.kernel import Version
from simengine.measure.contacts import read_contacts
from simengine.measure.possible import Apart, Met, apart, met
from simengine.measure.reachability import Reach, reach
from simengine.runlog import EventLine
from simengine.world import Edge


def reached(*rows: str) -> Reach:
    """What comes of user 1, where ``"1 a b"`` is an event in which user 1 takes a and not b, and both are written."""
    lines = []
    for at, row in enumerate(rows):
        user, item, negative = (
            f"{kind}:{name}" for kind, name in zip(("user", "item", "item"), row.split(), strict=True)
        )
        line = EventLine(f"e{at}", "interaction", at)
        line.edges = (Edge(user, item, "interaction", at), Edge(user, negative, "exposure", at))
        line.memories = [Version(user, "short", at, ""), Version(item, "memory", at, "")]
        lines.append(line)
    return reach(read_contacts(lines), {"user:1": 0})


def test_contacts_are_counted_by_kind_over_all_plantings() -> None:
    """1 hands it to a; 2 leaves a and takes b, then c; 3 takes c and leaves b."""
    one = reached("1 a z", "2 b a", "2 c a", "3 c b")
    # interaction: a from 1, c from 2, 3 from c; exposure: b from a, 2 twice from a, c from a and from b, 3 from b
    assert met([one]) == (Met("interaction", 3, 3), Met("exposure", 6, 4))
    assert met([one, one]) == (Met("interaction", 6, 6), Met("exposure", 12, 8))
    assert met([reached("2 a z")]) == ()


def test_distance_goes_by_edges_of_any_time_and_reach_by_their_order() -> None:
    """3 met a before 1 did: two edges away like 2, but nothing leads to it."""
    one = reached("3 a z", "1 a y", "2 a x", "2 c x")
    holders = np.isin(np.array(one.agents), ["user:1", "item:a", "item:c"])
    assert apart([one], [holders]) == (Apart(0, 1, 1, 1), Apart(1, 2, 1, 1), Apart(2, 2, 1, 0), Apart(3, 3, 1, 1))


def test_whom_contacts_reach_without_edges_stands_apart() -> None:
    line = EventLine("e0", "grouping.form", 0)
    line.memories = [Version("grouping:current", "groups", 1, [], because=["user:1/short@0"])]
    one = reach(read_contacts([line]), {"user:1": 0})
    assert apart([one], [np.zeros(2, np.bool_)]) == (Apart(0, 1, 1, 0), Apart(None, 1, 1, 0))
    assert met([one]) == (Met("read", 1, 1),)
