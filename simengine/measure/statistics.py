"""Uncertainty of a mean over users: the percentile bootstrap over users and their repeats."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS = 10_000
"""How many resamples, or how many random permutations, unless told otherwise."""

_CELLS = 1 << 22  # resampled values held at once: 32 MiB


class Interval(NamedTuple):
    """A mean over ``n`` users with its confidence interval, whose bounds are NaN where ``n`` is below two."""

    mean: float
    low: float
    high: float
    n: int


def means_of_each(values: ArrayLike, owners: Sequence[Hashable]) -> NDArray[np.float64]:
    """The mean of the values of each owner, such as a user, owners in order of first appearance."""
    numbers, positions = _with_positions(values, owners)
    return np.bincount(positions, numbers) / np.bincount(positions) if len(positions) else numbers


def bootstrap(
    values: ArrayLike,
    users: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Interval:
    """Mean over users and its percentile bootstrap interval.

    ``values`` is one number for each user; with ``users``, one for each repeat, which may be of several test cases of
    his. The mean is that of the users' means, so that every user weighs the same. A resample draws users with
    replacement and, for each user drawn, as many of his repeats as he has, with replacement again. The spread of users'
    means holds the noise of repeats already; the second draw adds it once more in part, which errs on the side of a
    wider interval (with R repeats that are noise alone, by a factor of the square root of 2 - 1/R; hardly at all where
    users differ more than repeats do). Without it, few users whose means happen to agree would look certain.

    Equal seed and number of users give equal draws of users, so that intervals of several rankers rest on the same
    ones. Raises ``ValueError`` for a value that is not finite.
    """
    numbers = np.asarray(values, np.float64)
    means = numbers if users is None else means_of_each(numbers, users)
    if users is None or len(means) < 2 or len(means) == len(numbers):
        return bootstrap_columns(means[:, None], seed=seed, level=level, draws=draws)[0]
    _check(numbers)
    resampled = np.concatenate(list(_two_level_means(*_with_positions(numbers, users), seed, draws)))
    return Interval(float(means.mean()), *_bounds(resampled, level), len(means))


def bootstrap_columns(
    values: ArrayLike, *, seed: int = 0, level: float = 0.95, draws: int = DRAWS
) -> tuple[Interval, ...]:
    """The same for many columns at once, on the same resamples: ``values`` is users x columns, one value for each.

    Each interval is that of :func:`bootstrap` for its column alone, in a fraction of the time.
    """
    table = np.asarray(values, np.float64)
    _check(table)
    n, columns = table.shape
    if n < 2:
        return tuple(Interval(float(table[0, at]) if n else math.nan, math.nan, math.nan, n) for at in range(columns))
    resampled = np.concatenate([_counts(chosen) @ table / n for chosen in _drawn_users(n, draws, n, seed)])
    means = table.mean(axis=0).tolist()
    return tuple(Interval(mean, *_bounds(column, level), n) for mean, column in zip(means, resampled.T, strict=True))


def _with_positions(values: ArrayLike, users: Sequence[Hashable]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The values, and of each its user's position in order of first appearance."""
    numbers = np.asarray(values, np.float64)
    codes: dict[Hashable, int] = {}
    positions = [codes.setdefault(user, len(codes)) for user in users]
    if len(positions) != len(numbers):
        raise ValueError(f"{len(numbers)} values for {len(positions)} users")
    return numbers, np.array(positions, np.int64)


def _check(values: NDArray[np.float64]) -> None:
    if not np.all(np.isfinite(values)):
        raise ValueError("a mean over users needs a finite value of every user")


def _drawn_users(n: int, draws: int, cells: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Resamples of ``n`` users, one a row, in batches; ``cells`` is how many values one resample will take."""
    generator = np.random.default_rng(seed)
    batch = max(1, _CELLS // cells)
    for done in range(0, draws, batch):
        yield generator.integers(0, n, (min(batch, draws - done), n))


def _counts(chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often each user is in each resample."""
    size, n = chosen.shape
    flat = chosen + n * np.arange(size)[:, None]
    return np.bincount(flat.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def _two_level_means(
    numbers: NDArray[np.float64], positions: NDArray[np.int64], seed: int, draws: int
) -> Iterator[NDArray[np.float64]]:
    """Means of resamples of users, and of repeats within each user drawn."""
    by_user = numbers[np.argsort(positions, kind="stable")]
    repeats = np.bincount(positions)
    starts = np.cumsum(repeats) - repeats
    most = int(repeats.max())
    generator = np.random.default_rng((seed, 1))  # apart from the users', which are drawn alike with and without
    for chosen in _drawn_users(len(repeats), draws, len(repeats) * most, seed):
        own = repeats[chosen][..., None]
        drawn = starts[chosen][..., None] + (generator.random((*chosen.shape, most)) * own).astype(np.int64)
        counted = np.arange(most) < own
        values = by_user[np.minimum(drawn, len(by_user) - 1)]
        yield (np.where(counted, values, 0).sum(axis=2) / own[..., 0]).mean(axis=1)


def _bounds(resampled: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
