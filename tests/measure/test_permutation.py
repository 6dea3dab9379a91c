"""Permutation tests: the p values that scipy finds, of even spread where nothing differs, never zero; Holm by hand."""

from __future__ import annotations

import itertools
import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from simengine.measure.compare import PerCase, compare_paired
from simengine.measure.permutation import compare_all, holm, sign_flip, sign_flip_columns


def by_scipy(differences: np.ndarray, resamples: float, seed: int = 0) -> float:
    """The paired test of scipy: which of two values of a user is which is permuted."""
    found = permutation_test(
        (differences, np.zeros(len(differences))),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


@pytest.mark.parametrize("seed", range(5))
def test_few_users_are_tested_exactly_as_scipy_does(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.4, 1, 9)
    found = sign_flip(differences)
    assert (found.permutations, found.exact) == (512, True)
    assert found.p == pytest.approx(by_scipy(differences, np.inf))


@pytest.mark.parametrize("shift", [0.0, 0.15, 0.3])
def test_many_users_are_tested_by_random_permutations_as_scipy_does(shift: float) -> None:
    differences = np.random.default_rng(7).normal(shift, 1, 80)
    found = sign_flip(differences, draws=20_000)
    assert (found.permutations, found.exact) == (20_000, False)
    other = by_scipy(differences, 20_000)
    assert abs(found.p - other) < 5 * math.sqrt(2 * other * (1 - other) / 20_000) + 1e-4


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.2, 0.3, 1.0]), min_size=1, max_size=8))
def test_exact_p_is_the_share_of_all_sign_patterns(differences: list[float]) -> None:
    # Ties are many here, and sums such as 0.1 + 0.2 - 0.3 are zero but for rounding.
    patterns = list(itertools.product((-1, 1), repeat=len(differences)))
    found = abs(round(sum(differences), 9))
    hits = sum(abs(round(sum(s * d for s, d in zip(p, differences, strict=True)), 9)) >= found for p in patterns)
    assert sign_flip(differences).p == pytest.approx(hits / len(patterns))


def test_p_is_never_zero() -> None:
    sure = np.ones(200)  # 2 of 2^200 patterns are as far from zero
    assert sign_flip(sure, draws=999).p == 1 / 1000
    assert sign_flip(np.ones(5)).p == 2 / 32


def test_where_nothing_differs_p_is_spread_evenly() -> None:
    columns = np.random.default_rng(11).normal(0, 1, (30, 2000))
    p_values = np.array([found.p for found in sign_flip_columns(columns, draws=1000)])
    for level in (0.05, 0.2, 0.5, 0.9):  # 2,000 values: four standard errors
        assert (p_values <= level).mean() == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 2000))


def test_columns_share_their_patterns_and_are_as_alone() -> None:
    table = np.random.default_rng(3).normal(0.2, 1, (40, 3))
    together = sign_flip_columns(table, seed=5)
    assert list(together) == [sign_flip(table[:, at], seed=5) for at in range(3)]
    assert sign_flip(table[:, 0], seed=5) != sign_flip(table[:, 0], seed=6)


def test_the_sign_of_all_differences_does_not_matter() -> None:
    differences = np.random.default_rng(2).normal(0.3, 1, 60)
    assert sign_flip(-differences) == sign_flip(differences)


