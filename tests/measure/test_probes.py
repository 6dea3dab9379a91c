"""Probes as a log has them: what was answered, what the memory said then, and how far the ways of telling agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simengine.embed import EmbedSettings, make_embedder
from simengine.kernel import Version
from simengine.measure.probes import Probed, ProbeReader, agreement, is_similar, similarities
from simengine.runlog import EventLine, MessageLine

TEXT = "I like theremin duets."


def memory(agent: str, value: str, slot: str = "short", number: int = 1) -> EventLine:
    version = Version(agent=agent, slot=slot, version=number, value=value, unit="", because=())
    return EventLine(f"write/{agent}/{slot}/{number}", "interaction", 1, memories=[version])


def probe(user: str, holds: bool | None) -> EventLine:
    data = {"stage": "probe", "user": user, "statement": 2, "at": "end", "preference": TEXT}
    body = {"holds": holds, "explanation": ""}
    message = MessageLine("p#1", f"user:{user}", "venue:probe", "probe", body, [])
    return EventLine(f"probe/{user}", "probe.ask", 9, data=data, messages=[] if holds is None else [message])


def read(*lines: EventLine) -> list[Probed]:
    reader = ProbeReader("short")
    for line in lines:
        reader.take(line)
    return reader.probed


def test_a_probe_goes_with_the_memory_of_its_place_in_the_log() -> None:
    found = read(
        memory("user:1", f"Jazz. {TEXT}"),
        probe("1", True),
        memory("user:1", "Only jazz.", number=2),
        memory("user:1", TEXT, slot="long"),  # not what it says of itself
        probe("1", False),
        probe("2", None),
    )
    assert [(each.holds, each.words, each.memory, each.position) for each in found] == [
        (True, True, f"Jazz. {TEXT}", 1),
        (False, False, "Only jazz.", 4),
        (None, False, "", 5),  # no answer could be read, and nothing was ever written
    ]
    assert {(each.at, each.statement, each.preference) for each in found} == {("end", 2, TEXT)}


def test_before_anything_is_written_a_probe_goes_with_what_the_user_starts_with() -> None:
    reader = ProbeReader("short", {"user:1": {"short": TEXT}, "user:2": {"short": "Jazz."}}.__getitem__)
    for line in (probe("1", True), probe("2", False), memory("user:1", "Only jazz."), probe("1", False)):
        reader.take(line)
    assert [(each.memory, each.words) for each in reader.probed] == [
        (TEXT, True),
        ("Jazz.", False),
        ("Only jazz.", False),
    ]


def test_other_questions_are_no_probes() -> None:
    other: Any = EventLine("survey/1", "survey.ask", 1, data={"user": "1"})
    assert read(other) == []


async def test_similarity_is_a_cosine_of_statement_and_memory() -> None:
    embedder = make_embedder(EmbedSettings())
    found = read(memory("user:1", TEXT), memory("user:2", "Brass bands and marches."), *map(probe, "123", [True] * 3))
    same, other, nothing = await similarities(embedder, found)
    assert same == pytest.approx(1)
    assert 0 <= other < same
    assert nothing == 0
    assert len(await similarities(embedder, [])) == 0


def test_similar_is_above_nearly_all_of_the_control() -> None:
    control = np.arange(101) / 100  # of these 95 percent lie at 0.95 or below
    assert is_similar(np.array([0.95, 0.951]), control).tolist() == [False, True]
    assert is_similar(np.array([1.0]), np.zeros(0)).tolist() == [False]  # nothing to compare with


def test_agreement_counts_and_kappa_takes_chance_off() -> None:
    # Of ten, 3 by both, 1 by the first only, 2 by the second only, 4 by neither: 0.7 agree, by chance
    # 0.4 * 0.5 + 0.6 * 0.5 = 0.5 would, so kappa is 0.2 / 0.5 (Cohen 1960).
    one = [True] * 4 + [False] * 6
    other = [True] * 3 + [False] + [True] * 2 + [False] * 4
    found = agreement("answers", "words", one, other)
    assert (found.first, found.second, found.n, found.both, found.first_only, found.second_only) == (
        "answers", "words", 10, 3, 1, 2,
    )  # fmt: skip
    assert found.agree == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)


def test_kappa_is_unknown_where_both_ways_give_one_answer() -> None:
    found = agreement("answers", "words", [False] * 3, [False] * 3)
    assert (found.n, found.agree) == (3, 1.0)
    assert found.kappa is not None and math.isnan(found.kappa)
    assert agreement("answers", "words", [], []).n == 0
