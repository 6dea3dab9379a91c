"""The lexical backend in a talk: what the user tells, what is planned from it, what the critic sees."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import decision, talk
from simengine.llm.request import Request

COLUMNS = (
    "tags (tags): what it is like; near your request: Jazz, Slow Tempo; others: Rock, Folk",
    "visits (number): how often it was taken; from 0 to 9",
)
EXAMPLE = 'Request: I had a.\nPlan: {"thought": "", "steps": [{"tool": "rank", "input": {}}, {"tool": "fetch"}]}'
FIRST = "I have enjoyed: A One; B, Vol. 2. I am looking for something with: Jazz."


def _ask(task: str, **slots: Any) -> str:
    request = Request(f"converse.{task}", "m", (), slots={"noun": "CD", **slots})
    return asyncio.run(Lexical().complete(request)).text


def _user(*dialogue: str) -> talk.Turn:
    slots = {
        "history": ("A One", "B, Vol. 2"),
        "target": "The Wanted One",
        "conditions": ("Jazz", "taken 2 to 3 times"),
    }
    return talk.read(_ask("user", dialogue=dialogue, **slots), "I want it", ("The Wanted One",))


def _steps(task: str = "plan", **slots: Any) -> list[tuple[str, Any]]:
    answer = json.loads(_ask(task, **{"columns": COLUMNS, "request": FIRST, **slots}))
    return [(step["tool"], step["input"]) for step in answer["steps"]]


def test_a_user_tells_one_thing_at_a_time_then_says_goodbye_and_never_names_the_target() -> None:
    dialogue: list[str] = []
    said = []
    for _ in range(4):
        said.append(_user(*dialogue))
        dialogue += [f"User: {said[-1].text}", "Recommender: You may like: X. Does one of them suit you?"]
    assert said[0].text == FIRST
    assert [turn.goodbye for turn in said] == [False, False, False, True]
    assert "taken 2 to 3 times" in said[1].text
    assert not any("Wanted" in turn.text for turn in said)


def test_the_plan_has_the_tools_of_the_example_and_what_the_user_told() -> None:
    sql = {"sql": "SELECT id FROM candidates WHERE tags LIKE '%|Jazz|%'"}
    liked = {"by": "preference", "liked": ["A One", "B, Vol. 2"], "unwanted": []}
    assert _steps(demonstrations=(EXAMPLE,)) == [("hard_filter", sql), ("rank", liked), ("fetch", {"n": 5})]
    assert _steps() == [("hard_filter", sql), ("fetch", {"n": 5})]


def test_what_was_told_in_the_talk_holds_on() -> None:
    request = "None of these, thank you. It is also something with: taken 2 to 3 times so far."
    (_, given), *_ = _steps(dialogue=(f"User: {FIRST}",), request=request)
    assert given["sql"].endswith("WHERE tags LIKE '%|Jazz|%' AND visits BETWEEN 2 AND 3")


def test_a_tag_in_a_title_is_no_condition() -> None:
    (_, given), *_ = _steps(request="I have enjoyed: Slow Tempo. I am looking for something with: Jazz.")
    assert given["sql"] == "SELECT id FROM candidates WHERE tags LIKE '%|Jazz|%'"


def test_a_year_is_a_condition() -> None:
    (_, given), *_ = _steps(request="I am looking for something with: came out in 1995.")
    assert given["sql"] == "SELECT id FROM candidates WHERE release_date LIKE '1995%'"


def test_a_price_is_a_condition() -> None:
    (_, given), *_ = _steps(request="None of these, thank you. It is also something with: costs 9.99.")
    assert given["sql"] == "SELECT id FROM candidates WHERE price = 9.99"
    (_, given), *_ = _steps(request="I am looking for something with: costs 0.")
    assert given["sql"] == "SELECT id FROM candidates WHERE price = 0"


def test_the_advice_is_taken() -> None:
    steps = dict(_steps(advice="Leave out: A One; C."))
    assert steps["rank"]["unwanted"] == ["A One", "C"]
    request = "It is also something with: taken 2 to 3 times so far."
    (_, given), *_ = _steps(
        dialogue=(f"User: {FIRST}",), request=request, advice="Ask for less: no CD meets all of it."
    )
    assert " OR " in given["sql"]


def test_small_talk_needs_no_tool() -> None:
    assert _steps(request="Thank you, goodbye.", columns=()) == []


def test_a_step_is_the_next_one_of_the_plan() -> None:
    whole = _steps(demonstrations=(EXAMPLE,))
    for done in range(len(whole)):
        lines = tuple(f"tool {at}: done" for at in range(done))
        assert _steps("step", demonstrations=(EXAMPLE,), tracker=lines) == whole[done : done + 1]


def test_the_reply_offers_what_was_fetched() -> None:
    results = ("the first 2 of 9 candidates, by popularity:\n1. A One\n2. B, Vol. 2",)
    assert _ask("reply", results=results) == "Message: You may like: A One; B, Vol. 2. Does one of them suit you?"
    assert "could not find" in _ask("reply", problems=("hard_filter: no match",))


def _verdict(**slots: Any) -> decision.Decision:
    return decision.read(_ask("critic", **slots), "the CD")


def test_the_critic_rejects_what_failed_and_what_came_before() -> None:
    offer = "You may like: A One; C. Does one of them suit you?"
    assert _verdict(reply=offer, tracker=("fetch {}: 9 -> 20 candidates; the first",)).yes
    again = _verdict(reply=offer, dialogue=("User: hm", "Recommender: You may like: C; D. Does one of them suit you?"))
    assert (again.yes, again.explanation) == (False, "Leave out: C.")
    failed = _verdict(reply="none", tracker=("hard_filter {}: 9 -> 9 candidates; error no_match: nothing",))
    assert (failed.yes, failed.explanation) == (False, "Ask for less: no CD meets all of it.")
    assert not _verdict(reply="none", tracker=("look_up {}: 9 -> 9 candidates; error bad_sql: no",)).yes
