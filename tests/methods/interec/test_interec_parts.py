"""The parts of a conversation by themselves: named titles, profiles, demonstrations, what is known of an item."""

from __future__ import annotations

import dataclasses
import json

import pytest
from interec_games import TAKEN, make_shop, shop_data

from simengine.data import Case, Item
from simengine.llm.replies import Unreadable
from simengine.methods.interec import naming, profile, reply
from simengine.methods.interec.demonstrations import SEED, Demonstrations
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.plan import Plan, Step
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.seeker import _conditions, histories
from simengine.methods.interec.table import build
from simengine.methods.interec.tasks import read_planned


@pytest.mark.parametrize(
    ("text", "title", "others", "named"),
    [
        ("I want Portal.", "Portal", (), True),
        ("I want PORTAL!", "Portal", (), True),
        ("I had Portal 2.", "Portal", ("Portal 2",), False),
        ("I had Portal 2, and want Portal.", "Portal", ("Portal 2",), True),
        ("I had Twins.", "Twins", ("Twins",), True),  # what is called alike does not cover it
        ("I had Heat (1986).", "Heat (1995)", ("Heat (1986)",), False),
        ("I had Portal 2.", "Portal", (), True),  # no title is known that would cover it
        ("important portals", "Portal", (), False),
        ("Plan b it is", "b", (), True),
        ("abc", "b", (), False),
        ("我想玩原神吗", "原神", (), True),
        ("Хочу Мор. Утопия", "Мор. Утопия", (), True),
        ("the witcher 3 wild hunt", "The Witcher 3: Wild Hunt", (), True),
        ("Heat of 1995", "Heat (1995)", (), True),
        ("", "Portal", (), False),
    ],
)
def test_a_title_is_named_as_whole_words(text: str, title: str, others: tuple[str, ...], named: bool) -> None:
    assert naming.names(text, title, others) is named


def test_phrases_are_counted_as_whole_words() -> None:
    assert naming.held("Action, first person; came out in 2004.", ["Action", "First-Person", "came out in 200"]) == 2
    assert naming.held("我想玩动作游戏。", ["动作", "角色扮演"]) == 1


def test_the_newer_profile_holds_where_two_conflict() -> None:
    older = Profile(("a", "b"), ("c",), ("x",))
    assert older.merged(Profile(("c",), ("a",), ("y",))) == Profile(("b", "c"), ("a",), ("y",))
    assert older.merged(Profile()) == Profile(("a", "b"), ("c",), ())


def test_profiles_conflict_whatever_the_case() -> None:
    assert Profile(("Portal",)).merged(Profile((), ("PORTAL",))) == Profile((), ("PORTAL",))


def test_a_profile_keeps_the_newest_entries() -> None:
    many = tuple(f"t{at}" for at in range(30))
    assert Profile().merged(Profile(many)).like == many[10:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"profile": {"like": ["a"], "dislike": [], "expect": ["b"]}, "steps": []}', Profile(("a",), (), ("b",))),
        ('{"steps": []}', Profile()),
        ('{"profile": {"like": "a"}, "steps": []}', Profile()),
        ('{"profile": {"like": [{"a": 1}]}, "steps": []}', Profile()),
        ('{"profile": {"like": ["a"]}, "plan": {"steps": []}}', Profile(("a",))),
        ('{"like": ["a"], "steps": []}', Profile(("a",))),
        ('{"profile": {"like": ["a"]}, "steps": []} {"profile": {"like": ["b"]}, "steps": []}', Profile()),
        ('{"profile": {"like": ["a\\ud800"]}, "steps": []}', Profile(("a?",))),
        ('[{"tool": "fetch"}]', Profile()),
        ('{"steps": []} {"profile": {"like": ["a', Profile()),
    ],
)
def test_a_profile_is_read_beside_the_plan_or_empty(text: str, expected: Profile) -> None:
    found = read_planned(text, {})
    assert (found.profile, found.fault) == (expected, None)


