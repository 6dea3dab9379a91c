"""The four reply formats: what is written is read back; what models do to a format is read or named by its reason."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.llm.replies import REASONS, Unreadable, choice, descriptions, ranking, require_whole, selfintro
from simengine.llm.replies.clean import clean

PAIR = ("Abbey Road", "Matrix, The (1999)")
TEN = ("Alien", "Heat", "Big", "25", "4", "Up!", "Memphis", "Desperado", "1. Outside", "Hybrid Theory")

WORD = st.text(alphabet="abcdefghijklmnopqrstuvwxyzéüABCXYZ0123456789", min_size=1, max_size=8)
PHRASE = st.lists(WORD, min_size=1, max_size=6).map(" ".join)
TITLES = st.lists(PHRASE, min_size=2, max_size=10, unique_by=lambda title: tuple(title.casefold().split()))
# Prose as a model writes it, in one language with what was shown, without words that are a lapse of their own.
PROSE = st.lists(PHRASE, min_size=1, max_size=5).map(lambda parts: "the " + ", ".join(parts))


def reason_of(read: Any, *given: object) -> str:
    with pytest.raises(Unreadable) as caught:
        read(*given)
    assert caught.value.reason in REASONS and caught.value.detail
    return caught.value.reason


@given(titles=TITLES, why=PROSE, data=st.data())
def test_choice_round_trip(titles: list[str], why: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(titles) - 1))
    assert choice.read(choice.write("CD", titles, at, why), titles) == choice.Choice(at, why)


def test_choice_among_equal_titles_is_told_by_number() -> None:
    titles = ("Greatest Hits", "greatest hits.")
    assert choice.write("CD", titles, 1, "why").startswith("Chosen CD: 2. greatest hits.")
    assert [choice.read(choice.write("CD", titles, at, ""), titles).index for at in (0, 1)] == [0, 1]
    assert reason_of(choice.read, "Chosen CD: Greatest Hits", titles) == "ambiguous"


@given(PROSE)
def test_selfintro_round_trip(text: str) -> None:
    assert selfintro.read(selfintro.write(text), "I like CDs.") == text


@given(PROSE, PROSE)
def test_descriptions_round_trip(first: str, second: str) -> None:
    assert descriptions.read(descriptions.write("CD", first, second), ("A CD.", "A CD.")) == (first, second)


@given(TITLES, st.randoms(use_true_random=False))
def test_ranking_round_trip(titles: list[str], random: Random) -> None:
    order = list(range(len(titles)))
    random.shuffle(order)
    assert ranking.read(ranking.write([titles[at] for at in order]), titles) == ranking.Ranking(tuple(order), ())


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ("Chosen CD: The Matrix\nExplanation: It is bold.", 1),
        ("**Chosen CD:** *The Matrix*\n\n**Explanation:** It is bold.", 1),
        ("```\nChosen CD: [The Matrix]\nExplanation: It is bold.\n```", 1),
        ("Chosen CD:\nThe Matrix\nExplanation: Better than Abbey Road.", 1),
        ("Chosen film: 2. The Matrix", 1),
        ("Chosen CD: Option 2", 1),
        ("Chosen CD: 2", 1),
        ("The Matrix\nExplanation: Abbey Road is not for me.", 1),
        ("I choose The Matrix.", 1),
        ("我选择 The Matrix", 1),
        ("<think>Chosen CD: Abbey Road? no</think>\nChosen CD: The Matrix", 1),
        ("<THINK>Chosen CD: Abbey Road? no</THINK>\nChosen CD: The Matrix", 1),
        ("Chosen CD: Abbey Road? no\n</think>\nChosen CD: The Matrix", 1),
        ("Chosen CD: \u200bThe\u200b Matrix", 1),
        ("Chosen CD: The Matrix\nExplanation: ...\nChosen CD: Abbey Road", 1),
    ],
)
def test_choice_is_read(reply: str, index: int) -> None:
    assert choice.read(reply, PAIR).index == index


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        (" \n\u200b", "empty"),
        ("```\n```", "empty"),
        ("<think>Chosen CD: The Matrix</think>", "reasoning_only"),
        ("<think>Chosen CD: The Matrix, or perhaps", "reasoning_only"),
        ("Chosen CD: The Matrix and Abbey Road", "both"),
        ("Chosen CD: The Matrix\nChosen CD: Abbey Road", "both"),
        ("Chosen CD: 1. The Matrix", "ambiguous"),
        ("Chosen CD: 3", "ambiguous"),
        ("Chosen CD: Thriller", "unmatched"),
        ("I'm sorry, I cannot pretend to be a person.", "refusal"),
        ("I’m unable to choose for you.", "refusal"),
        ("How may I help you choose today?", "off_role"),
        ("As an AI language model, I have no taste.", "off_role"),
        ("是", "other_language"),
        ("Sí", "other_language"),
        ("Nein, danke", "other_language"),
    ],
)
def test_choice_that_cannot_be_read_says_why(reply: str, reason: str) -> None:
    assert reason_of(choice.read, reply, PAIR) == reason


def test_a_dislike_is_no_refusal() -> None:
    reply = "Chosen CD: Abbey Road\nExplanation: I'm sorry, I cannot stand The Matrix."
    assert choice.read(reply, PAIR) == choice.Choice(0, "I'm sorry, I cannot stand The Matrix.")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("My updated self-introduction: I like jazz.", "I like jazz."),
        ("**My Updated Self-Introduction:**\n\nI like jazz.\nI dislike pop.", "I like jazz.\nI dislike pop."),
        ('Sure!\nMy updated self-introduction: "I like jazz."', "I like jazz."),
        ("My updated self-introduction: [I like 'Heat']", "I like 'Heat'"),
        ("My updated self-introduction: 'I like it, don't you.'", "I like it, don't you."),
        ("My updated self-introduction: I like: I'm Sorry; Pop.", "I like: I'm Sorry; Pop."),
    ],
)
def test_selfintro_is_read(reply: str, text: str) -> None:
    assert selfintro.read(reply, "I like CDs.") == text


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I like jazz.", "no_heading"),
        ("My updated self-introduction:  ", "empty"),
        ("My updated self-introduction: I'm sorry, I cannot write that.", "refusal"),
        ("I'm sorry, I can't help with that.", "refusal"),
        ("My updated self-introduction: As an AI, I have no taste.", "off_role"),
        ("My updated self-introduction: 我喜欢爵士乐和摇滚。", "other_language"),
        ("My updated self-introduction: Eu prefiro jazz.", "other_language"),
        ("My updated self-introduction: a b. My updated self-introduction: c d.", "repeated"),
    ],
)
def test_selfintro_that_cannot_be_read_says_why(reply: str, reason: str) -> None:
    assert reason_of(selfintro.read, reply, "I like CDs.") == reason


def test_another_writing_system_is_right_where_the_memory_has_it() -> None:
    assert selfintro.read("My updated self-introduction: 我喜欢爵士乐。", "我喜欢音乐。") == "我喜欢爵士乐。"


@pytest.mark.parametrize(
    ("reply", "texts"),
    [
        (
            'The updated description of the first CD is: "Heat is hot."\n\n'
            "The updated description of the second CD is: 'Big' is a film.",
            ("Heat is hot.", "'Big' is a film."),
        ),
        (
            "The updated description of the first CD 'Live: Heat', is: 'Live: Heat' burns.\n"
            "The updated description of the second CD: small",
            ("'Live: Heat' burns.", "small"),
        ),
        (
            "1. The updated description of the first film is: a\nb\n"
            "2. The updated description of the second film is: c",
            ("a\nb", "c"),
        ),
    ],
)
def test_descriptions_are_read(reply: str, texts: tuple[str, str]) -> None:
    assert descriptions.read(reply, ("A CD.", "A CD.")) == texts


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("The listener chose Heat.", "no_heading"),
        ("The updated description of the first CD is: a", "incomplete"),
        ("The updated description of the first CD is: a\nThe updated description of the second CD is:", "empty"),
        ("The updated description of the first CD is: a\nThe updated description of the first CD is: b", "repeated"),
        ("I'm sorry, I cannot provide that.", "refusal"),
    ],
)
def test_descriptions_that_cannot_be_read_say_why(reply: str, reason: str) -> None:
    assert reason_of(descriptions.read, reply, ("A CD.", "A CD.")) == reason


@pytest.mark.parametrize(
    ("reply", "titles", "order"),
    [
        ("Before ranking: I preferred part 2. of that series.\n1. Alien\n2. Heat\n3. Big", TEN[:3], (0, 1, 2)),
        ("Rank:\n1. 25\n2. 4\n3. 1. Outside", ("4", "25", "1. Outside"), (1, 0, 2)),
        ("Rank:\n1. Outside\n2. 25", ("25", "1. Outside"), (1, 0)),
        ("Rank:\n25\n4\nAlien", ("4", "25", "Alien"), (1, 0, 2)),
        ("Here is my ranking of the films:\n- Big\n- Alien", TEN[:3], (2, 0)),
        ("Rank: 1. Big\n2) Alien\n(3) **Heat**", TEN[:3], (2, 0, 1)),
        ("1. Big: a film about Heat\n2. Big\n3. Heat", TEN[:3], (2, 1)),
        ("Rank:\n1. Big\n2. Thriller\n3. Heat", TEN[:3], (2, 1)),
    ],
)
def test_ranking_is_read(reply: str, titles: tuple[str, ...], order: tuple[int, ...]) -> None:
    read = ranking.read(reply, titles)
    assert read.order == order
    assert read.missing == tuple(at for at in range(len(titles)) if at not in order)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Rank:\n1. Alien\n2. Heat\n3. Bi", "incomplete"),
        ("I'm sorry, I cannot rank films.", "refusal"),
        ("How can I assist you with this list?", "off_role"),
        ("无法排名这些电影", "other_language"),
    ],
)
def test_ranking_that_cannot_be_read_says_why(reply: str, reason: str) -> None:
    assert reason_of(ranking.read, reply, TEN) == reason


def test_truncation_is_an_error_that_keeps_the_end() -> None:
    with pytest.raises(Unreadable, match=r"3\. Big") as caught:
        require_whole("Rank:\n1. Alien\n2. Heat\n3. Big", "length")
    assert caught.value.reason == "truncated"
    require_whole("Rank:\n1. Alien", "stop")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("**M*A*S*H** and snake_case_name", "M*A*S*H and snake_case_name"),
        ("# Answer\n***bold*** `code`", "Answer\nbold code"),
        ("```json\na\n```\nb", "a\nb"),
        ("a<Thinking>x</Thinking>b", "ab"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_clean(raw: str, text: str) -> None:
    assert clean(raw) == text
