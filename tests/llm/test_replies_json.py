"""The JSON forms of replies: what is written is read back; what models do to JSON is read or named by its reason."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_replies_formats import PAIR, PROSE, TITLES, reason_of

from simengine.llm.replies import choice, descriptions, ranking, reflection, require_whole, selfintro
from simengine.llm.replies.objects import JsonForm, text_of

PICK = JsonForm({"pick": "<number>", "why": "<text>"})
ORDER = JsonForm({"order": ["<number>"]})
FILMS = ("Matrix, The (1999)", "Heat (1995)", "Sabrina (1954)", "Sabrina (1995)")
FORMS = {
    "choice": choice.JSON,
    "ranking": ranking.JSON,
    "descriptions": descriptions.JSON,
    "selfintro": selfintro.JSON,
    "reflection": reflection.JSON,
}
THINK, DRAFT = '{"pick": 2}', 'perhaps {"pick": 4}? no'
NESTED = '{"draft": {"pick": 3}, "final": {"pi'


@given(titles=TITLES, why=PROSE, data=st.data())
def test_choice_round_trip(titles: list[str], why: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(titles) - 1))
    assert choice.read_json(choice.write("CD", titles, at, why, json=True), titles) == choice.Choice(at, why)


@given(PROSE)
def test_texts_round_trip(text: str) -> None:
    assert selfintro.read_json(selfintro.write(text, json=True), "I like CDs.") == text
    assert reflection.read_json(reflection.write(text, json=True), "I like CDs.") == text


@given(PROSE, PROSE)
def test_descriptions_round_trip(first: str, second: str) -> None:
    reply = descriptions.write("CD", first, second, json=True)
    assert descriptions.read_json(reply, ("A CD.", "A CD.")) == (first, second)


@given(TITLES, st.randoms(use_true_random=False))
def test_ranking_round_trip(titles: list[str], random: Random) -> None:
    order = list(range(len(titles)))
    random.shuffle(order)
    reply = ranking.write([titles[at] for at in order], json=True)
    assert ranking.read_json(reply, titles) == ranking.Ranking(tuple(order), ())


def test_equal_titles_are_told_apart_by_number() -> None:
    titles = ("Greatest Hits", "greatest hits.")
    replies = [choice.write("CD", titles, at, "why", json=True) for at in (0, 1)]
    assert [choice.read_json(reply, titles).index for reply in replies] == [0, 1]
    assert reason_of(choice.read_json, '{"chosen": "Greatest Hits"}', titles) == "ambiguous"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_is_asked_for_is_what_the_schema_demands(form: JsonForm) -> None:
    """Strict schemas name every field as required and allow no other; the prompt shows the same fields."""
    schema = json.loads(form.schema)
    shown = json.loads(next(line for line in form.ask.splitlines() if line.startswith("{")))
    assert list(schema["properties"]) == schema["required"] == list(shown)
    assert schema["type"] == "object" and schema["additionalProperties"] is False
    kinds = {name: "array" if isinstance(value, list) else "string" for name, value in shown.items()}
    assert {name: kind["type"] for name, kind in schema["properties"].items()} == kinds
    assert "JSON" in form.ask  # some servers refuse to answer in JSON unless the prompt says the word


@pytest.mark.parametrize(
    ("reply", "pick"),
    [
        (f"<think>{DRAFT}</think>\n{THINK}", "2"),  # field case 4, in both spellings
        (f"<THINK>{DRAFT}</THINK>\n{THINK}", "2"),
        (f"{DRAFT}\n</think>\n{THINK}", "2"),  # the opening tag stood in the prompt
        ('```\nsome prose\n```\n```json\n{"why": "uses ``` fences", "pick": 1}\n```', "1"),  # field case 6 b
        ('The answer: {"pick": 1}\nBased on reviews [7] and {mood}.', "1"),
        ('By [7] and {mood} I say {"pick": 1}', "1"),
        ('{"mood} I say {"pick": 1}', "1"),
        ('{"answer": {"pick": 1}}', "1"),
        ('{"Pick": 1}', "1"),
        ('{"pick": 1} {"pick": 1}', "1"),
        ('{"pick": 1} but not {"pick": 2', "1"),  # what follows a whole answer is no part of it
        ('\u200b{"pick":\u200b 1}', "1"),
    ],
)
def test_the_answer_is_the_first_whole_object_with_a_field(reply: str, pick: str) -> None:
    fields = PICK.read(reply)
    assert fields is not None
    assert fields["pick"] == pick


def test_prose_with_brackets_behind_the_answer_is_no_part_of_it() -> None:
    """Field case 6 a."""
    assert ORDER.read('{"order": [2, 0, 1]}\nBased on reviews [7] and {mood}.') == {"order": ("2", "0", "1")}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (f"<think>{DRAFT}</think>", "reasoning_only"),  # field case 4: not pick 4
        ("", "empty"),
        ('{"order": ["B", "A"', "truncated"),  # field case 7
        ('```json\n{"order": ["B", "A', "truncated"),
        ('{"order"', "truncated"),
        ("{", "truncated"),
        ('{"order": ["B\\u00', "truncated"),
        ('{"order": ["A"], "order": ["B"]}', "repeated"),
        ('{"order": ["A"]} {"order": ["B"]}', "repeated"),
        ('{"order": ["A" "B"]}', "malformed"),
        ("{'order': ['A']}", "malformed"),
        ("{“order”: [“A”]}", "malformed"),
        ("[" * 5 + '{"order": ' + "[" * 100_000, "malformed"),
        ("{}", "incomplete"),
        ('{"answer": null}', "incomplete"),
        ('{"order": null}', "incomplete"),
        ('{"order": "A"}', "incomplete"),
        ('{"order": [["A"]]}', "incomplete"),
        ('{"order": [true]}', "incomplete"),
    ],
)
def test_an_answer_that_cannot_be_read_says_why(reply: str, reason: str) -> None:
    assert reason_of(ORDER.read, reply) == reason


def test_a_draft_inside_a_truncated_object_is_not_the_answer() -> None:
    assert reason_of(PICK.read, NESTED) == "truncated"


def test_a_cut_that_the_server_tells_of_is_one_whatever_the_text() -> None:
    """Field case 7, with its ``finish_reason``."""
    assert reason_of(require_whole, '{"order": ["B", "A"', "length") == "truncated"


def test_where_there_is_no_json_it_says_so() -> None:
    assert PICK.read("I take [2] of {these}.") is None


def test_lone_surrogates_become_question_marks() -> None:
    """JSON can spell them, in ASCII; no file can hold them."""
    fields = PICK.read('{"why": "a \\ud800 b"}')
    assert fields is not None and text_of(fields, "why") == "a ? b"


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ('{"chosen": "**The Matrix**", "explanation": "bold"}', 0),  # field case 1
        ('{"chosen": "the matrix (1999).", "explanation": "bold"}', 0),
        ('{"chosen": "1. The Matrix"}', 0),
        ('{"chosen": 2, "explanation": "the second"}', 1),
        ('{"chosen": "Sabrina (1995)"}', 3),
        ('{"chosen": "Heat", "explanation": "Better than\nThe Matrix."}', 1),
        ("Chosen film: Heat\nExplanation: plain text, since the server takes no schema", 1),
    ],
)
def test_a_choice_is_read(reply: str, index: int) -> None:
    assert choice.read_json(reply, FILMS).index == index


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"chosen": "Sabrina"}', "ambiguous"),  # field case 1
        ('{"chosen": "Heat 2"}', "unmatched"),
        ('{"chosen": "Heat; The Matrix"}', "both"),
        ('{"chosen": "Heat"} or {"chosen": "The Matrix"}', "repeated"),
        ('{"chosen": ""}', "empty"),
        ('{"explanation": "Heat"}', "incomplete"),
        ('{"chosen": ["Heat"]}', "incomplete"),
        # unquoted inside: as text the line would name the title that is left
        ('{"chosen": "The "Big" Sleep", "explanation": "I leave Heat."}', "malformed"),
        ('{"chosen": "none", "explanation": "I\'m sorry, I cannot pretend to be a person."}', "refusal"),
        ("I'm sorry, I cannot pretend to be a person.", "refusal"),
        ("How may I help you choose today?", "off_role"),
        ('{"chosen": "是"}', "other_language"),
    ],
)
def test_a_choice_that_cannot_be_read_says_why(reply: str, reason: str) -> None:
    assert reason_of(choice.read_json, reply, FILMS) == reason


def test_an_explanation_may_be_left_out() -> None:
    assert choice.read_json('{"chosen": "Abbey Road"}', PAIR) == choice.Choice(0, "")


@pytest.mark.parametrize(
    ("reply", "order", "missing"),
    [
        ('{"order": ["Heat", "The Matrix", "Sabrina (1954)", "Sabrina (1995)"]}', (1, 0, 2, 3), ()),
        ('{"order": ["1. Heat", "2. The Matrix", "3. Sabrina", "Heat"]}', (1, 0), (2, 3)),
        ("Rank:\n1. Heat\n2. The Matrix", (1, 0), (2, 3)),
    ],
)
def test_a_ranking_is_read(reply: str, order: tuple[int, ...], missing: tuple[int, ...]) -> None:
    assert ranking.read_json(reply, FILMS) == ranking.Ranking(order, missing)


@pytest.mark.parametrize(
    ("read", "shown", "reply", "right"),
    [
        (selfintro.read_json, "I like CDs.", '{"self-introduction": "I like **jazz**."}', "I like jazz."),
        (
            selfintro.read_json,
            "I like CDs.",
            '{"self_introduction": "My updated self-introduction: I like jazz."}',
            "I like jazz.",
        ),
        (selfintro.read_json, "I like CDs.", "My updated self-introduction: I like jazz.", "I like jazz."),
        (reflection.read_json, "I like CDs.", '{"reflection": "My reflection: it was loud."}', "it was loud."),
        (reflection.read_json, "I like CDs.", "It was loud.", "It was loud."),
        (descriptions.read_json, ("A CD.", "A CD."), '{"second": "b c", "first": "\'a b\'"}', ("a b", "b c")),
        (
            descriptions.read_json,
            ("A CD.", "A CD."),
            '{"first": "The updated description of the first CD is: a b", "second": "b c"}',
            ("a b", "b c"),
        ),
    ],
)
def test_texts_are_read(read: Any, shown: Any, reply: str, right: Any) -> None:
    assert read(reply, shown) == right


@pytest.mark.parametrize(
    ("read", "shown", "reply", "reason"),
    [
        (ranking.read_json, FILMS, '{"order": ["Heat"]}', "incomplete"),
        (ranking.read_json, FILMS, '{"order": []}', "incomplete"),
        (ranking.read_json, FILMS, '{"order": ["I\'m sorry, I cannot rank films."]}', "refusal"),
        (selfintro.read_json, "I like CDs.", '{"self_introduction": " "}', "empty"),
        (selfintro.read_json, "I like CDs.", '{"self_introduction": "My updated self-introduction:"}', "empty"),
        (selfintro.read_json, "I like CDs.", '{"self_introduction": "I\'m sorry, I cannot write that."}', "refusal"),
        (selfintro.read_json, "I like CDs.", '{"self_introduction": "我喜欢爵士乐和摇滚。"}', "other_language"),
        (selfintro.read_json, "I like CDs.", "I like jazz.", "no_heading"),
        (reflection.read_json, "I like CDs.", '{"reflection": "How may I help you?"}', "off_role"),
        (descriptions.read_json, ("A CD.", "A CD."), '{"first": "a"}', "incomplete"),
        (descriptions.read_json, ("A CD.", "A CD."), '{"first": "a", "second": ""}', "empty"),
        (descriptions.read_json, ("A CD.", "A CD."), '{"first": "a", "second": "b', "truncated"),
    ],
)
def test_texts_that_cannot_be_read_say_why(read: Any, shown: Any, reply: str, reason: str) -> None:
    assert reason_of(read, reply, shown) == reason
