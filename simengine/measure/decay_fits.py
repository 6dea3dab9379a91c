"""Exponential decay by maximum likelihood: of the share of holders by hop, and of the time a preference is held."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simengine.measure.estimates import Bounds, Numbers

_HALVINGS = 48  # of an interval of length one: to 4e-15
_TINY = 1e-300


def fit_hops(hops: ArrayLike, holders: ArrayLike, agents: ArrayLike, control: ArrayLike) -> Numbers:
    """The share that each hop keeps, r in share(h) = r^h, by binomial maximum likelihood; NaN without agents.

    ``holders`` of ``agents`` have the preference at each hop (1 or more; last axis), ``control`` of them without the
    planting. An agent is taken to hold it anyway with the control's share c, or else with r^h: c + (1 - c) r^h.
    """
    h, found, n, c = _shapes(hops, holders, agents, control)
    low, high = np.zeros(found.shape[:-1]), np.ones(found.shape[:-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        kept = middle[..., None] ** h
        held = c + (1 - c) * kept
        ours = np.where(c > 0, kept / np.maximum(held, _TINY), 1.0)  # how many of the holders the planting has made
        slope = (h * ours * (found - n * held) / np.maximum(1 - kept, _TINY)).sum(axis=-1)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    fitted = np.where(low == 0, 0.0, np.where(high == 1, 1.0, (low + high) / 2))
    return np.where((n * (c < 1)).sum(axis=-1) > 0, fitted, np.nan)


def deviance_of_hops(r: float, hops: ArrayLike, holders: ArrayLike, agents: ArrayLike, control: ArrayLike) -> float:
    """The deviance of share(h) = c + (1 - c) r^h from the shares as they are (binomial)."""
    h, found, n, c = _shapes(hops, holders, agents, control)
    expected = np.clip(c + (1 - c) * r**h, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        have = np.where(found > 0, found * np.log(found / (n * expected)), 0)
        lack = np.where(found < n, (n - found) * np.log((n - found) / (n * (1 - expected))), 0)
    return max(0.0, float(2 * (have + lack).sum()))


def bounds_of_hops(r: float, hops: ArrayLike, holders: ArrayLike, agents: ArrayLike, control: ArrayLike) -> Bounds:
    """The 95% likelihood interval of r where agents are independent: deviance at most 3.84 above its least."""
    if math.isnan(r):
        return math.nan, math.nan
    from scipy import optimize, stats

    most = deviance_of_hops(r, hops, holders, agents, control) + float(stats.chi2.isf(0.05, 1))

    def beyond(other: float) -> float:
        return min(deviance_of_hops(other, hops, holders, agents, control), 1e12) - most

    low = optimize.brentq(beyond, 0.0, r) if r > 0 and beyond(0.0) > 0 else 0.0
    high = optimize.brentq(beyond, r, 1.0) if r < 1 and beyond(1.0) > 0 else 1.0
    return float(low), float(high)


def weibull(times: ArrayLike, lost: ArrayLike) -> tuple[float, float]:
    """How far holding times are from exponential: the shape of a Weibull distribution, and its gain in deviance.

    ``times`` are durations, ``lost`` whether each ended in a loss (else it was censored). Shape 1 is exponential, below
    it losses come early, above late. Durations of zero say nothing about the shape and are left out; NaN where fewer
    than two losses are left or all are at one time.
    """
    t, ended = np.asarray(times, np.float64), np.asarray(lost, np.bool_)
    t, ended = t[t > 0], ended[t > 0]
    losses = int(ended.sum())
    if losses < 2 or float(np.ptp(t[ended])) == 0:
        return math.nan, math.nan
    from scipy import optimize

    logs = np.log(t / t.max())

    def likelihood(shape: float) -> float:
        return float(
            losses * (math.log(shape) + math.log(losses) - math.log(np.exp(shape * logs).sum()))
            + (shape - 1) * logs[ended].sum()
            - losses
        )

    best = optimize.minimize_scalar(lambda log: -likelihood(math.exp(log)), bounds=(-4, 4), method="bounded")
    return math.exp(float(best.x)), max(0.0, 2 * (-float(best.fun) - likelihood(1.0)))


def _shapes(hops: ArrayLike, holders: ArrayLike, agents: ArrayLike, control: ArrayLike) -> Any:
    """Hops, holders and agents as numbers, and the control's share at each hop."""
    h, found, n, without = (np.asarray(each, np.float64) for each in (hops, holders, agents, control))
    return h, found, n, np.where(n > 0, without / np.maximum(n, 1), 0)
