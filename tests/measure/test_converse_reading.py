"""The reading of conversations, from logs made by hand; and the chances of the baselines."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from simengine.data import Case, Dataset, Interactions, Item
from simengine.measure.studies.converse import ConverseReading
from simengine.measure.weighted import DRAWS, drawn_by_weight
from simengine.runlog import EventLine, MessageLine
from simengine.runlog.records import SpawnLine


def _data() -> Dataset:
    """Ten items; a was taken by three users, b by one, the others by none."""
    users, names = ("u", "v", "w"), tuple("abcdefghij")
    pairs = [(0, 0), (1, 0), (2, 0), (0, 1)]
    user, item = np.array(pairs, np.int32).T
    zeros = np.zeros(len(pairs), np.int32)
    rows = Interactions(users, names, user, item, zeros.astype(np.int64), zeros, zeros.astype(np.int64))
    return Dataset("hand", "CD", users, {n: Item(n, n) for n in names}, rows, rows, rows, (), {}, "step", "")


def _turn(
    user: str,
    turn: int = 1,
    how: str = "",
    *,
    target: str = "a",
    marks: tuple[str, ...] = (),
    calls: tuple[str, ...] = (),
    verdicts: tuple[bool, ...] = (),
    codes: tuple[str, ...] = (),
    says: str = "",
    units: Mapping[str, str] | None = None,
) -> EventLine:
    """A turn of the talk of a user; it is the last one where ``how`` says how the talk ended."""
    bodies: list[tuple[str, dict[str, Any]]] = [("plan", {"work": [{"code": code} for code in codes]})]
    bodies += [("reply", {"text": says, "items": []})] if says else []
    bodies += [("verdict", {"accepted": yes}) for yes in verdicts]
    bodies += [("end", {"how": how, "turns": turn, "marks": list(marks)})] if how else []
    messages = [MessageLine(f"{user}#.{at}", "x", "y", kind, body) for at, (kind, body) in enumerate(bodies)]
    data = {"user": user, "item": target, "turn": turn, "turns": 3, "k": 2, "marks": list(marks)}
    path, name = dict.fromkeys(calls, "key reply"), f"converse/talk/{user}/1+{turn}"
    spawns = [] if how else [SpawnLine(f"{name}+", "converse.turn", 0, ())]
    return EventLine(
        name, "converse.turn", 0, data=data, messages=messages, calls=path, units=dict(units or {}), spawns=spawns
    )


def _line(user: str, how: str, turn: int, **more: Any) -> EventLine:
    """A talk of which the last turn alone is on record."""
    return _turn(user, turn, how, **more)


def _reading(*lines: EventLine) -> ConverseReading:
    """The reading of these talks; each user has one test case."""
    targets = {line.data["user"]: line.data["item"] for line in lines}
    cases = tuple(Case(user, target, (), None, 0) for user, target in targets.items())
    for line in lines:
        line.data["case"] = list(targets).index(line.data["user"])
    reading = ConverseReading("converse", dataclasses.replace(_data(), cases=cases))
    for line in lines:
        reading.take(line)
    return reading


def _found(*lines: EventLine) -> Any:
    return _reading(*lines).found(0)


def _values(found: Any, ranker: str = "interec") -> dict[str, float]:
    return {result.metric: result.value for result in found.results if result.ranker == ranker}


def test_a_failure_counts_one_more_than_the_limit() -> None:
    """A hit in turn 1, one in turn 3, a farewell in turn 2 and an error in turn 1: (1 + 3 + 4 + 4) / 4."""
    ends = [("u", "hit", 1), ("v", "hit", 3), ("w", "farewell", 2), ("x", "error", 1)]
    found = _found(*(_line(*end) for end in ends))
    assert _values(found)["hit"] == 0.5
    assert _values(found)["at"] == 3.0
    assert {result.k for result in found.results if result.metric in ("hit", "at")} == {3}
    assert [_values(found)[f"ended by {how}"] for how in ("hit", "farewell", "limit", "error")] == [0.5, 0.25, 0, 0.25]


def test_a_talk_in_which_the_target_was_named_is_left_out() -> None:
    found = _found(_line("u", "hit", 1, marks=("named",)), _line("v", "limit", 3))
    assert found.skipped == {"the target was named": 1}
    assert (_values(found)["hit"], _values(found)["at"]) == (0.0, 4.0)
    assert any("users name the target" in note and "asked again: 1 (" in note for note in found.notes)
    only = _found(_line("u", "hit", 1, marks=("named",)))
    assert (only.results, only.skipped) == ([], {"the target was named": 1})


def test_calls_are_the_recommenders_by_the_turns_that_it_answered() -> None:
    """Seven calls in two turns; what the user says, and what is computed here, is no call of the recommender's."""
    one = _turn("u", 1, calls=("say/1", "nearest/nearest", "plan/1", "use/1/tools", "reply/1", "critic/1"))
    two = _turn("u", 2, "limit", calls=("say/1", "step/1.1", "step/1.1/reask", "reply/1", "critic/1"))
    assert _values(_found(one, two))["calls per turn"] == 3.5


