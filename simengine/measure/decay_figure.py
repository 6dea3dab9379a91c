"""The figures of a study of propagation: share of holders by hop with the fitted curve, and its spread over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from simengine.measure.decay import Decay, Share
from simengine.measure.figures import Words, lines
from simengine.measure.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_by_hop(path: Path, decay: Decay) -> Figure:
    """Share of holders by hop, of the treatment, the control and net of it, beside share(h) = r^h as fitted.

    Writes a PNG and returns the figure.
    """
    kept, half = decay.fit.kept, decay.fit.half_life
    series = _series(decay.hops)
    r, low, high, _ = kept.interval
    fitted = [Interval(r**each.at, low**each.at, high**each.at, each.agents) for each in decay.hops]
    words = Words(
        "Share of holders by hop from the seeds",
        "fewest hops from a seed, over contacts in the order of time",
        "share that ever holds it",
        _interval(decay),
        "agents",
        f"Fitted: r^h with r = {_said(kept.interval)}, half-life {_said(half.interval)} hops, deviance"
        f" {_number(decay.fit.deviance)} on {decay.fit.freedom} degrees of freedom. Shares mix multiple exposures.",
    )
    return lines(path, [share.at for share in decay.hops], {**series, "fitted": fitted}, words)


def draw_by_time(path: Path, decay: Decay) -> Figure:
    """Share of holders by time since planting, of the treatment, the control and net of it.

    Writes a PNG and returns the figure.
    """
    words = Words(
        "Spread over time",
        "time since planting, as the log counts it",
        "share of those possibly reached by then",
        _interval(decay),
        "agents",
        f"Seeds are left out. Holders lost it {decay.loss.losses} times in {decay.loss.spells} spells:"
        f" half-life {_said(decay.loss.half_life.interval)}.",
    )
    return lines(path, [share.at for share in decay.times], _series(decay.times), words)


def _series(shares: tuple[Share, ...]) -> dict[str, list[Interval]]:
    return {
        "treatment": [share.share.interval for share in shares],
        "control": [share.control.interval for share in shares],
        "net of control": [share.net.interval for share in shares],
    }


def _interval(decay: Decay) -> str:
    how = "over plantings, or of independent agents where wider" if decay.plantings > 1 else "of independent agents"
    count = f"{decay.plantings} plantings" if decay.plantings > 1 else "one planting"
    return f"95% {how}; {count}"


def _said(found: Interval) -> str:
    return f"{_number(found.mean)} ({_number(found.low)} to {_number(found.high)})"


def _number(value: float | None) -> str:
    """Three digits. Infinite and unknown are told alike, as both are ``None`` once they have been in JSON."""
    return f"{value:.3g}" if value is not None and math.isfinite(value) else "none"
