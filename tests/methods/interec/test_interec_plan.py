from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interec_games import fault_of, make_shop

from simengine.llm.replies import Unreadable
from simengine.methods.interec.bus import Bus, Record
from simengine.methods.interec.faults import CODES, Fault
from simengine.methods.interec.plan import Plan, execute, refuse
from simengine.methods.interec.reply import read, write
from simengine.methods.interec.results import Fetched

SHOP = make_shop()


def _carried_out(reply: str, bus: Bus | None = None) -> tuple[Record, ...]:
    """What the tracker holds after a reply, whatever it says."""
    bus = bus or Bus(len(SHOP.table))
    try:
        return execute(read(reply), bus, SHOP, random.Random(1))
    except (Unreadable, Fault) as error:
        return (refuse(reply, fault_of(error), bus),)


def _plan(*steps: object) -> str:
    return json.dumps({"thought": "so be it", "steps": steps})


def _step(tool: object, given: object) -> dict[str, object]:
    return {"tool": tool, "input": given}


@pytest.mark.parametrize(
    "reply",
    [
        '{"thought": "just a chat", "steps": []}',
        'Sure!\n```json\n{"thought": "just a chat", "plan": []}\n```\nDone.',
        '<think>{"steps": [{"tool": "fetch"}]}</think>{"thought": "just a chat", "steps": []}',
    ],
)
def test_a_turn_that_needs_no_tool_has_an_empty_plan(reply: str) -> None:
    assert read(reply) == Plan("just a chat")


@pytest.mark.parametrize(
    "reply",
    [
        _plan(_step("Rank", {"by": "popularity"}), _step("FETCH", 3)),
        '[{"tool": "rank", "input": "popularity"}, {"name": "fetch", "arguments": {"n": 3}}]',
        '{"answer": {"Steps": [{"Tool": "rank", "Tool_Input": {}}, {"action": "fetch", "args": {"n": 3}}]}}',
    ],
)
def test_a_plan_is_read_in_the_forms_that_models_write(reply: str) -> None:
    records = _carried_out(reply)
    assert [(it.step, it.tool, it.code, it.before, it.after) for it in records] == [
        (1, "rank", "", 16, 16),
        (2, "fetch", "", 16, 16),
    ]
    assert isinstance(records[1].result, Fetched)
    assert len(records[1].result.items) == 3


def test_what_is_written_is_read_back() -> None:
    plan = read(_plan(_step("rank", {"liked": ["原神"]}), _step("look_up", "SELECT 1"), _step("store", ["b"])))
    assert [step.tool for step in plan.steps] == ["rank", "look_up", "store", "fetch"]
    assert read(write(plan)) == plan


@pytest.mark.parametrize(
    ("tools", "appended"),
    [(["look_up"], False), (["rank"], True), (["rank", "fetch"], False), (["store", "fetch", "rank"], True)],
)
def test_a_fetch_is_appended_where_a_recommending_plan_forgot_it(tools: list[str], appended: bool) -> None:
    inputs = {"look_up": "SELECT 1", "store": ["b"], "rank": {}, "fetch": {}}
    plan = read(_plan(*(_step(tool, inputs[tool]) for tool in tools)))
    assert [step.tool for step in plan.steps] == tools + ["fetch"] * appended


def test_the_whole_funnel() -> None:
    records = _carried_out(
        _plan(
            _step("look_up", {"sql": "SELECT title, release_date FROM items WHERE title = 'half life'"}),
            _step("hard_filter", {"sql": "SELECT id FROM candidates WHERE release_date > $1.release_date"}),
            _step("rank", {"liked": ["$1.title"], "unwanted": ["Portal 2"]}),
            _step("fetch", {"n": 2}),
            _step("soft_filter", {"titles": ["$4.title"]}),
        )
    )
    assert [(it.tool, it.code, it.before, it.after) for it in records] == [
        ("look_up", "", 16, 16),
        ("hard_filter", "", 16, 14),  # all but Half-Life and the one without a date
        ("rank", "", 14, 13),
        ("fetch", "", 13, 16),
        ("soft_filter", "", 16, 1),
        ("fetch", "", 1, 16),
    ]
    assert json.loads(records[2].input)["liked"] == ["Half-Life"]
    fetched = records[3].result
    assert isinstance(fetched, Fetched)
    assert [it.title for it in fetched.items] == ["100% Orange Juice", "Warfare 1917"]


def test_a_repeated_tool_is_used_each_time() -> None:
    low, high = ("SELECT id FROM candidates WHERE price < 10", "SELECT id FROM candidates WHERE price > 5")
    records = _carried_out(_plan(_step("hard_filter", low), _step("hard_filter", high)))
    assert [(it.before, it.after) for it in records] == [(16, 12), (12, 7), (7, 16)]


def test_a_step_behind_one_that_failed_goes_on_unless_it_refers_to_it() -> None:
    records = _carried_out(
        _plan(_step("look_up", "SELECT colour FROM items"), _step("soft_filter", ["$1.title"]), _step("fetch", {}))
    )
    assert [it.code for it in records] == ["not_found", "empty_reference", ""]


@given(st.text())
def test_any_text_ends_in_the_tracker(text: str) -> None:
    for reply in (text, _plan(_step("hard_filter", text)), _plan(_step("store", [text])), _plan(_step(text, {}))):
        for record in _carried_out(reply):
            assert record.code == "" or record.code in CODES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("$1.title"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["sql", "titles", "n", "by"]), inner),
    max_leaves=6,
)
STEPS = st.fixed_dictionaries(
    {"tool": st.sampled_from(["look_up", "hard_filter", "soft_filter", "rank", "store", "fetch"]), "input": JSON}
)


@given(st.lists(STEPS | JSON, max_size=4))
def test_any_json_ends_in_the_tracker(steps: list[object]) -> None:
    for record in _carried_out(_plan(*steps)):
        assert record.code == "" or record.code in CODES
