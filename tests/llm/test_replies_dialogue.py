"""The format of a whole talk: what it writes it reads, and what models make of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.llm.replies import Unreadable, dialogue

words = st.text("abcdefg äß.,'", min_size=1).map(lambda text: f"x{text}y")
talks = st.lists(st.tuples(words, words), min_size=1, max_size=5)


@given(talks, st.booleans())
def test_what_is_written_is_read(talk: list[tuple[str, str]], json: bool) -> None:
    plain = tuple((" ".join(said.split()), " ".join(told.split())) for said, told in talk)
    read = dialogue.read_json if json else dialogue.read
    assert read(dialogue.write(talk, json=json), "") == plain


@pytest.mark.parametrize(
    ("reply", "talk"),
    [
        ("User: Hi.\nRecommender: Hello.", (("Hi.", "Hello."),)),
        ("**User:** Hi.\n\n**Assistant:** Hello.\n", (("Hi.", "Hello."),)),
        ("Here it is:\n1. User: Hi.\n2. Shop assistant: Hello.", (("Hi.", "Hello."),)),
        ("Recommender: Welcome!\nUser: Hi.\nRecommender: Hello.", (("Hi.", "Hello."),)),  # a greeting is no answer
        ("User: Hi.\nRecommender: Hello.\nUser: Bye.", (("Hi.", "Hello."),)),  # nobody answers the last
        ("User: Hi.\nUser: I had Portal.\nRecommender: Good.", (("Hi. I had Portal.", "Good."),)),
        ("User: One\ntwo\nRecommender: three", (("One two", "three"),)),
        ("```\nUser: Hi.\nRecommender: Hello.\n```", (("Hi.", "Hello."),)),
        ("<think>User: no</think>User: Hi.\nRecommender: Hello.", (("Hi.", "Hello."),)),
        ('{"user": ["Hi.", "Bye."], "recommender": ["Hello."]}', (("Hi.", "Hello."),)),
    ],
)
def test_what_models_write(reply: str, talk: tuple[tuple[str, str], ...]) -> None:
    assert dialogue.read_json(reply, "") == talk


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("They talked for a while.", "no_heading"),
        ("User: Hi.", "incomplete"),
        ("Recommender: Hello.", "incomplete"),
        ('{"user": [], "recommender": []}', "incomplete"),
        ("", "empty"),
    ],
)
def test_what_is_no_talk(reply: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        dialogue.read_json(reply, "")
    assert caught.value.reason == reason
