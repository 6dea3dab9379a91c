"""Who holds a preference from which event to which, and through whom it came: a small log by hand, read to the end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from simengine.kernel import Version
from simengine.measure.carriers import carried, tree_of_carriers
from simengine.measure.contacts import read_contacts
from simengine.measure.decay import Decay, Planting, measure_decay
from simengine.measure.decay_figure import draw_by_hop, draw_by_time
from simengine.measure.held import Held
from simengine.measure.holding import Holdings, Spell, read_holdings
from simengine.measure.preference import Preference
from simengine.measure.reachability import reach
from simengine.runlog import EventLine, MessageLine
from simengine.world import Edge

THEREMIN = Preference("I like: moonlit theremin.")
HOLDS, LACKS = "I like: brass; moonlit theremin.", "I like: brass.\nI dislike: moonlit theremin."
INITIAL = {"user:1": {"short": HOLDS, "long": ""}, "user:2": {"short": LACKS}, "item:a": {"memory": "A record."}}


def meeting(name: str, time: float, user: str, item: str, *memories: Version, said: tuple[str, ...] = ()) -> EventLine:
    """An interaction; ``said`` are the causes of the one message in it, ``<name>#0``."""
    messages = [MessageLine(f"{name}#0", item, user, "description", None, list(said))] if said else []
    line = EventLine(name, "interaction", time, edges=(Edge(user, item, "interaction", time),), messages=messages)
    line.memories = list(memories)
    return line


LOG = [
    # The item takes it from the seed, by way of a message of this event.
    meeting("e0", 1, "user:1", "item:a", Version("item:a", "memory", 1, HOLDS, "", ["e0#0"]), said=("user:1/short@0",)),
    # User 2 takes it from the item; an update within the event that lacks it in between does not count.
    meeting(
        "e1",
        2,
        "user:2",
        "item:a",
        Version("user:2", "short", 1, LACKS, "", ["user:2/short@0"]),
        Version("user:2", "short", 2, HOLDS, "", ["user:2/short@1", "e1#0"]),
        Version("user:2", "long", 1, HOLDS, "", ["user:2/short@0"], True),
        said=("item:a/memory@1",),
    ),
    # The seed loses it; user 3 reads an older message, and one of user 2, who held it later than the item.
    meeting("e2", 4, "user:1", "item:a", Version("user:1", "short", 1, LACKS, "", ["item:a/memory@1"])),
    meeting("e3", 5, "user:3", "item:b", Version("user:3", "short", 1, HOLDS, "", ["user:2/short@2", "e1#0"])),
    # Item b comes to hold it by nobody's memory; user 1 again, from its own past.
    meeting("e4", 6, "user:3", "item:b", Version("item:b", "memory", 1, HOLDS, "", ["item:b/memory@0"])),
    meeting("e5", 8, "user:1", "item:b", Version("user:1", "short", 2, HOLDS, "", ["user:1/short@0"])),
    meeting("e6", 10, "user:2", "item:a"),
]
SPELLS = (
    Spell("user:1", -1, 1, 2, 4, "user:1/short@0"),
    Spell("item:a", 0, 1, version="item:a/memory@1", carriers=("user:1",)),
    Spell("user:2", 1, 2, version="user:2/short@2", carriers=("item:a",)),
    Spell("user:3", 3, 5, version="user:3/short@1", carriers=("item:a", "user:2")),
    Spell("item:b", 4, 6, version="item:b/memory@1"),
    Spell("user:1", 5, 8, version="user:1/short@2"),
)


def test_spells_with_the_memories_that_brought_them() -> None:
    assert read_holdings(LOG, THEREMIN, INITIAL) == Holdings(SPELLS, 7, 1, 10)


def test_slots_are_those_that_are_named_and_entries_stay() -> None:
    entries = [
        meeting("e0", 0, "user:1", "item:a", Version("user:1", "diary", 1, HOLDS, append=True)),
        meeting("e1", 1, "user:1", "item:a", Version("user:1", "diary", 2, LACKS, append=True)),
        meeting("e2", 2, "user:1", "item:a", Version("user:1", "short", 1, HOLDS)),
    ]
    assert [spell.begin for spell in read_holdings(entries, THEREMIN, {}).spells] == [2]
    (spell,) = read_holdings(entries, THEREMIN, {}, ("diary",)).spells
    assert (spell.begin, spell.end) == (0, None)


def test_a_memory_that_is_no_text_is_read_as_json() -> None:
    line = meeting("e0", 0, "user:1", "item:a", Version("user:1", "short", 1, {"likes": ["moonlit theremin"]}))
    assert len(read_holdings([line], THEREMIN, {}).spells) == 1


def test_an_empty_log_has_what_was_there_from_the_start() -> None:
    found = read_holdings([], THEREMIN, INITIAL)
    assert [(spell.agent, spell.begin) for spell in found.spells] == [("user:1", -1)]
    assert found.events == 0