def test_turns_of_talks_side_by_side_are_told_apart() -> None:
    lines = [_turn("u", 1), _turn("v", 1), _turn("v", 2, "hit"), _turn("u", 2), _turn("u", 3, "limit")]
    assert _values(_found(*lines))["at"] == (2 + 4) / 2


def test_hits_by_text_stand_beside_those_by_id() -> None:
    """The title of the target is one letter, which the reply of the second turn holds; no id was hit."""
    lines = [_turn("u", 1, says="Nothing."), _turn("u", 2, says="Take b."), _turn("u", 3, "limit", says="a")]
    found = _found(*(msgspec.structs.replace(line, data={**line.data, "item": "b"}) for line in lines))
    values = _values(found)
    assert (values["hit"], values["text hit"], values["text at"]) == (0, 1, 2)
    assert "converse: by the text of the replies 1 conversations hit that do not by item id, and 0 do not that do" in (
        found.notes
    )


def test_a_reply_that_was_never_said_hits_by_no_text() -> None:
    """The critic rejects it, and behind it there is none: the talk ends by an error."""
    values = _values(_found(_turn("u", 1, says="Nothing."), _turn("u", 2, "error", says="Take a.")))
    assert (values["text hit"], values["text at"]) == (0, 4)


def test_values_of_each_talk_can_be_held_against_another_runs() -> None:
    reading = _reading(_line("u", "hit", 1, calls=("plan/1",)), _line("v", "limit", 3), _line("w", "hit", 2))
    ((key, _, values),) = reading.per_case()
    assert (key, values.users) == ("interec", ("u", "v", "w"))
    assert values.values["at", 3].tolist() == [1, 4, 2]
    np.testing.assert_array_equal(values.values["calls per turn", None], [1, np.nan, np.nan])  # in no turn, none


def test_errors_and_verdicts_are_told_by_kind() -> None:
    units = {"critic/1.1": "malformed", "critic/1.2": "ok", "critic/2.1": "ok", "plan/1.1": "ok"}
    line = _line(
        "u", "limit", 3, codes=("", "no_match", "bad_sql", "no_match"), verdicts=(False, True), units=units,
        calls=("plan/1.1",),
    )  # fmt: skip
    found = _found(line)
    assert _values(found)["tool errors"] == 3
    assert _values(found)["accepted"] == pytest.approx(1 / 3)
    assert "converse: tool errors in 1 conversation: bad_sql 1, no_match 2" in found.notes
    assert "converse: verdicts of the critic in 1 conversation: accepted 1, rejected 1, unreadable 1" in found.notes


def test_random_is_exact() -> None:
    """Two of ten items a turn, three turns: Hit is 1 - 0.8^3, AT is 1 + 0.8 + 0.64 + 0.512."""
    values = _values(_found(_line("u", "limit", 3), _line("v", "limit", 3, target="j")), "random")
    assert values["hit"] == pytest.approx(1 - 0.8**3)
    assert values["at"] == pytest.approx(1 + 0.8 + 0.64 + 0.512)


def test_popularity_draws_by_weight_without_replacement() -> None:
    """Only two items have weight, and two are drawn: both always, the others never."""
    assert _values(_found(_line("u", "limit", 3)), "popularity") == {"hit": 1.0, "at": 1.0}
    assert _values(_found(_line("u", "limit", 3, target="c")), "popularity") == {"hit": 0.0, "at": 4.0}


def test_the_chances_are_those_of_drawing_one_by_one() -> None:
    """Of weights 3, 2, 1 two are drawn: the last is left out with 3/6 * 2/3 + 2/6 * 3/4 = 7/12."""
    found = drawn_by_weight(np.array([3.0, 2.0, 1.0, 0.0]), 2, seed=1)
    error = 4 * np.sqrt(0.25 / DRAWS)
    assert found[2] == pytest.approx(1 - 7 / 12, abs=error)
    assert found[3] == 0
    assert found.sum() == pytest.approx(2)


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    reading = _reading(_line("u", "hit", 1), _line("v", "limit", 3))
    reading.draw(reading.found(0), tmp_path / "converse.png")
    assert (tmp_path / "converse.png").stat().st_size > 0
