"""Uncertainty of a mean over users: the percentile bootstrap."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_CELLS = 1 << 22  # resampled values held at once: 32 MiB


class Interval(NamedTuple):
    """A mean over ``n`` users with its confidence interval, whose bounds are NaN where ``n`` is below two."""

    mean: float
    low: float
    high: float
    n: int


def user_means(values: ArrayLike, users: Sequence[Hashable]) -> NDArray[np.float64]:
    """The mean of each user's values, users in order of first appearance."""
    numbers = np.asarray(values, np.float64)
    codes: dict[Hashable, int] = {}
    positions = [codes.setdefault(user, len(codes)) for user in users]
    if len(positions) != len(numbers):
        raise ValueError(f"{len(numbers)} values for {len(positions)} users")
    return np.bincount(positions, numbers) / np.bincount(positions) if positions else numbers


def bootstrap(
    values: ArrayLike,
    users: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
    level: float = 0.95,
    draws: int = 10_000,
) -> Interval:
    """Mean over users and its percentile bootstrap interval; users are resampled, never single values.

    ``values`` is one number for each user; with ``users``, one for each repeat, and a user's repeats become their mean
    first. Equal seed and number of users give equal resamples, so that intervals of several rankers rest on the same
    draws. Raises ``ValueError`` for a value that is not finite.
    """
    means = np.asarray(values, np.float64) if users is None else user_means(values, users)
    if not np.all(np.isfinite(means)):
        raise ValueError("a mean over users needs a finite value of every user")
    n = len(means)
    if n < 2:
        return Interval(float(means[0]) if n else math.nan, math.nan, math.nan, n)
    generator = np.random.default_rng(seed)
    batch = max(1, _CELLS // n)
    resampled = np.concatenate(
        [means[generator.integers(0, n, (min(batch, draws - done), n))].mean(axis=1) for done in range(0, draws, batch)]
    )
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(means.mean()), float(low), float(high), n)
