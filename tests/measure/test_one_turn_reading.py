"""The reading of one-turn recommendation, from logs made by hand; and what drawing by weight comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine.data import Case, Dataset, Interactions, Item
from simengine.measure.studies.one_turn import OneTurnReading
from simengine.measure.weighted import DRAWS, ndcg_by_weight
from simengine.runlog import EventLine, MessageLine

SECOND, THIRD = 1 / np.log2(3), 0.5
"""NDCG of a target at rank 2 and at rank 3."""
NOTHING_IN_VAIN: Mapping[str, Any] = {"invented": [], "ambiguous": [], "repeated": [], "outside": [], "beyond": 0}


def _data() -> Dataset:
    """Ten items, of which a was taken by three users and b by one; each user's target is a."""
    users, names = ("u", "v", "w"), tuple("abcdefghij")
    user, item = np.array([(0, 0), (1, 0), (2, 0), (0, 1)], np.int32).T
    zeros = np.zeros(4, np.int32)
    rows = Interactions(users, names, user, item, zeros.astype(np.int64), zeros, zeros.astype(np.int64))
    items = {name: Item(name, f"Title {name}{name}{name}") for name in names}
    data = Dataset("hand", "CD", users, items, rows, rows, rows, (), {}, "step", "")
    return dataclasses.replace(data, cases=tuple(Case(name, "a", (), None, 0) for name in users))


def _line(case: int, task: str, *replies: Mapping[str, Any], how: str = "answer", **more: Any) -> EventLine:
    listed = ["c", "a", "b"] if task == "ranking" else []
    data = {
        "user": "uvw"[case], "item": "a", "case": case, "k": 3 if listed else 2, "candidates": listed, "skip": "",
        "left_out": [],
    }  # fmt: skip
    bodies = [("reply", {"text": "", **reply}) for reply in replies]
    bodies += [*more.pop("said", ()), ("end", {"how": how, "named": False})]
    messages = [MessageLine(f"#.{at}", "x", "y", kind, body) for at, (kind, body) in enumerate(bodies)]
    units = {"dialogue": "ok", **more.pop("units", {})}
    return EventLine(
        f"one_turn/{task}/{case}", f"one_turn.{task}", 0, data={**data, **more.pop("data", {})}, messages=messages,
        units=units, **more,
    )  # fmt: skip


def _found(*lines: EventLine) -> Any:
    reading = OneTurnReading("one_turn", _data())
    for line in lines:
        reading.take(line)
    return reading.found(0)


def _values(found: Any, ranker: str = "interec") -> dict[tuple[str, str], float]:
    return {(it.group, it.metric): it.value for it in found.results if it.ranker == ranker}


def test_recall_and_ndcg_are_means_over_users() -> None:
    """Of two retrievals one has the target; of three rankings it is at rank 2, at rank 3, and nowhere."""
    found = _found(
        _line(0, "retrieval", {"items": ["c", "a"]}),
        _line(1, "retrieval", {"items": ["c", "b"], "text": "Take Title aaa."}),
        _line(0, "ranking", {"items": ["b", "a"]}),
        _line(1, "ranking", {"items": ["c", "a"], "ranks": ["c", "", "a"], **NOTHING_IN_VAIN}),
        _line(2, "ranking", {"items": ["b", "c"]}),
    )
    values = _values(found)
    assert values["retrieval", "recall"] == 0.5
    assert values["retrieval", "text recall"] == 0.5  # the other one
    assert values["ranking", "ndcg"] == pytest.approx((SECOND + THIRD) / 3)
    assert {(it.group, it.metric, it.k, it.n) for it in found.results if it.k} == {
        ("retrieval", "recall", 2, 2), ("retrieval", "text recall", 2, 2), ("ranking", "ndcg", 3, 3)
    }  # fmt: skip
    assert "one_turn, ranking: of 9 candidates 3 are left out of the rankings" in found.notes
    assert any("by the text of the replies 1 targets are recommended that are not" in note for note in found.notes)


def test_the_last_attempt_is_the_answer() -> None:
    """A reply that was rejected, or one after which none could be had, is none."""
    better, worse = {"items": ["a", "c"]}, {"items": ["c", "b"]}
    assert _values(_found(_line(0, "retrieval", worse, better)))["retrieval", "recall"] == 1
    assert _values(_found(_line(0, "retrieval", better, worse)))["retrieval", "recall"] == 0
    found = _found(_line(0, "retrieval", better, how="error", units={"reply/2": "malformed"}))
    assert _values(found)["retrieval", "recall"] == 0
    assert "one_turn, retrieval: no answer in 1 of 1 cases, which count 0: reply: malformed 1" in found.notes


