"""The lexical backend as an inventor: its requests say what its planner understands, and both forms can be read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies.headed import REQUEST
from simengine.llm.request import Request

TITLES = ("Alpha", "Beta, Vol. 2", "Gamma's End", "Delta", "Epsilon")
FACTS = (
    "Jazz; came out in 1995-01-02; taken 3 times so far",
    "Rock; Slow Tempo; costs 5; taken 9 times so far",
    *["Jazz; brand Acme; taken 0 times so far; a text; with parts"] * 3,
)
COLUMNS = ("tags (tags): what it is like; near your request: Jazz, Rock, Slow Tempo; others: Folk",)
SEED = '{"dialogue": ["Recommender: a", "User: b"], "thought": "", "steps": [{"tool": "rank"}, {"tool": "fetch"}]}'


def _ask(task: str, schema: str = "", **slots: Any) -> str:
    shown = {"noun": "CD", "titles": TITLES, "facts": FACTS, **slots}
    return asyncio.run(Lexical().complete(Request(task, "m", (), slots=shown, schema=schema))).text


def _steps(request: str) -> list[dict[str, Any]]:
    asked = {"request": request, "columns": COLUMNS, "demonstrations": ('Request: a\nPlan: {"steps": []}',)}
    return list(json.loads(_ask("converse.plan", **asked))["steps"])


@pytest.mark.parametrize(
    "tools",
    [
        "none",
        "look_up",
        "hard_filter, fetch",
        "soft_filter, fetch",
        "soft_filter, rank, fetch",
        "hard_filter, soft_filter, fetch",
        "store, hard_filter, rank, fetch",
        "store, soft_filter, rank, fetch",
        "look_up, hard_filter, rank, fetch",
        "look_up, soft_filter, rank, fetch",
    ],
)
def test_a_request_is_planned_with_the_tools_that_it_was_made_for(tools: str) -> None:
    for more in range(12):  # how the sentences run goes by the lengths of titles
        titles = (*TITLES[:4], "Epsilon" + "n" * more)
        request = REQUEST.read(_ask("demonstrate.output_first", combination=tools, titles=titles), "")
        used = ", ".join(step["tool"] for step in _steps(request)) or "none"
        assert used == tools, request


def test_the_names_in_a_plan_are_those_of_the_request() -> None:
    store, fetch = _steps(
        "Here is my list: Alpha; Beta, Vol. 2. Which of them shall I take? The order does not matter."
    )
    assert (store["input"], fetch["tool"]) == ({"titles": ["Alpha", "Beta, Vol. 2"]}, "fetch")
    (look_up,) = _steps("How often was Gamma's End taken so far?")
    assert look_up["input"] == {"sql": "SELECT title, visits FROM items WHERE title = 'Gamma''s End'"}
    look_up, hard, rank, _ = _steps("It should be taken more often than Delta, please. I trust in what is popular.")
    assert hard["input"]["sql"] == "SELECT id FROM candidates WHERE visits > $1.visits"
    assert rank["input"] == {"by": "popularity"}


def test_a_tag_in_a_title_that_is_asked_about_is_no_condition() -> None:
    steps = _steps("It should be something like: Rock Bottom, please. The order does not matter.")
    assert [step["tool"] for step in steps] == ["soft_filter", "fetch"]


@pytest.mark.parametrize(
    ("example", "tools"),
    [
        ("Thank you very much, that is all.", []),
        ("How much is Lantern Road?", ["look_up"]),
        ("Here is my list: a. Which?", ["store", "rank", "fetch"]),
        ("Something like Iron Tide, please.", ["soft_filter", "rank", "fetch"]),
        ("It came out before Lantern Road.", ["look_up", "hard_filter", "rank", "fetch"]),
    ],
)
def test_a_request_is_of_the_kind_of_the_first_example(example: str, tools: list[str]) -> None:
    request = REQUEST.read(_ask("demonstrate.input_first", examples=(example, "Hello!")), "")
    assert [step["tool"] for step in _steps(request)] == tools


def test_a_talk_takes_the_tools_of_the_first_example() -> None:
    talk = json.loads(_ask("demonstrate.dialogues", examples=(SEED,)))
    assert [step["tool"] for step in talk["steps"]] == ["rank", "fetch"]
    assert talk["dialogue"][-1].startswith("User: ")
    assert list(talk) == ["dialogue", "thought", "profile", "steps"]


def test_where_there_are_no_tags_it_goes_by_years_or_by_how_often_items_were_taken() -> None:
    years, counts = "came out in 1995; taken 3 times so far", "taken 3 times so far"
    for facts, said in ((years, "came out in 1995"), (counts, "taken 3 to 3 times")):
        text = _ask("demonstrate.output_first", combination="hard_filter, fetch", facts=(facts,) * 5)
        assert said in text
        assert [step["tool"] for step in _steps(REQUEST.read(text, ""))] == ["hard_filter", "fetch"]


def test_in_json_a_request_is_an_object() -> None:
    text = _ask("demonstrate.output_first", "{}", combination="none")
    assert REQUEST.read_json(text, "") == json.loads(text)["request"]
