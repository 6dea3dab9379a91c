"""Texts behind a heading: what is written is read back, what models do to the heading is read, the rest is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_replies_formats import PROSE, reason_of

from simengine.llm.replies import Unreadable
from simengine.llm.replies.headed import ADVERTISEMENT, DESCRIPTION, SUGGESTIONS, Headed

KINDS = {"description": DESCRIPTION, "advertisement": ADVERTISEMENT, "suggestions": SUGGESTIONS}
SHOWN = "A CD filed under Jazz."
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
@given(text=PROSE)
def test_round_trip(kind: Headed, text: str) -> None:
    assert kind.read(kind.write(text), SHOWN) == text
    assert kind.read_json(kind.write(text, json=True), SHOWN) == text
    assert kind.read_json(kind.write(text), SHOWN) == text, "a reply in text is read where JSON was asked for"


@every_kind
def test_the_heading_written_is_the_one_that_prompts_ask_for(kind: Headed) -> None:
    name = next(name for name, each in KINDS.items() if each is kind)
    assert kind.write("Jazz.") == f"My {name}: Jazz."
    assert list(kind.json.fields) == [name]


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("description", "**My description:** Quiet jazz."),
        ("description", "Sure!\n\nMy updated self-description is: Quiet jazz."),
        ("description", "<think>My description: loud rock</think>\nThe new description: Quiet jazz."),
        ("advertisement", 'My ad: "Quiet jazz."'),
        ("advertisement", "Here is my refined advertisement:\n\nQuiet jazz."),
        ("advertisement", "## My Advertisement\n: Quiet jazz."),
        ("suggestions", "My suggested revisions: Quiet jazz."),
        ("suggestions", "- Suggestions: Quiet jazz."),
        ("suggestions", "My suggestions: Quiet jazz.\nMy suggestions: Quiet jazz."),
    ],
)
def test_what_models_do_to_a_heading(kind: str, reply: str) -> None:
    assert KINDS[kind].read(reply, SHOWN) == "Quiet jazz."


def test_a_text_keeps_its_lines_and_colons() -> None:
    text = 'Hear "Heat: Live".\n\nTonight: three hours of it!\n- add: nothing'
    assert ADVERTISEMENT.read(f"My advertisement: {text}", SHOWN) == text


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("Quiet jazz for quiet people.", "no_heading"),
        ("lorem ipsum " * 2000, "no_heading"),
        ("My advertisement:", "empty"),
        ("My advertisement: Buy this.\nMy advertisement: Or that.", "repeated"),
        ("My advertisement: I'm sorry, but I cannot write that.", "refusal"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("My advertisement: Купите эту пластинку сегодня.", "other_language"),
    ],
)
def test_what_holds_no_text_is_refused(reply: str, reason: str) -> None:
    assert reason_of(ADVERTISEMENT.read, reply, SHOWN) == reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [('{"answer": null}', "incomplete"), ('{"advertisement": ""}', "empty"), ('{"advertisement": "Buy', "truncated")],
)
def test_what_holds_no_text_in_json_is_refused(reply: str, reason: str) -> None:
    assert reason_of(ADVERTISEMENT.read_json, reply, SHOWN) == reason


@every_kind
@given(reply=st.text(max_size=200))
def test_any_reply_is_read_or_refused(kind: Headed, reply: str) -> None:
    for read in (kind.read, kind.read_json):
        try:
            assert read(reply, SHOWN).strip()
        except Unreadable as unreadable:
            assert unreadable.detail
