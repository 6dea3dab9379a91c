"""What people say of their own accord, as the lexical planner reads it: titles, conditions, questions, courtesy."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from simengine.llm.backends.lexical import Lexical, wishes
from simengine.llm.replies import decision
from simengine.llm.request import Request

COLUMNS = (
    "title (title): the name of the item",
    "release_date (date): when it came out; from 1990 to 2023",
    "tags (tags): what it is like; near your request: Jazz, Folk Music; others: Rock",
    "price (number): what it costs; from 0 to 60",
    "developer (text): who developed it; near your request: Valve",
)


def _read(*lines: str) -> wishes.Wishes:
    return wishes.read(lines, COLUMNS, "game")


def _plan(request: str, *before: str, **slots: Any) -> list[tuple[str, Any]]:
    dialogue = tuple(f"User: {line}" for line in before)
    shown = {"noun": "game", "columns": COLUMNS, "request": request, "dialogue": dialogue, **slots}
    completion = asyncio.run(Lexical().complete(Request("converse.plan", "m", (), slots=shown)))
    return [(step["tool"], step["input"]) for step in json.loads(completion.text)["steps"]]


@pytest.mark.parametrize(
    ("said", "conditions"),
    [
        ("something after 2015", ["release_date >= '2016'"]),
        ("newer than 2015, please", ["release_date >= '2016'"]),
        ("since 2015", ["release_date >= '2015'"]),
        ("anything before 1990?", ["release_date < '1990'"]),
        ("until 1999", ["release_date < '2000'"]),
        ("between 1990 and 2000", ["release_date >= '1990' AND release_date < '2001'"]),
        ("one from 1995", ["release_date LIKE '1995%'"]),
        ("from the 90s", ["release_date LIKE '199%'"]),
        ("games of the 1980s", ["release_date LIKE '198%'"]),
        ("cheaper than 10", ["price < 10"]),
        ("under $9.99", ["price < 9.99"]),
        ("at most 20 dollars", ["price <= 20"]),
        ("more expensive than 5", ["price > 5"]),
        ("is there something for free?", ["price = 0"]),
        ("after 2015 and cheaper than 10", ["release_date >= '2016'", "price < 10"]),
        ("something by Valve", ["developer = 'Valve'"]),
        ("I saw it more than 20 times in a row", []),
        ("over 100% of it", []),
    ],
)
def test_conditions(said: str, conditions: list[str]) -> None:
    assert list(_read(said).conditions) == conditions


def test_what_was_said_last_of_a_kind_holds_and_instead_begins_anew() -> None:
    assert _read("cheaper than 20, after 2010", "cheaper than 10").conditions == (
        "release_date >= '2011'",
        "price < 10",
    )
    assert _read("cheaper than 20", "something after 2010 instead").conditions == ("release_date >= '2011'",)


@pytest.mark.parametrize(
    ("said", "liked", "unwanted", "similar"),
    [
        ("I liked Iron Tide.", ["Iron Tide"], [], []),
        ("I really loved Iron Tide, but what about jazz?", ["Iron Tide"], [], []),
        ("I have played Iron Tide and Paper Moon", ["Iron Tide and Paper Moon", "Iron Tide", "Paper Moon"], [], []),
        ("I don’t like Paper Moon", [], ["Paper Moon"], []),
        ("I like something with jazz", [], [], []),
        ("I would like to see more", [], [], []),
        ('something like "Iron Tide", but after 2015', [], [], ["Iron Tide"]),
        ("games similar to Half-Life 2?", [], [], ["Half-Life 2"]),
        ("anything like iron tide but not Paper Moon", [], ["Paper Moon"], ["iron tide"]),
        ("Iron Tide", [], [], ["Iron Tide"]),  # a title and nothing else
        ("It has been raining here all day.", [], [], []),
        ("more like that", [], [], []),
        ("jazz", [], [], []),
    ],
)
def test_titles(said: str, liked: list[str], unwanted: list[str], similar: list[str]) -> None:
    found = _read(said)
    assert (list(found.liked), list(found.unwanted), list(found.similar)) == (liked, unwanted, similar)


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("How much is Lantern Road?", "SELECT title, price FROM items WHERE title = 'Lantern Road'"),
        ("what does Lantern Road cost", "SELECT title, price FROM items WHERE title = 'Lantern Road'"),
        (
            "And when did O'Brien's Day come out?",
            "SELECT title, release_date FROM items WHERE title = 'O''Brien''s Day'",
        ),
        ("who made Lantern Road?", "SELECT title, developer FROM items WHERE title = 'Lantern Road'"),
        (
            "tell me about Lantern Road",
            "SELECT title, release_date, tags, price, developer FROM items WHERE title = 'Lantern Road'",
        ),
        ("how much is it?", ""),
        ("What do you recommend?", ""),
    ],
)
def test_questions(said: str, question: str) -> None:
    assert _read(said).question == question


@pytest.mark.parametrize("said", ["thanks", "Thank you very much, bye!", "hello", "hi there", "Great, thanks a lot."])
def test_courtesy_needs_no_tool_whatever_was_said_before(said: str) -> None:
    assert _plan(said, "Something with jazz, please.") == []


@pytest.mark.parametrize("said", ["None of these, thank you. What else is there?", "no, thanks, something cheaper"])
def test_a_wish_beside_courtesy_is_one(said: str) -> None:
    assert _plan(said, "Something with jazz, please.")


def test_a_tag_that_is_refused_is_left_out() -> None:
    (tool, given), *_ = _plan("folk music, but no jazz please")
    assert tool == "hard_filter"
    assert sorted(given["sql"].partition(" WHERE ")[2].split(" AND ")) == [
        "tags LIKE '%|Folk Music|%'",
        "tags NOT LIKE '%|Jazz|%'",
    ]


def test_something_like_an_item_is_ordered_by_similarity() -> None:
    price = {"sql": "SELECT id FROM candidates WHERE price < 10"}
    assert _plan("something like Iron Tide, but cheaper than 10") == [
        ("hard_filter", price),
        ("soft_filter", {"titles": ["Iron Tide"]}),
        ("rank", {"by": "similarity", "unwanted": []}),
        ("fetch", {"n": 5}),
    ]


def test_what_the_table_cannot_tell_stands_apart_so_that_the_rest_is_gone_by() -> None:
    steps = _plan("something with jazz, cheaper than 10", columns=COLUMNS[1:3])
    assert [given["sql"].partition(" WHERE ")[2] for tool, given in steps if tool == "hard_filter"] == [
        "tags LIKE '%|Jazz|%'",
        "price < 10",
    ]
    (_, given), *_ = _plan("something with wooden flutes")
    assert given["sql"] == "SELECT id FROM candidates WHERE tags LIKE '%|wooden flutes|%'"
    assert _plan("I liked Iron Tide")[0] == ("look_up", {"sql": "SELECT title FROM items WHERE title IN ('Iron Tide')"})


def test_where_all_is_too_much_the_last_wish_alone_holds() -> None:
    steps = _plan("something by Valve", "something like Iron Tide", advice="Ask for less: no game meets all of it.")
    assert steps[0] == ("hard_filter", {"sql": "SELECT id FROM candidates WHERE developer = 'Valve'"})
    assert [tool for tool, _ in steps] == ["hard_filter", "fetch"]


def _reply(**slots: Any) -> str:
    completion = asyncio.run(Lexical().complete(Request("converse.reply", "m", (), slots={"noun": "game", **slots})))
    return completion.text.removeprefix("Message: ")


def test_a_reply_tells_what_was_looked_up_and_what_could_not_be_gone_by() -> None:
    row = "title: Lantern Road, price: 9.99, tags: |Jazz|Folk Music|"
    assert _reply(results=(row,)) == "This is what I know: Lantern Road: price: 9.99, tags: Jazz, Folk Music."
    fetched = "the first 1 of 9 candidates, by popularity:\n1. A One"
    said = _reply(results=(fetched,), problems=("hard_filter: there is no column 'price'",))
    assert said.startswith("I could not go by all that you said (there is no column 'price'). You may like: A One.")


def test_the_critic_accepts_what_nothing_can_be_done_about() -> None:
    line = "hard_filter {}: 9 -> 9 candidates; error not_found: there is no column 'price'"
    completion = asyncio.run(
        Lexical().complete(
            Request("converse.critic", "m", (), slots={"noun": "game", "reply": "x", "tracker": (line,)})
        )
    )
    assert decision.read(completion.text, "the game").yes
