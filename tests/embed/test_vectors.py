"""Unit rows, odd vectors, and what is nearest: shapes, ties, zeros, sizes beyond the squares of floats."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from simengine.embed import nearest
from simengine.embed.vectors import model_rows, unit_rows
from simengine.errors import UnitFailed

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MATRICES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6), elements=NUMBERS)


@given(MATRICES)
def test_rows_have_length_one_or_are_zero_whatever_their_size(rows):
    units = unit_rows(rows)
    lengths = np.sqrt((units**2).sum(axis=1))
    assert units.shape == rows.shape
    assert np.isfinite(units).all()
    for length, row in zip(lengths, rows, strict=True):
        assert length == (pytest.approx(1) if row.any() else 0)


def test_a_row_keeps_its_direction():
    assert unit_rows([[3, 4], [0, 0], [-3e300, 4e300], [5e-324, 0]]).tolist() == pytest.approx(
        np.array([[0.6, 0.8], [0, 0], [-0.6, 0.8], [1, 0]])
    )
    assert unit_rows(np.zeros((0, 3))).shape == (0, 3)


@given(MATRICES, st.data())
def test_the_nearest_come_first_and_of_equals_the_last(pool, data):
    query = data.draw(arrays(np.float64, pool.shape[1], elements=NUMBERS))
    order = nearest(query, pool).tolist()
    assert sorted(order) == list(range(len(pool)))
    similar = np.round(unit_rows(pool) @ unit_rows(query[None, :])[0], 12)
    for before, after in pairwise(order):
        assert (similar[before], before) > (similar[after], after)


@pytest.mark.parametrize(
    ("query", "pool", "order"),
    [
        ([1, 0], [[0, 1], [1, 1], [2, 0], [-1, 0]], [2, 1, 0, 3]),
        ([1, 0], [[1, 1], [2, 2], [3, 3]], [2, 1, 0]),  # the same direction: the newest first
        ([0, 0], [[1, 1], [0, 1], [1, 0]], [2, 1, 0]),  # a query that says nothing
        ([1, 0], [[0, 0], [-1, 0], [1, 9]], [2, 0, 1]),  # nothing to go by is better than the opposite
        ([0.1, 0.2, 0.3], [[0.3, 0.6, 0.9], [0.1, 0.2, 0.3]], [1, 0]),  # equal but for rounding
        ([1, 0], np.zeros((0, 2)), []),
    ],
)
def test_nearest_by_hand(query, pool, order):
    assert nearest(query, pool).tolist() == order


@pytest.mark.parametrize(
    ("query", "pool", "said"),
    [
        ([1, 0, 0], [[1, 0]], r"shape \(3,\) does not fit a pool of width 2"),
        ([[1, 0]], [[1, 0]], r"shape \(1, 2\) does not fit"),
        ([1, 0], [1, 0], "1 dimensions"),
        ([np.nan, 0], [[1, 0]], "no number"),
        ([1, 0], [[np.inf, 0]], "infinite"),
    ],
)
def test_vectors_that_cannot_be_compared(query, pool, said):
    with pytest.raises(ValueError, match=said):
        nearest(query, pool)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0, 0.0]], "gave 1 vectors for 2 texts"),
        ([], "gave 0 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], "gave 3 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], "different widths: 1, 2"),
        ([[1.0, 0.0], [float("nan"), 1.0]], "no number"),
        ([[1.0, 0.0], [float("inf"), 1.0]], "infinite"),
        ([[1.0, 0.0], ["one", "two"]], "cannot be compared"),
        ([[1.0, 0.0], [0.0, 0.0]], "empty or all zeros"),
        ([[], []], "empty or all zeros"),
    ],
)
def test_odd_vectors_of_a_model_are_a_named_failure(vectors, said):
    with pytest.raises(UnitFailed, match=said) as caught:
        model_rows(vectors, 2, "some-model")
    assert caught.value.reason == "embedding"
    assert caught.value.where == {"model": "some-model"}
