"""Two rankings of the same cases: values of each as one computes them by hand, and paired intervals over users."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simengine.data import Case
from simengine.measure.compare import PerCase, compare_paired, per_case
from simengine.measure.statistics import bootstrap


def case(user: str, number: int = 1) -> Case:
    return Case(user, "b", (), ("a", "b", "c", "d"), 1, number)


def scores(rank: int) -> np.ndarray:
    """Scores in which the target ``b`` stands at a rank from 1 to 4."""
    order = ["a", "c", "d"]
    order.insert(rank - 1, "b")
    return np.array([-order.index(name) for name in "abcd"], np.float64)


def values(**of: float) -> PerCase:
    return PerCase(tuple((user, 1) for user in of), {("mrr", None): np.array(list(of.values()))})


def test_values_are_those_of_each_users_rank() -> None:
    found = per_case([case("u"), case("v"), case("w")], [[scores(1)], [scores(3)], [scores(4)]], [1, 3])
    assert found.users == ("u", "v", "w")
    assert found.values["hit", 1].tolist() == [1, 0, 0]
    assert found.values["hit", 3].tolist() == [1, 1, 0]
    assert found.values["ndcg", 3].tolist() == pytest.approx([1, 0.5, 0])  # 1 / log2(rank + 1)
    assert found.values["mrr", None].tolist() == pytest.approx([1, 1 / 3, 1 / 4])


def test_repeats_become_their_mean_and_users_without_a_ranking_are_left_out() -> None:
    attempts = [["unreadable", "unreadable"], [scores(1), "unreadable"], [scores(1), scores(4)], []]
    found = per_case([case(user) for user in "uvwx"], attempts, [1])
    assert found.users == ("v", "w")
    assert found.values["hit", 1].tolist() == [1, 0.5]


def test_only_users_that_both_have_ranked_count_and_are_paired_by_id() -> None:
    [mrr] = compare_paired(values(u=0.5, v=0.2, w=1.0), values(x=0.0, w=0.5, u=1.0))
    assert (mrr.metric, mrr.k, mrr.n) == ("mrr", None, 2)
    assert (mrr.first, mrr.second, mrr.difference) == (0.75, 0.75, 0)
    assert (mrr.low, mrr.high) == (-0.5, 0.5)  # both resamples of one user alone are among 10,000 draws


def test_a_case_of_which_one_has_no_value_counts_for_neither() -> None:
    [mrr] = compare_paired(values(u=0.5, v=math.nan, w=1.0), values(u=1.0, v=0.2, w=math.nan))
    assert (mrr.first, mrr.second, mrr.difference, mrr.n) == (0.5, 1, 0.5, 1)
    [none] = compare_paired(values(u=math.nan), values(u=1.0))
    assert (math.isnan(none.difference), none.n) == (True, 0)


def test_users_of_several_cases_count_once_and_only_by_cases_that_both_have_ranked() -> None:
    # u has three cases, and the second ranker has no answer in the third; v has one. So u's mean is of two.
    cases = [case("u"), case("u", 2), case("u", 3), case("v")]
    first = per_case(cases, [[scores(1)], [scores(2)], [scores(1)], [scores(4)]], [1])
    second = per_case(cases, [[scores(1)], [scores(1)], ["unreadable"], [scores(1)]], [1])
    assert first.cases == (("u", 1), ("u", 2), ("u", 3), ("v", 1))
    [hit] = [row for row in compare_paired(first, second) if row.metric == "hit"]
    assert (hit.first, hit.second, hit.difference, hit.n) == (0.25, 1, 0.75, 2)  # of 0.5 and 0; of 1 and 1
    assert (hit.low, hit.high) == (0.5, 1)  # each user alone, which are resampled with all their cases


def test_an_equal_gain_of_every_user_is_certain_though_users_differ() -> None:
    # Unpaired, the spread of the users would drown it.
    draws = np.random.default_rng(1).random(50)
    first = {f"u{at}": value for at, value in enumerate(draws)}
    [mrr] = compare_paired(values(**first), values(**{user: value + 0.125 for user, value in first.items()}))
    assert (mrr.difference, mrr.low, mrr.high) == pytest.approx((0.125, 0.125, 0.125))
    alone = bootstrap(draws)
    assert alone.high - alone.low > 0.125


def test_the_interval_is_the_bootstrap_of_the_differences_and_changes_sign_with_the_order() -> None:
    one, other = values(u=0.1, v=0.4, w=0.3), values(u=0.3, v=0.1, w=0.9)
    [there], [back] = compare_paired(one, other, seed=3), compare_paired(other, one, seed=3)
    assert (there.difference, there.low, there.high) == pytest.approx(bootstrap([0.2, -0.3, 0.6], seed=3)[:3])
    assert (back.difference, back.low, back.high) == pytest.approx((-there.difference, -there.high, -there.low))


def test_with_fewer_than_two_users_nothing_is_certain() -> None:
    [one] = compare_paired(values(u=0.5), values(u=0.75))
    assert (one.difference, one.n) == (0.25, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    [none] = compare_paired(values(u=0.5), values(v=0.75))
    assert none.n == 0
    assert all(math.isnan(value) for value in (none.first, none.second, none.difference))


def test_only_metrics_that_both_have_are_compared() -> None:
    cases, attempts = [case("u"), case("v")], [[scores(1)], [scores(2)]]
    compared = compare_paired(per_case(cases, attempts, [1, 3]), per_case(cases, attempts, [3, 4]))
    assert [(row.metric, row.k) for row in compared] == [("ndcg", 3), ("hit", 3), ("mrr", None)]
