"""The scan for JSON in a reply: what counts as whole, what as cut or misspelt, and that no reply takes it long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_replies_formats import reason_of

from simengine.llm.replies import Unreadable
from simengine.llm.replies.scan import DEEPEST, scan

SECONDS = 4.0
"""For two scans, on a machine that does other things as well."""

LONG = "x" * 400_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def _scanned(text: str, **options: bool) -> tuple[list[Any], str]:
    """The values, and the reason of what is broken."""
    found = scan(text, **options)
    assert found is not None
    return list(found.values), found.broken.reason if found.broken else ""


def _picked(value: Any) -> Any:
    return value.get("pick") if isinstance(value, dict) else None


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_whatever_is_valid_is_found_among_prose_and_in_fences(value: dict[str, Any]) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert _scanned(f"Here it is:\n```json\n{text}\n```\nI hope {{this}} [1] helps.") == ([value], "")


@pytest.mark.parametrize(
    ("text", "lists", "right"),
    [
        ('{"a": 1} and {"b": {"c": 2}}', False, ([{"a": 1}, {"b": {"c": 2}}], "")),
        ('[{"a": 1}, {"b": 2}]', False, ([{"a": 1}, {"b": 2}], "")),
        ('[{"a": 1}, {"b": 2}]', True, ([[{"a": 1}, {"b": 2}]], "")),
        ('[{"a": 1}, {"b"', False, ([{"a": 1}], "truncated")),
        ('[{"a": 1}, {"b"', True, ([], "truncated")),
        ('{"mood} I say {"a": 1}', False, ([{"a": 1}], "malformed")),
        ('{"a": NaN}', False, ([{"a": pytest.approx(float("nan"), nan_ok=True)}], "")),
        ('{"a": "one\ntwo"}', False, ([{"a": "one\ntwo"}], "")),
        # broken before it is cut: what it holds is a draft all the same
        ('By {"x"} I say {"draft": {"a": 3}, "final": {"a', False, ([], "truncated")),
        # a number behind \u that is none, inside the text and at its end
        ('{"path": "C:\\users"} {"a": 1}', False, ([{"a": 1}], "malformed")),
        ('{"a": "\\u00', False, ([], "truncated")),
        ('{"a": "\\u00"}', False, ([], "malformed")),
    ],
)
def test_what_is_whole_and_what_is_broken(text: str, lists: bool, right: tuple[list[Any], str]) -> None:
    assert _scanned(text, lists=lists) == right


@pytest.mark.parametrize("text", ["", "I take [2] of {these}.", "[]", "[1, 2]", "{ x }"])
def test_where_no_object_begins_there_is_none(text: str) -> None:
    assert scan(text, lists=True) is None


def test_an_outer_answer_goes_before_those_inside_it() -> None:
    found = scan('{"a": [{"pick": {"pick": 1}}]} {"pick": {"pick": 1}}')
    assert found is not None
    assert found.one(_picked, "nothing") == {"pick": 1}
    assert reason_of(found.one, lambda value: None, "nothing") == "incomplete"


def test_answers_that_differ_are_none() -> None:
    found = scan('{"pick": 1} {"not": {"pick": 2}}')
    assert found is not None
    assert reason_of(found.one, _picked, "nothing") == "repeated"


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": {"b": 1, "b": [1]}}', '{"\\ud800": 1, "\\ud800": 2}'])
def test_a_field_that_comes_twice_is_named_in_what_a_file_can_hold(text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        scan(text)
    assert caught.value.reason == "repeated"
    assert caught.value.detail.encode()


@pytest.mark.parametrize(("levels", "reason"), [(DEEPEST, ""), (DEEPEST + 1, "malformed"), (900, "malformed")])
def test_no_value_is_deeper_than_the_bound(levels: int, reason: str) -> None:
    """So comparing, writing and showing it never meets the interpreter's own bound."""
    for opening, closing in (('{"a": ', "}"), ("[", "]")):
        text = '{"pick": ' + opening * (levels - 1) + "1" + closing * (levels - 1) + "}"
        values, broken = _scanned(f'{{"a": 1}} {text} {{"b": 1}}')
        assert broken == reason
        assert len(values) == (1 if reason else 3)


HOSTILE = {
    "deep": '{"a": ' * 50_000,
    "deep and closed": '{"a": ' * 900 + "1" + "}" * 900,
    "deep lists": "[" * 50_000 + '{"a": ' + "[" * 50_000,
    "nested and misspelt at the end": '{"a": ' * 400 + json.dumps([LONG] * 3) + " x",
    "many misspelt": '{"a" ' * 60_000,
    "many small": '{"a": 1} ' * 40_000,
    "many empty": "{}" * 80_000,
    "openers in a text": '{"a": "' + "{'" * 200_000 + '"}',
    "a text without end": '{"a": "' + LONG,
    "blanks": "{" + " " * 400_000 + "x" + '{"a": 1}',
    "a long number": '{"a": ' + "9" * 100_000 + "}",
    "many long numbers": '{"a": [' + ", ".join(["9" * 4000] * 100) + "]}",
    "a wide object": json.dumps({f"a{at}": at for at in range(50_000)}),
    "fields that differ late": '{"a": "' + LONG + 'x", "a": "' + LONG + 'y"}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_reply_takes_long(text: str) -> None:
    began = time.perf_counter()
    for lists in (False, True):
        try:
            found = scan(text, lists=lists)
            if found is not None:
                found.one(_picked, "nothing")
        except Unreadable:
            pass
    assert time.perf_counter() - began < SECONDS
