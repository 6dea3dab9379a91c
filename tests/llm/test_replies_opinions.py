"""Decisions, reviews and turns of a talk: what is written is read back, and nothing but a plain no is taken for one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_replies_formats import PROSE, reason_of

from simengine.llm.replies import Unreadable, decision, talk
from simengine.llm.replies.decision import Decision
from simengine.llm.replies.headed import REVIEW_TEXT
from simengine.llm.replies.talk import Turn

SHOWN = 'I like CDs. "Blue Hours" is a CD filed under: Jazz.'
TITLES = ("Goodbye Yellow Brick Road",)


@given(yes=st.booleans(), why=PROSE)
def test_decisions_round_trip(yes: bool, why: str) -> None:
    assert decision.read(decision.write(yes, why), SHOWN) == Decision(yes, why)
    assert decision.read_json(decision.write(yes, why, json=True), SHOWN) == Decision(yes, why)
    assert decision.read_json(decision.write(yes, why), SHOWN) == Decision(yes, why)


@given(goodbye=st.booleans(), text=PROSE)
def test_turns_round_trip(goodbye: bool, text: str) -> None:
    """The prose begins with an article, so it is no farewell by itself."""
    assert talk.read(talk.write(text, goodbye), SHOWN, TITLES) == Turn(text, goodbye)
    assert talk.read_json(talk.write(text, goodbye, json=True), SHOWN, TITLES) == Turn(text, goodbye)
    assert talk.read_json(talk.write(text, goodbye), SHOWN, TITLES) == Turn(text, goodbye)


@given(PROSE)
def test_reviews_round_trip(text: str) -> None:
    assert REVIEW_TEXT.read(REVIEW_TEXT.write(text), SHOWN) == text
    assert REVIEW_TEXT.read_json(REVIEW_TEXT.write(text, json=True), SHOWN) == text


@pytest.mark.parametrize(
    ("reply", "yes", "why"),
    [
        ("Choice: Yes\nExplanation: It is jazz.", True, "It is jazz."),
        ("**Choice:** No.\n\n**Explanation:** Too loud.", False, "Too loud."),
        ("```\nChoice: [Yes]\nExplanation: Jazz.\n```", True, "Jazz."),
        ("Choice:\nNo\nReasons: Too loud.", False, "Too loud."),
        ("My final decision is: yes!", True, ""),
        ("Choice: Yes Explanation: It is jazz.", True, "It is jazz."),
        ("Choice: Yes. No CD is like it.", True, "No CD is like it."),
        ("Choice: Yes\nFolk is what I like.", True, "Folk is what I like."),
        ("Choice: No - too loud", False, "too loud"),
        ("No, it is too loud for me.", False, "it is too loud for me."),
        ("Yes because it is jazz.", True, "because it is jazz."),
        ("yes", True, ""),
        ("Choice: Yes\nExplanation: No doubt about it.", True, "No doubt about it."),
        ("Choice: No\nExplanation: I'm sorry, but it is too loud.", False, "I'm sorry, but it is too loud."),
        ("Choice: Yes\nExplanation: 我喜欢爵士乐", True, "我喜欢爵士乐"),
        ("<think>Choice: No</think>\nChoice: Yes", True, ""),
        ("Choice: Yes\nExplanation: Jazz.\nChoice: Yes", True, "Jazz."),
    ],
)
def test_a_decision_is_read(reply: str, yes: bool, why: str) -> None:
    assert decision.read(reply, SHOWN) == Decision(yes, why)


NO_DECISION = [
    ("", "empty"),
    ("是", "other_language"),
    ("Sí", "other_language"),
    ("Choice: Sí\nExplanation: me gusta", "other_language"),
    ("Choice: 不", "other_language"),
    ("Nein, danke", "other_language"),
    ("Choice: Not really", "unmatched"),
    ("Choice: Perhaps", "unmatched"),
    ("No doubt I would.", "unmatched"),
    ("No. 1 for me", "unmatched"),
    ("Choice: No-brainer", "unmatched"),
    ("I would not say no.", "unmatched"),
    ("Nothing speaks for it.", "unmatched"),
    ("Choice: Yes / No", "both"),
    ("Choice: <Yes or No>", "both"),
    ("Yes and no.", "both"),
    ("Choice: No\nChoice: Yes", "both"),
    ("Choice: No\nExplanation: Too loud.\n\nChoice: Yes\nExplanation: They praise it.", "both"),
    ("<think>Choice: Yes</think>", "reasoning_only"),
    ("I'm sorry, I cannot pretend to be a person.", "refusal"),
    ("Choice: I'm unable to choose\nExplanation: none", "refusal"),
    ("How may I help you choose today?", "off_role"),
    ("Choice: No\nExplanation: As an AI language model, I buy nothing.", "off_role"),
]


@pytest.mark.parametrize(("reply", "reason"), NO_DECISION)
def test_what_is_no_decision_says_why(reply: str, reason: str) -> None:
    """Field cases 10 and 11: another language, a refusal and the assistant are each counted apart, and never as no."""
    assert reason_of(decision.read, reply, SHOWN) == reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"choice": "是", "explanation": ""}', "other_language"),
        ('{"choice": "Sí", "explanation": "me gusta"}', "other_language"),
        ('{"choice": "Yes or No", "explanation": "x"}', "both"),
        ('{"choice": "", "explanation": "x"}', "empty"),
        ('{"choice": true}', "incomplete"),
        ('{"explanation": "No"}', "incomplete"),
        ('{"choice": "No", "explanation": "I am an AI."}', "off_role"),
        ('{"choice": "No", "explana', "truncated"),
    ],
)
def test_what_is_no_decision_in_json_says_why(reply: str, reason: str) -> None:
    assert reason_of(decision.read_json, reply, SHOWN) == reason


@pytest.mark.parametrize(
    ("reply", "text", "goodbye"),
    [
        ("Message: Is it loud?\nGoodbye: no", "Is it loud?", False),
        ("**Message:** Thanks!\n\n**Goodbye:** Yes", "Thanks!", True),
        ("Message: Thanks!\ngood-bye: yes.", "Thanks!", True),
        ("Goodbye: no\nMessage: Is it loud?", "Is it loud?", False),
        ("Is it loud?\nGoodbye: no", "Is it loud?", False),
        ("Buyer: Is it loud?", "Is it loud?", False),
        ('Owner: "It is quiet."\nGoodbye: false', "It is quiet.", False),
        ("Message: I see. Goodbye!\nGoodbye: no", "I see. Goodbye!", True),
        ("Message: Thank you. Well, take care, my friend!", "Thank you. Well, take care, my friend!", True),
        ("Message: Have a nice day!", "Have a nice day!", True),
        ("Message: I hate to say goodbye to it.", "I hate to say goodbye to it.", False),
        ("Message: Goodbye, she sings. And then it ends.", "Goodbye, she sings. And then it ends.", False),
        ("Message: Goodbye Yellow Brick Road is quiet.", "Goodbye Yellow Brick Road is quiet.", False),
        ("Message: Two\nlines\nGoodbye: no", "Two\nlines", False),
        ("Message: Hi\nGoodbye: no\n(He waits.)", "Hi", False),
    ],
)
def test_a_turn_is_read(reply: str, text: str, goodbye: bool) -> None:
    assert talk.read(reply, SHOWN, TITLES) == Turn(text, goodbye)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("Is it loud?", "no_heading"),
        ("lorem ipsum " * 2000, "no_heading"),
        ("Message:\nGoodbye: yes", "empty"),
        ("Message: Is it loud?\nOwner: It is not.", "repeated"),
        ("Message: a\nGoodbye: no\nMessage: b\nGoodbye: yes", "repeated"),
        ("Message: a\nGoodbye: <yes or no>", "unmatched"),
        ("Message: a\nGoodbye: 是", "unmatched"),
        ("Message: I'm sorry, I cannot continue this talk.", "refusal"),
        ("Message: How may I help you today?", "off_role"),
        ("Message: Это громкая музыка?", "other_language"),
        ("I can't help with that.", "refusal"),
    ],
)
def test_what_is_no_turn_says_why(reply: str, reason: str) -> None:
    assert reason_of(talk.read, reply, SHOWN, TITLES) == reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"message": "", "goodbye": "no"}', "empty"),
        ('{"message": "a", "goodbye": "yes or no"}', "unmatched"),
        ('{"goodbye": "no"}', "incomplete"),
        ('{"message": "Buyer: a\\nOwner: b", "goodbye": "no"}', "repeated"),
    ],
)
def test_what_is_no_turn_in_json_says_why(reply: str, reason: str) -> None:
    assert reason_of(talk.read_json, reply, SHOWN, TITLES) == reason


def test_a_turn_in_json_without_the_mark_ends_by_its_words_alone() -> None:
    assert talk.read_json('{"message": "Is it loud?"}', SHOWN, TITLES) == Turn("Is it loud?", False)
    assert talk.read_json('{"message": "Thanks. Bye!"}', SHOWN, TITLES) == Turn("Thanks. Bye!", True)


@pytest.mark.parametrize(
    "reply",
    [
        "Review: Quiet jazz.",
        "**My positive review:** Quiet jazz.",
        'My review of "Blue Hours": Quiet jazz.',
        "Here is my review:\n\nQuiet jazz.",
    ],
)
def test_what_models_do_to_the_heading_of_a_review(reply: str) -> None:
    assert REVIEW_TEXT.read(reply, SHOWN) == "Quiet jazz."


READS: dict[str, Callable[[str], object]] = {
    "decision": lambda text: decision.read(text, SHOWN),
    "decision in JSON": lambda text: decision.read_json(text, SHOWN),
    "turn": lambda text: talk.read(text, SHOWN, TITLES),
    "turn in JSON": lambda text: talk.read_json(text, SHOWN, TITLES),
}
PARTS = st.sampled_from(
    ("Choice: ", "Explanation: ", "Message: ", "Goodbye: ", "Owner: ", "yes", "No", "\n", '{"choice": "', '"}', "bye.")
)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@given(reply=st.text(max_size=80) | st.lists(PARTS | st.text(max_size=5), max_size=12).map("".join))
def test_any_reply_is_read_or_refused(read: Callable[[str], object], reply: str) -> None:
    try:
        found = read(reply)
    except Unreadable as unreadable:
        assert unreadable.detail
    else:
        assert isinstance(found, Decision) or (isinstance(found, Turn) and found.text.strip())


@given(st.text(max_size=80))
def test_without_the_word_nothing_is_a_decision(reply: str) -> None:
    if "yes" not in reply.lower() and "no" not in reply.lower():
        with pytest.raises(Unreadable):
            decision.read(reply, SHOWN)
