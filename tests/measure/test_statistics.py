"""The bootstrap over users and repeats: seeded, honest about few users, and of the width that theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simengine.measure import bootstrap
from simengine.measure import statistics as module
from simengine.measure.statistics import bootstrap_columns


def test_equal_seeds_give_equal_intervals():
    values = np.random.default_rng(3).random(40)
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1)
    assert bootstrap(values, seed=1) != bootstrap(values, seed=2)


def test_the_interval_has_the_width_of_theory():
    # For 400 users the interval of the mean is close to mean ± 1.96 standard errors (1.645 at level 0.9).
    values = np.random.default_rng(5).normal(10, 2, 400)
    error = values.std() / math.sqrt(400)
    for level, width in ((0.95, 1.960), (0.90, 1.645)):
        mean, low, high, n = bootstrap(values, level=level)
        assert (mean, n) == (pytest.approx(values.mean()), 400)
        assert (mean - low) / error == pytest.approx(width, rel=0.05)
        assert (high - mean) / error == pytest.approx(width, rel=0.05)


def test_every_user_weighs_the_same_whatever_his_repeats():
    # User a has mean 1 from three repeats, b has 0: the mean over users is 0.5, not 0.75; repeats do not narrow it.
    repeated = bootstrap([1.0, 0.0, 1.0, 1.0], ["a", "b", "a", "a"])
    assert repeated == bootstrap([1.0, 0.0])
    assert (repeated.mean, repeated.n) == (0.5, 2)


def test_repeats_that_agree_add_nothing():
    values = np.random.default_rng(4).integers(0, 8, 30) / 8
    users = list(range(30))
    assert bootstrap(np.tile(values, 4), users * 4, seed=5) == pytest.approx(bootstrap(values, seed=5))


def test_repeats_that_differ_widen_an_interval_though_users_agree():
    # Ten users with 0 and 1 each: the means are all 0.5. Drawing users and both repeats anew, the mean of 20 draws of
    # 0 or 1 has a standard deviation of 0.5 / sqrt(20) = 0.1118; the normal interval is 0.5 ± 0.219.
    mean, low, high, n = bootstrap([0.0, 1.0] * 10, [at // 2 for at in range(20)])
    assert (mean, n) == (0.5, 10)
    assert (low, high) == pytest.approx((0.281, 0.719), abs=0.02)


@pytest.mark.parametrize(("repeats", "noise"), [(3, 1.0), (2, 0.5)])
def test_the_width_with_repeats_is_that_of_both_levels(repeats, noise):
    # Variance of the mean: that of users' means, and in part once more that within users, both over the n users.
    values = np.random.default_rng(6).normal(0, 1, (500, 1)) + np.random.default_rng(7).normal(0, noise, (500, repeats))
    expected = math.sqrt((values.mean(axis=1).var() + values.var(axis=1).mean() / repeats) / 500)
    _, low, high, n = bootstrap(values.ravel(), [at // repeats for at in range(500 * repeats)])
    assert n == 500
    assert (high - low) / (2 * 1.96) == pytest.approx(expected, rel=0.04)


def test_unequal_repeats_are_drawn_each_from_its_own_user():
    # With a's repeats 0 and b's 1, no resample can mix them: means are 0, 1/2 or 1, with 1/4, 1/2, 1/4.
    found = bootstrap([0.0] * 5 + [1.0] * 2, ["a"] * 5 + ["b"] * 2, level=0.6)
    assert found == (0.5, 0.0, 1.0, 2)
    assert bootstrap([0.0] * 5 + [1.0] * 2, ["a"] * 5 + ["b"] * 2, level=0.4)[:3] == (0.5, 0.5, 0.5)


def test_many_columns_are_each_as_alone():
    table = np.random.default_rng(8).random((40, 3))
    together = bootstrap_columns(table, seed=2)
    for at, found in enumerate(together):
        assert found == pytest.approx(bootstrap(table[:, at], seed=2))
    assert [found.n for found in bootstrap_columns(np.zeros((0, 2)))] == [0, 0]
    assert bootstrap_columns(np.full((1, 1), 0.25))[0][0] == 0.25


def test_rankers_on_the_same_users_share_their_resamples():
    values = np.random.default_rng(7).random(30)
    one, other = bootstrap(values), bootstrap(values + 0.25)
    assert other.low - one.low == pytest.approx(0.25)
    assert other.high - one.high == pytest.approx(0.25)


def test_one_user_has_a_mean_and_no_interval():
    mean, low, high, n = bootstrap([0.5])
    assert (mean, n) == (0.5, 1)
    assert math.isnan(low)
    assert math.isnan(high)


def test_no_user_has_no_mean():
    interval = bootstrap([], [])
    assert interval.n == 0
    assert all(math.isnan(value) for value in interval[:3])


def test_what_is_held_at_once_does_not_change_the_result(monkeypatch):
    values = np.random.default_rng(9).random(25)
    whole = bootstrap(values)
    repeated = bootstrap(values, [at // 2 for at in range(25)])
    monkeypatch.setattr(module, "_CELLS", 1000)
    assert bootstrap(values) == pytest.approx(whole)
    assert bootstrap(values, [at // 2 for at in range(25)]) == pytest.approx(repeated)


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        bootstrap([0.5, math.nan])
    with pytest.raises(ValueError, match="2 values for 1 users"):
        bootstrap([0.5, 0.5], ["a"])
