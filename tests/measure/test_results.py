"""Evaluation: every ranker on the same users, every case that is left out counted with its reason."""

from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import pytest

from simengine.data import Case
from simengine.measure import Evaluation, evaluate


def case(user: str, history: int = 3, candidates: tuple[str, ...] | None = ("a", "b", "c", "d")) -> Case:
    return Case(user, "b", tuple(f"h{number}" for number in range(history)), candidates, 9)


def scores(rank: int) -> np.ndarray:
    """Scores of four candidates that put the second, the target, at this rank."""
    values = np.array([3.0, 0.0, 2.0, 1.0])
    values[1] = 3.5 - (rank - 1)
    return values


def value(evaluation: Evaluation, ranker: str, metric: str, k: int | None) -> float:
    (found,) = [r for r in evaluation.results if (r.ranker, r.metric, r.k) == (ranker, metric, k)]
    return found.value


def test_values_and_shape():
    cases = [case("u"), case("v")]
    found = evaluate("rank", cases, {"x": [[scores(1)], [scores(2)]]}, ks=(1, 2))
    assert [(r.stage, r.ranker, r.metric, r.k, r.n, r.repeats) for r in found.results] == [
        ("rank", "x", "ndcg", 1, 2, 1),
        ("rank", "x", "ndcg", 2, 2, 1),
        ("rank", "x", "hit", 1, 2, 1),
        ("rank", "x", "hit", 2, 2, 1),
        ("rank", "x", "mrr", None, 2, 1),
    ]
    assert value(found, "x", "ndcg", 1) == 0.5
    assert value(found, "x", "ndcg", 2) == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert value(found, "x", "hit", 2) == 1.0
    assert value(found, "x", "mrr", None) == 0.75
    assert all(result.low <= result.value <= result.high for result in found.results)


def test_all_rankers_are_scored_on_the_same_users():
    # Field case 44: users with 1, 2, 3 and 10 interactions; one of two models needs two items of history.
    cases = [case(f"u{history}", history) for history in (0, 1, 2, 9)]
    needs_history = [[scores(1)] if len(each.history) > 1 else ["too little history"] for each in cases]
    plain = [[scores(4)], [scores(4)], [scores(1)], [scores(2)]]
    found = evaluate("rank", cases, {"deep": needs_history, "plain": plain}, ks=(1,))
    assert (found.evaluated, found.skipped) == (2, 2)
    assert found.reasons == {"deep: too little history": 2}
    assert {result.n for result in found.results} == {2}
    assert value(found, "plain", "hit", 1) == 0.5  # over the last two users only, as for the other model


def test_repeats_are_averaged_and_failed_ones_counted():
    cases = [case("u"), case("v"), case("w")]
    attempts = [[scores(1), "unreadable", scores(2)], [scores(1), scores(1), scores(1)], ["unreadable", "refused"]]
    found = evaluate("rank", cases, {"x": attempts}, ks=(1,))
    assert value(found, "x", "hit", 1) == 0.75  # user u has 0.5, user v has 1
    assert found.failed_repeats == {"x": 1}
    assert (found.skipped, found.reasons) == (1, {"x: unreadable": 1})
    assert {(result.n, result.repeats) for result in found.results} == {(2, 3)}


def test_a_user_with_several_cases_counts_once():
    cases = [case("u"), case("u"), case("v")]
    found = evaluate("rank", cases, {"x": [[scores(1)], [scores(4)], [scores(1)]]}, ks=(1,))
    assert value(found, "x", "hit", 1) == 0.75
    assert (found.evaluated, found.results[0].n) == (3, 2)


def test_unscored_candidates_are_counted_and_rank_last():
    half = np.array([1.0, np.nan, np.nan, 2.0])
    found = evaluate("rank", [case("u")], {"x": [[half]]}, ks=(2, 4))
    assert found.unscored == {"x": 2}
    assert value(found, "x", "hit", 2) == 0.0
    assert value(found, "x", "hit", 4) == 1.0


def test_cases_without_candidates_or_attempts_are_counted():
    cases = [case("u", candidates=None), case("v")]
    found = evaluate("rank", cases, {"x": [[], []], "y": [[], [scores(1)]]}, ks=(1,))
    assert (found.evaluated, found.skipped) == (0, 2)
    assert found.reasons == {"no candidates": 1, "x: no attempt": 1}
    assert all(result.n == 0 and math.isnan(result.value) for result in found.results)


def test_what_is_unknown_is_null_in_json():
    found = evaluate("rank", [case("u")], {"x": [[scores(1)]]}, ks=(1,))
    first = json.loads(msgspec.json.encode(found))["results"][0]
    assert (first["value"], first["low"], first["high"], first["k"]) == (1.0, None, None, 1)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="x has attempts for 1 cases of 2"):
        evaluate("rank", [case("u"), case("v")], {"x": [[scores(1)]]})
    with pytest.raises(ValueError, match="3 scores for 4 candidates of user u"):
        evaluate("rank", [case("u")], {"x": [[np.zeros(3)]]})
