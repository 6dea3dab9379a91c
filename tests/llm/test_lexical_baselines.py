"""The lexical backend as a bare model, which knows no catalogue, and as one that is shown candidates."""

from __future__ import annotations

import asyncio
from typing import Any

from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import recommendation
from simengine.llm.replies.recommendation import Recommendation
from simengine.llm.request import Request

FIRST = "I have enjoyed: A One; Rock, Vol. 2. I am looking for something with: Jazz."
CANDIDATES = {
    "titles": ("A One", "Near", "Second", "Third", "Best"),
    "options": (
        "Jazz; taken 3 times so far",
        "Rock; taken 1 times so far",
        "Jazz; costs 9.99; taken 9 times so far",
        "Jazzy; came out in 1995-03-01; taken 2 times so far",
        "jazz; came out in 1996; costs 9; taken 2 times so far",
    ),
}


def _ask(task: str, *, schema: str = "", **slots: Any) -> Recommendation:
    given = {"noun": "CD", "count": "2", **slots}
    request = Request(f"converse.{task}", "m", (), slots=given, schema=schema)
    reply = asyncio.run(Lexical().complete(request)).text
    return recommendation.read_json(reply) if schema else recommendation.read(reply)


def test_a_bare_model_knows_of_nothing() -> None:
    """What the user has had stands in the talk, and is no recommendation."""
    found = _ask("bare", request=FIRST)
    assert found.titles == ()
    assert found.text


def test_a_bare_model_names_what_the_user_quotes() -> None:
    talk = ("User: Is “Blue” any good?", "Recommender: What about these? I recommend: Blue.")
    assert _ask("bare", request='Or "Red", or "Green", or "Grey"?').titles == ("Red", "Green")
    assert _ask("bare", dialogue=talk, request='Or "Red"?').titles == ("Red",)


def test_candidates_are_picked_by_the_conditions_that_they_meet() -> None:
    """Jazz counts as a word, and nothing in the titles of what was had; what meets as many comes as it was shown."""
    assert _ask("chat_rec", request=FIRST, **CANDIDATES).titles == ("Second", "Best")
    year = f"{FIRST.removesuffix('.')}. It is also something with: came out in 1995."
    assert _ask("chat_rec", request=year, count="3", **CANDIDATES).titles == ("Second", "Third", "Best")
    taken = "It is also something with: taken 2 to 3 times so far."
    found = _ask("chat_rec", dialogue=(f"User: {FIRST}",), request=taken, **CANDIDATES)
    assert found.titles == ("Best", "Second")


def test_a_price_is_met_as_a_whole() -> None:
    said = "I am looking for something with: costs 9.99."
    assert _ask("chat_rec", request=said, count="1", **CANDIDATES).titles == ("Second",)


def test_what_was_had_or_refused_is_left_out() -> None:
    refused = (f"User: {FIRST}", "Recommender: What about these? I recommend: Second; Best.")
    found = _ask("chat_rec", dialogue=refused, request="None of these.", count="9", **CANDIDATES)
    assert found.titles == ("Near", "Third")


def test_no_candidates_are_no_recommendation() -> None:
    assert _ask("chat_rec", request="Hello!").titles == ()


def test_json_is_answered_where_it_is_asked_for() -> None:
    assert _ask("chat_rec", schema="{}", request=FIRST, **CANDIDATES).titles == ("Second", "Best")
