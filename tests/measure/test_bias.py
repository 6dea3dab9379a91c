"""The sensitivity of a ranker: a paired difference of its NDCG between two halves of a study's conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.data import Case
from simengine.measure import Result
from simengine.measure.bias import Condition, sensitivity
from simengine.measure.results import Attempt

NAMES = tuple("abcdefghij")
GAIN = {place: 1 / math.log2(place + 1) for place in range(1, 11)}
"""NDCG of a target at this place of ten."""


def case(user: str) -> Case:
    return Case(user, "a", (), NAMES, 1)


def at(place: int) -> Attempt:
    """Scores that put the target, which is the first candidate, at this place."""
    scores = np.arange(9.0, -1.0, -1.0)
    return np.concatenate([[scores[place - 1]], np.delete(scores, place - 1)])


def condition(users: Sequence[str], **attempts: Sequence[Attempt]) -> Condition:
    return Condition([case(user) for user in users], {name: [[one] for one in each] for name, each in attempts.items()})


def only(results: Sequence[Result]) -> Result:
    (result,) = results
    return result


def test_it_is_the_mean_of_the_users_own_differences() -> None:
    """Two users: one falls from first to third place, the other rises from second to first."""
    conditions = [condition("uv", pop=[at(1), at(2)]), condition("uv", pop=[at(3), at(1)])]
    found = only(sensitivity("bias", conditions, ks=[10], group="rare less popular"))
    differences = [GAIN[1] - GAIN[3], GAIN[2] - GAIN[1]]
    assert found.value == pytest.approx(sum(differences) / 2)
    assert found.low == pytest.approx(min(differences))
    assert found.high == pytest.approx(max(differences))
    named = (found.stage, found.ranker, found.metric, found.k, found.n, found.repeats, found.group)
    assert named == ("bias", "pop", "sensitivity", 10, 2, 1, "rare less popular")


def test_halves_are_averaged_and_the_middle_of_an_odd_number_is_left_out() -> None:
    places = [1, 2, 10, 3, 4]
    conditions = [condition("u", pop=[at(place)]) for place in places]
    found = only(sensitivity("bias", conditions, ks=[10], group=""))
    assert found.value == pytest.approx((GAIN[1] + GAIN[2]) / 2 - (GAIN[3] + GAIN[4]) / 2)


def test_each_cut_off_has_a_row_for_each_ranker() -> None:
    conditions = [condition("u", pop=[at(1)], bm25=[at(5)]), condition("u", pop=[at(2)], bm25=[at(5)])]
    found = sensitivity("bias", conditions, ks=[1, 10], group="")
    assert [(row.ranker, row.k, row.value) for row in found] == [
        ("pop", 1, 1.0),
        ("pop", 10, pytest.approx(1 - GAIN[2])),
        ("bm25", 1, 0.0),
        ("bm25", 10, 0.0),
    ]


def test_only_users_whom_all_rankers_have_ranked_under_all_conditions_count() -> None:
    """Else two rankers would rest on different users: v is missing to one under one condition, w to the other."""
    conditions = [
        condition("uvw", pop=[at(1), at(1), at(1)], agents=[at(1), "unmatched", at(1)]),
        condition("uvw", pop=[at(2), at(9), at(9)], agents=[at(3), at(1), "refusal"]),
    ]
    found = {row.ranker: row for row in sensitivity("bias", conditions, ks=[10], group="")}
    assert {name: row.n for name, row in found.items()} == {"pop": 1, "agents": 1}
    assert found["pop"].value == pytest.approx(GAIN[1] - GAIN[2])
    assert found["agents"].value == pytest.approx(GAIN[1] - GAIN[3])


def test_a_failure_in_the_middle_condition_costs_nothing() -> None:
    conditions = [condition("u", pop=[at(1)]), condition("u", pop=["refusal"]), condition("u", pop=[at(2)])]
    assert only(sensitivity("bias", conditions, ks=[10], group="")).n == 1


def test_a_case_goes_by_the_candidates_of_its_condition() -> None:
    """The target may stand elsewhere among them; scores are in their order."""
    moved = Condition([Case("u", "a", (), (*NAMES[1:], "a"), 1)], {"pop": [[at(1)[::-1]]]})
    found = only(sensitivity("bias", [condition("u", pop=[at(1)]), moved], ks=[10], group=""))
    assert found.value == 0


@pytest.mark.parametrize("conditions", [[], [condition("u", pop=[at(1)])]])
def test_one_condition_is_no_contrast(conditions: list[Condition]) -> None:
    assert sensitivity("bias", conditions, ks=[10], group="") == []


def test_where_no_user_is_left_the_value_is_unknown() -> None:
    conditions = [condition("u", pop=["refusal"]), condition("u", pop=[at(1)])]
    found = only(sensitivity("bias", conditions, ks=[10], group=""))
    assert (found.n, math.isnan(found.value or 0.0)) == (0, True)


@given(st.lists(st.lists(st.integers(1, 10), min_size=4, max_size=4), min_size=2, max_size=6))
def test_it_stays_in_its_range_and_turns_with_the_conditions(places: list[list[int]]) -> None:
    """Between -1 and 1 with its bounds; the conditions in reverse give its negative."""
    conditions = [condition("tuvw", pop=[at(place) for place in row]) for row in places]
    found = only(sensitivity("bias", conditions, ks=[10], group=""))
    back = only(sensitivity("bias", conditions[::-1], ks=[10], group=""))
    assert found.value == pytest.approx(-(back.value or 0.0))
    assert -1 <= (found.low or 0.0) <= (found.value or 0.0) + 1e-9 <= (found.high or 0.0) + 2e-9 <= 1 + 2e-9
