"""The format of interest tags: written, read back, and read as models really write lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.llm.replies import Unreadable, tags

TAG = st.from_regex(r"[a-z][a-z0-9]{0,9}( [a-z0-9]{1,9}){0,3}", fullmatch=True)


@given(st.lists(TAG, min_size=1, max_size=9, unique=True))
def test_what_is_written_is_read(named: list[str]) -> None:
    for json, read in ((False, tags.read), (True, tags.read_json)):
        assert read(tags.write(named, json=json), "I like jazz.") == tuple(named)


@pytest.mark.parametrize(
    "reply",
    [
        "Tags:\n- Slow Jazz\n- film noir",
        "**Tags:**\n1. Slow Jazz\n2. Film noir.",
        "Here are my interest tags:\n\n* slow jazz\n* film noir\n",
        "Tags: slow jazz; film noir",
        "Tags: Slow jazz, film noir.",
        'Tags: ["slow jazz", "film noir"]',
        "```\nTags:\n- `slow jazz`\n- film noir\n```",
        "- slow jazz\n- film noir",
        "Tags:\nslow jazz\nfilm noir",
        "Tags:\n- slow jazz\n- Slow Jazz\n- film noir",
        "Tags:\n- slow jazz\n- this one goes on and on until it has become a whole sentence\n- film noir",
        "<think>jazz?</think>\nTags:\n- “slow jazz”\n- film noir",
    ],
)
def test_lists_of_all_kinds_are_read(reply: str) -> None:
    assert tags.read(reply, "I like slow jazz and film noir.") == ("slow jazz", "film noir")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("This person likes jazz.", "no_heading"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("Tags:", "empty"),
        ("Tags:\n- ???", "empty"),
        ("Tags: this person likes a great many things of which I can name only very few", "empty"),
    ],
)
def test_what_holds_no_tag_is_unreadable(reply: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        tags.read(reply, "I like jazz.")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"tags": ["Slow jazz", "film noir", "slow jazz"]}', ("slow jazz", "film noir")),
        ('{"Tags": ["jazz"]}', ("jazz",)),
        ("Tags:\n- jazz", ("jazz",)),
    ],
)
def test_json_is_read(reply: str, found: tuple[str, ...]) -> None:
    assert tags.read_json(reply, "I like jazz.") == found


@pytest.mark.parametrize(("reply", "reason"), [('{"tags": []}', "empty"), ('{"tags": "jazz"}', "incomplete")])
def test_json_without_tags_is_unreadable(reply: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        tags.read_json(reply, "I like jazz.")
    assert caught.value.reason == reason
