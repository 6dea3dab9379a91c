"""Metrics: ties by expectation, NaN last, ideal order before the cut, repeats once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.measure import expected, expected_at, ndcg, ndcg_of_ranking, place


def test_a_constant_scorer_gets_the_expectation_of_chance():
    # Field case 38: 20 candidates, one relevant, all scores equal.
    for target in range(20):
        found = expected(np.ones(20), target, (1, 10))
        assert found.hit[1] == pytest.approx(0.05)
        assert found.hit[10] == pytest.approx(0.5)
        assert round(float(found.mrr), 4) == 0.1799
        assert round(float(found.ndcg[10]), 4) == 0.2272


@pytest.mark.parametrize(("rank", "value"), [(1, 1.0), (2, 0.6309), (3, 0.5)])
def test_one_target_by_rank(rank, value):
    # Field case 41: ranks 1, 2, 3 of a single relevant item give 1.0, 0.6309, 0.5.
    scores = [-float(position) for position in range(10)]
    found = expected(scores, rank - 1, (1, 3, 10))
    assert round(float(found.ndcg[10]), 4) == round(float(found.ndcg[3]), 4) == value
    assert float(found.mrr) == pytest.approx(1 / rank)
    assert float(found.ndcg[1]) == float(found.hit[1]) == (rank == 1)


def test_nan_ranks_last_and_is_counted():
    # Field case 38. Two of five are NaN: they share ranks 4 and 5, below minus infinity.
    scores = [math.nan, 3.0, math.nan, -math.inf, 5.0]
    assert place(scores, 0) == (3, 2, 2)
    assert place(scores, 3) == (2, 1, 2)
    assert place(scores, 4) == (0, 1, 2)
    found = expected(scores, 2, (3, 4))
    assert (float(found.hit[3]), float(found.hit[4])) == (0.0, 0.5)
    assert float(found.mrr) == pytest.approx((1 / 4 + 1 / 5) / 2)


score = st.sampled_from([0.0, 1.0, 2.0, math.nan])


@given(st.lists(score, min_size=1, max_size=6), st.data())
def test_expectation_is_the_mean_over_all_orders(scores, data):
    # The reference sorts every permutation stably, so that ties take every order, and averages.
    target = data.draw(st.integers(0, len(scores) - 1))
    k = data.draw(st.integers(1, 7))
    ranks = []
    for permutation in itertools.permutations(range(len(scores))):
        ordered = sorted(permutation, key=lambda at: math.inf if math.isnan(scores[at]) else -scores[at])
        ranks.append(ordered.index(target) + 1)
    found = expected(scores, target, (k,))
    assert float(found.ndcg[k]) == pytest.approx(np.mean([1 / math.log2(r + 1) if r <= k else 0.0 for r in ranks]))
    assert float(found.hit[k]) == pytest.approx(np.mean([r <= k for r in ranks]))
    assert float(found.mrr) == pytest.approx(np.mean([1 / r for r in ranks]))


def test_many_at_once_are_the_same_as_one_by_one():
    better, tied = np.array([0, 3, 9, 2]), np.array([1, 4, 1, 8])
    together = expected_at(better, tied, (5,))
    for row in range(4):
        alone = expected_at(better[row], tied[row], (5,))
        assert together.ndcg[5][row] == pytest.approx(alone.ndcg[5])
        assert together.mrr[row] == pytest.approx(alone.mrr)


def test_the_ideal_order_is_cut_after_sorting():
    # Field case 41: gains a 2, b 5, c 3; ranking b, c, a; k = 2.
    gains = {"a": 2, "b": 5, "c": 3}
    assert ndcg([5, 3, 2], 2) == 1.0
    assert ndcg_of_ranking(["b", "c", "a"], gains, 2) == 1.0
    # By hand: (2 + 5 / log2 3) / (5 + 3 / log2 3).
    assert ndcg([2, 5, 3], 2) == pytest.approx((2 + 5 / math.log2(3)) / (5 + 3 / math.log2(3)))


def test_repeats_in_a_ranking_count_once():
    # Field case 40: the list 4, 9, 9, 9, 2 with truth 9.
    assert round(ndcg_of_ranking([4, 9, 9, 9, 2], {9: 1}, 5), 4) == 0.6309
    assert ndcg_of_ranking([4, 4, 9], {9: 1}, 2) == pytest.approx(1 / math.log2(3))


def test_a_relevant_candidate_that_is_left_out_still_counts():
    assert ndcg_of_ranking(["a"], {"a": 1, "b": 1}, 2) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert ndcg_of_ranking([], {"a": 1}, 3) == 0.0


def test_nothing_to_find_has_no_ndcg():
    assert math.isnan(ndcg([0, 0], 2))
    assert math.isnan(ndcg_of_ranking(["a"], {}, 1))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.integers(1, 10))
def test_ndcg_is_between_zero_and_one(gains, k):
    value = ndcg(gains, k)
    assert math.isnan(value) if max(gains) == 0 else 0 <= value <= 1


def test_ndcg_falls_strictly_with_rank():
    values = [ndcg([float(position == rank) for position in range(10)], 10) for rank in range(10)]
    assert values == sorted(set(values), reverse=True)


def test_impossible_questions_are_refused():
    for call in (
        lambda: ndcg([1], 0),
        lambda: ndcg([-1, 1], 1),
        lambda: ndcg([math.nan], 1),
        lambda: expected([1, 2], 0, (0,)),
    ):
        with pytest.raises(ValueError, match="not"):
            call()
