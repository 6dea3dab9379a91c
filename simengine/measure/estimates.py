"""Rates pooled over several plantings, with intervals that resample whole plantings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simengine.measure.statistics import DRAWS, Interval

Numbers: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[float, float]

_TAIL = 0.025  # of a 95% interval


class Estimate(msgspec.Struct, frozen=True):
    """A value with its 95% interval, resting on ``n`` trials, agents or losses. JSON has ``null`` for NaN, infinity."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def interval(self) -> Interval:
        """The same with NaN for what is ``None``."""
        value, low, high = (math.nan if number is None else number for number in (self.value, self.low, self.high))
        return Interval(value, low, high, self.n)

    def mapped(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of a monotone function of the value."""
        value, *bounds = (math.nan if number is None else function(number) for number in self.interval[:3])
        return Estimate(value, min(bounds), max(bounds), self.n)


class Pool:
    """Plantings whose counts are added up, and resamples of them.

    An estimate is a function of sums over plantings. Its interval is the percentile interval over resamples of whole
    plantings, since agents who share an ancestor are not independent; corrected for bias (Efron 1981), widened for few
    plantings as a t interval is (Hesterberg 2015), and never narrower than the interval ``alone`` of independent
    trials, as two plantings that happen to agree would look certain. With one planting only there is nothing to
    resample, and it is ``alone``.
    """

    def __init__(self, plantings: int, *, seed: int = 0, draws: int = DRAWS) -> None:
        self._weights: Numbers | None = None
        if plantings < 2:
            return
        from scipy import stats

        generator = np.random.default_rng(seed)
        self._weights = generator.multinomial(plantings, [1 / plantings] * plantings, draws).astype(np.float64)
        self._width = math.sqrt(plantings / (plantings - 1)) * float(stats.t.isf(_TAIL, plantings - 1))

    def estimate(self, counts: ArrayLike, function: Callable[[Numbers], Numbers], alone: Bounds, n: float) -> Estimate:
        """The function of the sums of ``counts`` (plantings x columns) with its interval.

        The function takes ``(..., columns)`` to ``(...)``; where it gives NaN for a resample, the resample is left out.
        """
        table = np.asarray(counts, np.float64)
        value = float(function(table.sum(axis=0)))
        low, high = alone
        if self._weights is not None and math.isfinite(value):
            found = function(self._weights @ table)
            bounds = self._bounds(value, found[~np.isnan(found)])
            low, high = min(low, bounds[0]), max(high, bounds[1])
        return Estimate(value, float(low), float(high), int(n))

    def _bounds(self, value: float, found: Numbers) -> Bounds:
        """The interval of a value by its resamples."""
        from scipy import stats

        below = np.mean(found < value) + np.mean(found == value) / 2
        bias = float(stats.norm.ppf(np.clip(below, 1 / len(found), 1 - 1 / len(found))))
        levels = stats.norm.cdf([2 * bias - self._width, 2 * bias + self._width])
        low, high = np.quantile(found, levels)
        return float(low), float(high)

    def share(self, part: ArrayLike, whole: ArrayLike) -> Estimate:
        """A share of trials: a part and the whole of each planting; alone it is Wilson's interval."""
        table = np.stack([np.asarray(part, np.float64), np.asarray(whole, np.float64)], axis=-1)
        successes, trials = table.sum(axis=0).tolist()
        return self.estimate(table, ratio, wilson(successes, trials), trials)

    def rate(self, count: ArrayLike, exposure: ArrayLike) -> Estimate:
        """A count for each unit of exposure (time held, carriers); alone it is the exact interval of a Poisson count.

        ``n`` is the count.
        """
        table = np.stack([np.asarray(count, np.float64), np.asarray(exposure, np.float64)], axis=-1)
        events, total = table.sum(axis=0).tolist()
        return self.estimate(table, ratio, poisson(events, total), events)


def ratio(sums: Numbers) -> Numbers:
    """The first column by the second, NaN where that is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Numbers = np.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1], np.nan)
    return found


def wilson(successes: float, trials: float) -> Bounds:
    """Wilson's 95% interval of a share of independent trials; NaN without trials."""
    if trials <= 0:
        return math.nan, math.nan
    from scipy import stats

    z = float(stats.norm.isf(_TAIL))
    share = successes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
    return max(0.0, middle - half), min(1.0, middle + half)


def poisson(count: float, exposure: float) -> Bounds:
    """The exact 95% interval of a Poisson count for each unit of exposure; NaN without exposure."""
    if exposure <= 0:
        return math.nan, math.nan
    from scipy import stats

    low = float(stats.chi2.ppf(_TAIL, 2 * count)) / 2 if count else 0.0
    return low / exposure, float(stats.chi2.isf(_TAIL, 2 * count + 2)) / 2 / exposure


def half_life(kept: float) -> float:
    """After how many steps half is left where each keeps this share: ln 2 / -ln kept; infinite at 1, zero at 0."""
    if not 0 < kept < 1:
        return math.inf if kept >= 1 else 0.0 if kept == 0 else math.nan
    return math.log(2) / -math.log(kept)


def survival(deviance: Any, freedom: int) -> float:
    """The probability of so great a deviance or a greater one (chi-squared); NaN without degrees of freedom."""
    if freedom < 1:
        return math.nan
    from scipy import stats

    return float(stats.chi2.sf(deviance, freedom))
