"""The parsers on recorded texts: how many replies of a small model are read, and why the others are not.

The figures are what was found when the rules were fixed. A change of rule that moves one is to be looked at, not
necessarily wrong. The replies were written for other prompts; 23 of the 162 end at the token limit.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simengine.llm.replies import Unreadable, choice, descriptions, ranking, selfintro


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def outcomes(rows: list[dict[str, Any]], task: str, read: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in rows:
        if row["task"] == task:
            try:
                counts[read(row)] += 1
            except Unreadable as error:
                counts[error.reason] += 1
    return counts


@pytest.fixture(scope="module")
def replies(real_data: Path) -> list[dict[str, Any]]:
    return lines(real_data / "small-model-replies" / "replies.jsonl")


def test_choices(replies: list[dict[str, Any]]) -> None:
    """All 60 are read; 29 take the second option, the true one, as the data's own count says."""
    found = outcomes(replies, "choose", lambda row: f"option {choice.read(row['reply'], row['options']).index + 1}")
    assert found == {"option 1": 31, "option 2": 29}


def test_self_introductions(replies: list[dict[str, Any]]) -> None:
    found = outcomes(replies, "reflect.user", lambda row: selfintro.read(row["reply"], "I like CDs.") and "read")
    assert found == {"read": 16, "no_heading": 3, "repeated": 1}


def test_descriptions(replies: list[dict[str, Any]]) -> None:
    found = outcomes(
        replies, "reflect.item", lambda row: descriptions.read(row["reply"], ("A CD.", "A CD.")) and "read"
    )
    assert found == {"read": 8, "incomplete": 10, "no_heading": 2}


def test_rankings(replies: list[dict[str, Any]]) -> None:
    def read(row: dict[str, Any]) -> str:
        found = ranking.read(row["reply"], [candidate["title"] for candidate in row["candidates"]])
        assert sorted(found.order + found.missing) == list(range(10))
        return "partly" if found.missing else "whole"

    assert outcomes(replies, "rank", read) == {"whole": 27, "partly": 23, "incomplete": 12}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_recorded_selections_survive_the_choice_format(real_data: Path, kind: str) -> None:
    """Each of the 500 recorded pairs of titles, entities and broken ones included, is told apart in both orders."""
    rows = lines(real_data / f"agentcf-cds-{kind}" / "recorded" / "selections.jsonl")
    assert len(rows) == 500
    for row in rows:
        titles = (row["neg_title"], row["pos_title"])
        for at in (0, 1):
            assert choice.read(choice.write("CD", titles, at, row["explanation"]), titles).index == at


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_recorded_user_memories(real_data: Path, kind: str) -> None:
    """One of the hundred memories of each set holds two self-introductions, with the heading between them."""
    counts: Counter[str] = Counter()
    for row in lines(real_data / f"agentcf-cds-{kind}" / "recorded" / "user_memory_final.jsonl"):
        if row["user_id"] != "[PAD]":
            try:
                read = selfintro.read(selfintro.write(row["memory"]), row["memory"])
            except Unreadable as error:
                counts[error.reason] += 1
            else:
                counts["read"] += 1
                assert selfintro.read(selfintro.write(read), read) == read
    assert counts == {"read": 99, "repeated": 1}


@pytest.mark.parametrize(("kind", "count"), [("dense", 551), ("sparse", 556)])
def test_recorded_item_memories(real_data: Path, kind: str, count: int) -> None:
    """All are read, and all their words are kept, in either place."""
    rows = lines(real_data / f"agentcf-cds-{kind}" / "recorded" / "item_memory.jsonl")
    memories = [memory for row in rows for memory in row["memories"]]
    assert len(memories) == count
    for memory in memories:
        read = descriptions.read(descriptions.write("CD", memory, memory), (memory, memory))
        assert read[0] == read[1]
        assert re.findall(r"\w+", read[0]) == re.findall(r"\w+", memory)