def test_the_tree_of_carriers_follows_the_first_who_held_it() -> None:
    tree = tree_of_carriers(Holdings(SPELLS, 7, 1, 10), ["user:1"])
    assert [(each.agent, each.carrier, each.generation, each.position) for each in tree] == [
        ("user:1", None, 0, -1),
        ("item:a", "user:1", 1, 0),
        ("user:2", "item:a", 2, 1),
        ("user:3", "item:a", 2, 3),  # and not item:b, which has it from nowhere
    ]
    assert carried(tree).tolist() == [1, 1, 2]
    assert tree_of_carriers(Holdings(SPELLS, 7, 1, 10), ["user:9"]) == ()


@pytest.mark.parametrize("position", range(7))
def test_before_and_after_each_event(position: int) -> None:
    """Held by the spells' own words, one by one."""
    numbers = {"user:1": 0, "item:a": 1, "user:2": 2, "user:3": 3, "item:b": 4, "nobody": 5}
    held = Held(Holdings(SPELLS, 7, 1, 10), numbers)
    agents, places = np.arange(6), np.full(6, position)

    def told(place: int) -> list[bool]:
        return [
            any(
                spell.agent == agent and spell.begin <= place < (7 if spell.end is None else spell.end)
                for spell in SPELLS
            )
            for agent in numbers
        ]

    assert held.after(agents, places).tolist() == told(position)
    assert held.before(agents, places).tolist() == told(position - 1)
    assert held.ever().tolist() == [True] * 5 + [False]
    assert held.at(4).tolist() == [False, True, True, False, False, False]  # lost at 4, so no more at 4


@pytest.fixture
def decay() -> Decay:
    contacts = read_contacts(LOG)
    treatment = read_holdings(LOG, THEREMIN, INITIAL)
    control = read_holdings(LOG[4:5] * 7, THEREMIN, {})  # in which item b holds it too
    one = Planting(contacts, reach(contacts, {"user:1": 0}), treatment, control)
    return measure_decay([one] * 2)


def test_a_log_is_measured_to_the_end(decay: Decay) -> None:
    told = {row.kind: (row.successes, row.trials) for row in decay.transmission}
    # e0 and e1 pass it on; in e3 both were read without an edge; e4 has user 3 beside item b, e5 item b beside user 1.
    # e2 has a target that holds it. Both plantings count.
    assert told == {"all": (10, 10), "interaction": (8, 8), "read": (2, 2)}
    assert [(share.at, share.agents, share.holders) for share in decay.hops] == [
        (0, 2, 2),
        (1, 2, 2),
        (2, 4, 4),
        (3, 2, 2),
    ]
    assert [share.control.value for share in decay.hops] == [0, 0, 0, 1]
    assert (decay.loss.losses, decay.loss.spells, decay.loss.held) == (2, 12, 2 * (3 + 9 + 8 + 5 + 4 + 2))
    assert [(row.carriers, row.carried) for row in decay.reproduction] == [(2, 2), (2, 4), (4, 0)]


def test_figures_show_shares_the_control_and_the_fit(decay: Decay, tmp_path: Path) -> None:
    by_hop, by_time = draw_by_hop(tmp_path / "hop.png", decay), draw_by_time(tmp_path / "time.png", decay)
    names = ["treatment", "control", "net of control"]
    assert [text.get_text() for text in by_hop.legends[0].get_texts()] == [*names, "fitted"]
    assert [text.get_text() for text in by_time.legends[0].get_texts()] == names
    drawn = {line.get_label(): line.get_ydata().tolist() for line in by_hop.axes[0].lines}
    assert drawn["control"] == [0, 0, 0, 1]
    assert drawn["fitted"] == [1, 1, 1, 1]
    for figure in (by_hop, by_time):
        caption = " ".join(figure.get_supxlabel().split())
        assert "2 plantings" in caption
    assert "multiple exposures" in " ".join(by_hop.get_supxlabel().split())
    assert "lost it 2 times in 12 spells" in " ".join(by_time.get_supxlabel().split())
    again = msgspec.json.decode(msgspec.json.encode(decay), type=Decay)
    draw_by_hop(tmp_path / "again.png", again)
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "hop.png").read_bytes()


def test_who_has_it_from_another_memory_of_its_own_has_it_from_who_brought_it_there() -> None:
    """As where a user keeps several memories, of which others know only the one that sums up all: ``short``."""
    of_two = Version("user:2", "film", 1, HOLDS, "", ["item:a/memory@0"])
    summed = Version("user:2", "short", 1, HOLDS, "", ["user:2/film@1"])
    first = {"user:2": {"short": LACKS, "film": ""}, "item:a": {"memory": HOLDS}}
    later = meeting("later", 2, "user:2", "item:b", summed)
    for log in (
        [meeting("e", 1, "user:2", "item:a", of_two), later],
        [meeting("e", 1, "user:2", "item:a", of_two, summed)],
    ):
        found = read_holdings(log, THEREMIN, first)
        assert [(spell.agent, spell.carriers) for spell in found.spells] == [("item:a", ()), ("user:2", ("item:a",))]
        assert [(carrier.agent, carrier.carrier) for carrier in tree_of_carriers(found, {"item:a"})] == [
            ("item:a", None),
            ("user:2", "item:a"),
        ]