def test_likes_are_told_to_rankings_by_preference_alone_and_dislikes_to_all() -> None:
    table = make_shop().table
    steps = tuple(
        Step("rank", json.dumps({"by": by, "liked": [], "unwanted": ["b"]})) for by in ("popularity", "preference")
    )
    told = profile.with_profile(Plan("", steps), Profile(("Portal", "Puzzle"), ("Portal 2", "Twins")), table)
    given = [json.loads(step.input) for step in told.steps]
    assert [it["liked"] for it in given] == [[], ["Portal"]]
    assert [it["unwanted"] for it in given] == [["Portal 2", "Twins", "b"]] * 2  # both games of that name


def test_what_a_plan_itself_leaves_out_is_left_out_beside_all_that_is_not_wanted() -> None:
    """There is room for twenty titles: of those that are known the oldest give way."""
    table = build(shop_data([Item(f"i{at}", f"Song {at}", "", "", {}) for at in range(30)], {"u": ("i0", "i1")}))
    known = Profile((), tuple(f"Song {at}" for at in range(5, 25)))
    plan = Plan("", (Step("rank", json.dumps({"by": "popularity", "liked": [], "unwanted": ["Song 1", "Song 2"]})),))
    unwanted = json.loads(profile.with_profile(plan, known, table).steps[0].input)["unwanted"]
    assert unwanted == [*(f"Song {at}" for at in range(7, 25)), "Song 1", "Song 2"]


def test_what_is_not_wanted_is_not_liked_however_it_is_written() -> None:
    table = make_shop().table
    plan = Plan("", (Step("rank", json.dumps({"by": "preference", "liked": ["half life"], "unwanted": []})),))
    told = profile.with_profile(plan, Profile(("PORTAL", "b"), ("Portal", "Half-Life")), table)
    assert json.loads(told.steps[0].input)["liked"] == ["b"]


def test_every_demonstration_is_a_plan_that_can_be_carried_out() -> None:
    shelf = Demonstrations()
    shown = shelf.shown(range(len(shelf.requests)))
    for request, pair in zip(shelf.requests, SEED, strict=True):
        assert (pair.request, reply.read(reply.write(pair.plan))) == (request, pair.plan)
    assert len(set(shelf.requests)) == len(shelf.requests) == len(SEED)
    assert shown[2].startswith(f"Request: {SEED[2].request}\nPlan: {{")


def test_what_is_known_of_an_item_is_what_the_data_tell() -> None:
    """Half-Life 2 was taken by three of five users, and what is told of its popularity fits; O'Brien's has no date."""
    data = shop_data()
    known = _conditions(data, build(data))
    assert known["g4"][:4] == ("Action", "First-Person", "came out in 2004", "costs 9.99")
    assert known["g4"][4].startswith("taken ")
    assert known["g10"][:-1] == ("Puzzle Platformer",)
    low, high = (int(word) for word in known["g4"][4].split() if word.isdigit())
    assert low <= sum("g4" in row for row in TAKEN.values()) <= high


def test_a_user_knows_what_he_has_had() -> None:
    case = Case("u1", "g8", ("g1", "g2"), ("g8",), 9)
    data = dataclasses.replace(shop_data(), cases=(case,))
    assert histories(data, build(data)) == {"u1": "Portal\nPortal 2"}


def test_a_plan_that_cannot_be_carried_out_is_a_value_and_no_plan_is_unreadable() -> None:
    found = read_planned('{"thought": "x", "steps": [{"tool": "shell"}]}', {})
    assert isinstance(found.fault, Fault)
    assert (found.fault.code, found.plan.steps) == ("unknown_tool", ())
    with pytest.raises(Unreadable):
        read_planned("I would rather not.", {})


def test_a_thought_can_always_be_kept() -> None:
    assert read_planned('{"thought": "a\\ud800b", "steps": []}', {}).plan.thought.encode() == b"a?b"
