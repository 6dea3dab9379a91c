"""The bootstrap over users: seeded, honest about few users, and of the width that theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simengine.measure import bootstrap
from simengine.measure import statistics as module


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


def test_repeats_become_user_means_first():
    # User a has mean 1 from three repeats, b has 0: the mean over users is 0.5, not 0.75; repeats do not narrow it.
    repeated = bootstrap([1.0, 0.0, 1.0, 1.0], ["a", "b", "a", "a"])
    assert repeated == bootstrap([1.0, 0.0])
    assert (repeated.mean, repeated.n) == (0.5, 2)


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
    monkeypatch.setattr(module, "_CELLS", 1000)
    assert bootstrap(values) == pytest.approx(whole)


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        bootstrap([0.5, math.nan])
    with pytest.raises(ValueError, match="2 values for 1 users"):
        bootstrap([0.5, 0.5], ["a"])