def test_an_event_that_fails_as_a_whole_counts_nothing() -> None:
    line = _line(0, "ranking", {"items": ["a"]}, units={"": "full"})
    line.messages = line.messages[:-1]  # it says no end
    found = _found(line)
    assert _values(found)["ranking", "ndcg"] == 0
    assert any("which count 0: : full 1" in note for note in found.notes)


def test_cases_without_a_talk_or_a_list_are_skipped() -> None:
    found = _found(
        _line(0, "retrieval", units={"dialogue": "malformed"}),
        _line(0, "ranking", data={"skip": "no list", "candidates": []}, units={"dialogue": "ok"}),
    )
    assert found.skipped == {"retrieval: no talk was written": 1, "ranking: no list": 1}
    assert found.results == []


def test_random_is_exact() -> None:
    """Two of ten items; and three ranks, each as likely."""
    values = _values(_found(_line(0, "retrieval", {"items": []}), _line(0, "ranking", {"items": []})), "random")
    assert values["retrieval", "recall"] == pytest.approx(0.2)
    assert values["ranking", "ndcg"] == pytest.approx((1 + SECOND + THIRD) / 3)


def test_popularity_draws_by_weight() -> None:
    """Only a and b have weight, so two draws take both; of c, a, b the first is a with 3/4, and else the second."""
    values = _values(_found(_line(0, "retrieval", {"items": []}), _line(0, "ranking", {"items": []})), "popularity")
    assert values["retrieval", "recall"] == 1
    assert values["ranking", "ndcg"] == pytest.approx(0.75 + 0.25 * SECOND, abs=0.02)


def test_what_weighs_nothing_is_drawn_last_in_any_order() -> None:
    """Weights 2, 1, 0, 0: the first is first with 2/3; the last two have ranks 3 and 4, each as likely."""
    weights, error = np.array([2.0, 1.0, 0.0, 0.0]), 4 * np.sqrt(0.25 / DRAWS)
    assert ndcg_by_weight(weights, 0, seed=1) == pytest.approx(2 / 3 + SECOND / 3, abs=error)
    assert ndcg_by_weight(weights, 3, seed=1) == pytest.approx((THIRD + 1 / np.log2(5)) / 2, abs=error)
    assert ndcg_by_weight(np.zeros(1), 0, seed=1) == 1


def test_notes_count_what_was_in_vain_and_the_planners_errors() -> None:
    vain = {**NOTHING_IN_VAIN, "invented": ["x", "y"], "repeated": ["z"], "beyond": 2}
    plan = {"work": [{"code": ""}, {"code": "no_match"}, {"code": "no_match"}]}
    found = _found(
        _line(0, "retrieval", {"items": [], "ranks": ["", "", ""], **vain}),
        _line(
            0, "ranking", {"items": ["d", "a"]}, said=[("plan", plan), ("verdict", {"accepted": False})],
            units={"critic/2": "malformed"}, calls={"plan/1": "k", "reply/1": "k", "use/1/tools": "k", "dialogue": "k"},
        ),
    )  # fmt: skip
    for text in (
        "one_turn, retrieval: titles in vain in 1 case: beyond the last 2, invented 2, repeated 1",
        "one_turn, ranking: tool errors in 1 case: no_match 2",
        "one_turn, ranking: verdicts of the critic in 1 case: rejected 1, unreadable 1",
        "one_turn, ranking: 1 places are taken by items that were not to be ranked",
    ):
        assert text in found.notes
    assert not any("retrieval: tool errors" in note for note in found.notes)
    assert _values(found)["ranking", "calls"] == 2


def test_values_of_each_case_are_by_task() -> None:
    reading = OneTurnReading("one_turn", _data())
    assert list(reading.per_case()) == []
    for case, task, items in ((1, "retrieval", ["a"]), (0, "retrieval", []), (2, "ranking", [])):
        reading.take(_line(case, task, {"items": items}))
    (first, _, one), (second, _, other) = reading.per_case()
    assert (first, second) == ("retrieval", "ranking")
    assert one.cases == (("v", 1), ("u", 1))
    assert one.values["recall", 2].tolist() == [1, 0]
    assert other.values["ndcg", 3].tolist() == [0]


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    reading = OneTurnReading("one_turn", _data())
    reading.take(_line(0, "retrieval", {"items": ["a"]}))
    reading.take(_line(0, "ranking", {"items": ["a"]}))
    reading.draw(reading.found(0), tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 0
