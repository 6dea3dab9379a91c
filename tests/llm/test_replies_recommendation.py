"""The format of a recommendation: what is written is read back; what models do to it is read or named by its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_replies_formats import PROSE, TITLES, reason_of

from simengine.llm.replies import REASONS, Unreadable, recommendation
from simengine.llm.replies.recommendation import Recommendation, read, read_json, write

MANY = TITLES | st.just([])


@given(PROSE, MANY, st.booleans())
def test_round_trip(text: str, titles: list[str], json: bool) -> None:
    reply = write(text, titles, json=json)
    assert (read_json if json else read)(reply) == Recommendation(text, tuple(titles))


PIECES = st.lists(st.sampled_from(["Message:", "Recommended:", "none", "1. A", "\n", " "])).map("".join)


@given(st.text(max_size=300) | PIECES)
def test_whatever_a_model_says_is_read_or_named_by_its_reason(reply: str) -> None:
    for reader in (read, read_json):
        try:
            found = reader(reply)
        except Unreadable as error:
            assert error.reason in REASONS
        else:
            assert found.text or found.titles
            assert all(title.strip() == title != "" and "\n" not in title for title in found.titles)


@pytest.mark.parametrize(
    ("listed", "titles"),
    [
        ("Recommended:\n1. Portal\n2. Half-Life 2", ["Portal", "Half-Life 2"]),
        ("**Recommended:**\n\n1) **Portal**\n\n2) *Half-Life 2*\n\nLet me know!", ["Portal", "Half-Life 2"]),
        ('Recommended games (2):\n(1) “Portal”\n(2) "b"', ["Portal", "b"]),
        ("## Recommendations:\nx", ["x"]),
        ("Ranking:\n1. b\n1. Portal\n1. b", ["b", "Portal", "b"]),  # the place in the list counts, and repeats stay
        ("Recommended:\n- Portal\n\n- 原神\n", ["Portal", "原神"]),
        ("Recommended:\n* Portal\n  It is short.\n* Мор. Утопия", ["Portal", "Мор. Утопия"]),
        ("Recommended:\nPortal\nHalf-Life\n\nEnjoy them!", ["Portal", "Half-Life"]),
        ("Recommended: Portal; Football, Tactics & Glory", ["Portal", "Football, Tactics & Glory"]),
        ("Recommended: Portal", ["Portal"]),
        ("Recommended:\n24: The Game", ["24: The Game"]),  # no number of a list
        ("Recommended:\n1. 24: The Game\n2. 100% Orange Juice", ["24: The Game", "100% Orange Juice"]),
        ("Recommended:\n1. Portal\n   - a puzzle\n2. b", ["Portal", "b"]),
        ("Recommended: none", []),
        ("Recommended:\n(none yet)", []),
        ("Recommended:\n1. None", []),
        ("Recommended: -", []),
        ("Recommended:", []),
        ("Titles: b", ["b"]),
    ],
)
def test_lists_are_read(listed: str, titles: list[str]) -> None:
    assert read(f"Message: Hello.\n{listed}") == Recommendation("Hello.", tuple(titles))


@pytest.mark.parametrize(
    ("reply", "text", "titles"),
    [
        ("Recommended:\n1. Portal\n\nMessage: Take it.", "Take it.", ["Portal"]),
        ("Message: What do you like?", "What do you like?", []),
        ("Message: Take these:\n1. Portal\n2. b", "Take these:", ["Portal", "b"]),
        ("Take these.\nRecommended:\n1. Portal", "Take these.", ["Portal"]),
        ("Recommended:\n1. Portal", "", ["Portal"]),
        ("<think>Recommended: b</think>Message: Yes.\nRecommended: Portal", "Yes.", ["Portal"]),
        ("Assistant: I'm sorry, I am only an assistant.\nRecommended: none", "I'm sorry, I am only an assistant.", []),
        ("Message: Two lines,\nno less.\nRecommended: b", "Two lines,\nno less.", ["b"]),
    ],
)  # fmt: skip
def test_messages_are_read(reply: str, text: str, titles: list[str]) -> None:
    assert read(reply) == Recommendation(text, tuple(titles))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Portal is good.", "no_heading"),
        ("1. Portal\n2. b", "no_heading"),
        ("Message: a\nRecommended: b\nMessage: c", "repeated"),
        ("Recommended: a\nRecommended: b", "repeated"),
        ("Message:\nRecommended: none", "empty"),
        ("", "empty"),
        ("<think>Portal</think>", "reasoning_only"),
    ],
)
def test_what_cannot_be_read_has_a_reason(reply: str, reason: str) -> None:
    assert reason_of(read, reply) == reason


@pytest.mark.parametrize(
    ("reply", "text", "titles"),
    [
        ('{"message": "Hi.", "recommended": ["Portal", "", " b "]}', "Hi.", ["Portal", "b"]),
        ('```json\n{"Message": "Message: Hi.", "recommended": []}\n```', "Hi.", []),
        ('{"recommended": ["Portal"]}', "", ["Portal"]),
        ('{"message": "Hi.", "recommended": ["none"]}', "Hi.", []),
        ("Message: Hi.\nRecommended: b", "Hi.", ["b"]),
    ],
)
def test_json_is_read(reply: str, text: str, titles: list[str]) -> None:
    assert read_json(reply) == Recommendation(text, tuple(titles))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"message": "Hi."}', "incomplete"),
        ('{"message": "Hi.", "recommended": "Portal"}', "incomplete"),
        ('{"message": "", "recommended": []}', "empty"),
        ('{"message": "Hi.", "recommended": ["Por', "truncated"),
    ],
)
def test_json_that_cannot_be_read_has_a_reason(reply: str, reason: str) -> None:
    assert reason_of(read_json, reply) == reason


def test_the_form_says_that_the_list_may_be_empty() -> None:
    assert "empty" in recommendation.JSON.ask