def test_no_user_no_p_and_one_user_no_evidence() -> None:
    assert math.isnan(sign_flip([]).p)
    assert sign_flip([0.7]).p == 1
    assert sign_flip([0.0, 0.0]).p == 1


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        sign_flip([0.5, math.nan])


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.2: times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.2, never falling.
    assert holm([0.02, 0.2, 0.01, 0.03]) == pytest.approx([0.06, 0.2, 0.04, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
    with_none = holm([0.02, math.nan, 0.03])
    assert (with_none[0], with_none[2]) == pytest.approx((0.04, 0.04))
    assert math.isnan(with_none[1])


def values(users: str, **of: list[float]) -> PerCase:
    return PerCase(
        tuple((user, 1) for user in users), {(metric, None): np.array(column) for metric, column in of.items()}
    )


def test_each_ranker_is_held_against_the_reference_over_the_users_of_all() -> None:
    rankers = {
        "agents": values("uvwx", mrr=[0.2, 0.4, 0.6, 0.8], hit=[0.0, 0.0, 1.0, 1.0]),
        "pop": values("xwvu", mrr=[0.5, 0.5, 0.5, 0.5]),
        "bm25": values("wxv", mrr=[0.9, 1.0, 0.7]),
    }
    rows = compare_all(rankers, "agents", seed=3)
    assert [(row.ranker, row.reference, row.metric, row.k, row.n) for row in rows] == [
        ("pop", "agents", "mrr", None, 3),
        ("bm25", "agents", "mrr", None, 3),
    ]
    pop, bm25 = rows
    assert (pop.value, pop.reference_value, pop.difference) == pytest.approx((0.5, 0.6, -0.1))
    assert (bm25.value, bm25.reference_value, bm25.difference) == pytest.approx((2.6 / 3, 0.6, 0.8 / 3))
    on_three = values("vwx", mrr=[0.4, 0.6, 0.8])
    [paired] = compare_paired(on_three, values("vwx", mrr=[0.7, 0.9, 1.0]), seed=3)
    assert (bm25.low, bm25.high) == (paired.low, paired.high)
    # Of eight patterns of 0.3, 0.3, 0.2 two are as far out; of 0.1, -0.1, -0.3 those of sums 0.5, 0.3, 0.3, 0.1 ...
    assert (bm25.p, bm25.permutations, bm25.exact) == (2 / 8, 8, True)
    assert pop.p == 6 / 8
    assert (bm25.p_holm, pop.p_holm) == (4 / 8, 6 / 8)


def test_cases_of_one_user_are_no_evidence_by_themselves() -> None:
    """Ten cases of two users: two signs can be flipped, so that p is 1/2 at best; of ten users it would be 2/1024."""
    ranked = tuple((user, number) for user in "uv" for number in range(1, 6))
    rankers = {name: PerCase(ranked, {("mrr", None): np.full(10, value)}) for name, value in (("a", 0.2), ("b", 0.7))}
    [row] = compare_all(rankers, "a")
    assert (row.n, row.difference, row.p, row.permutations) == (2, pytest.approx(0.5), 0.5, 4)


def test_only_cases_that_all_have_ranked_count() -> None:
    one = PerCase((("u", 1), ("u", 2), ("v", 1)), {("mrr", None): np.array([0.2, 1.0, 0.4])})
    other = PerCase((("u", 1), ("v", 1)), {("mrr", None): np.array([0.4, 0.6])})
    [row] = compare_all({"one": one, "other": other}, "one")
    assert (row.reference_value, row.value, row.n) == (pytest.approx(0.3), pytest.approx(0.5), 2)


def test_holm_counts_the_rankers_of_one_metric() -> None:
    draws = np.random.default_rng(1)
    users = tuple((f"u{at}", 1) for at in range(50))
    rankers = {
        name: PerCase(users, {("ndcg", 10): draws.normal(shift, 1, 50), ("mrr", None): draws.normal(0, 1, 50)})
        for name, shift in (("base", 0), ("same", 0), ("better", 1.5), ("worse", -1))
    }
    rows = compare_all(rankers, "base")
    assert [(row.metric, row.ranker) for row in rows] == [
        (metric, name) for metric in ("ndcg", "mrr") for name in ("same", "better", "worse")
    ]
    for metric in ("ndcg", "mrr"):
        of_metric = [row for row in rows if row.metric == metric]
        assert [row.p_holm for row in of_metric] == holm([row.p for row in of_metric])
    assert rows[1].p_holm == pytest.approx(3 / 10_001)
    assert rows[1].low > 0


def test_without_users_in_common_all_is_unknown_and_null_in_json() -> None:
    [row] = compare_all({"a": values("u", mrr=[1.0]), "b": values("v", mrr=[1.0])}, "a")
    assert row.n == 0
    said = json.loads(msgspec.json.encode(row))
    assert [said[name] for name in ("value", "difference", "low", "p", "p_holm")] == [None] * 5


def test_a_reference_alone_has_no_rows_and_an_unknown_one_is_refused() -> None:
    assert compare_all({"a": values("u", mrr=[1.0])}, "a") == []
    with pytest.raises(ValueError, match="no ranker is called 'c'; there are a, b"):
        compare_all({"a": values("u", mrr=[1.0]), "b": values("u", mrr=[1.0])}, "c")
