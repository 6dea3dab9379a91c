"""The message to a user: what is written is read back in both forms, and what is no message is named by its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from test_replies_formats import PROSE, reason_of

from simengine.llm.replies import message


@given(PROSE)
def test_round_trip(text: str) -> None:
    assert message.read(message.write(text)) == text
    assert message.read_json(message.write(text, json=True)) == text
    assert message.read_json(message.write(text)) == text, "a reply in text is read where JSON was asked for"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (message.write("Take this one:\n1. b"), "Take this one: 1. b"),
        ("**Message:** Sorry, as an assistant I found none.", "Sorry, as an assistant I found none."),
        ("<think>hm</think>\nReply: Hello", "Hello"),
    ],
)
def test_a_message_is_read(text: str, said: str) -> None:
    assert message.read(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (message.write("Take this one:\n1. b", json=True), "Take this one: 1. b"),
        ('{"message": "Message: Sorry, I found none."}', "Sorry, I found none."),
        ('```json\n{"message": "\\"Hello\\"", "mood": "glad"}\n```', "Hello"),
        ('<think>{"message": "no"}</think>{"Message": "Hello"}', "Hello"),
    ],
)
def test_a_message_in_json_is_read(text: str, said: str) -> None:
    assert message.read_json(text) == said


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), ("Hello", "no_heading"), ("Message: ", "empty"), ("Message: a\nMessage: b", "repeated")],
)
def test_what_is_no_message_is_unreadable(text: str, reason: str) -> None:
    assert reason_of(message.read, text) == reason
    assert reason_of(message.read_json, text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"message": ""}', "empty"),
        ('{"message": "Message:"}', "empty"),
        ('{"message": "a\\nReply: b"}', "repeated"),
        ('{"message": "a"} {"message": "b"}', "repeated"),
        ('{"message": ["a"]}', "incomplete"),
        ('{"text": "a"}', "incomplete"),
        ('{"message": "a', "truncated"),
    ],
)
def test_what_is_no_message_in_json_says_why(text: str, reason: str) -> None:
    assert reason_of(message.read_json, text) == reason
