"""The figures of a study of propagation: share of holders by hop with the fitted curve, and its spread over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from simengine.errors import InputError
from simengine.measure.decay import Decay, Share
from simengine.measure.figures import STYLES, Words, lines
from simengine.measure.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NONE = Interval(math.nan, math.nan, math.nan, 0)
_Find: TypeAlias = Callable[[tuple[Share, ...], float], Interval]


def draw_by_hop(path: Path | None, decay: Decay, *, control: bool = True) -> Figure:
    """Share of holders by hop, of the treatment, the control and net of it, beside share(h) = r^h as fitted.

    Without a ``control`` only the treatment and the fit are shown. Writes a PNG, where a path is given, and returns the
    figure.
    """
    kept, half = decay.fit.kept, decay.fit.half_life
    series = _series(decay.hops, control)
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


def draw_by_time(path: Path | None, decay: Decay, *, control: bool = True) -> Figure:
    """Share of holders by time since planting, of the treatment, the control and net of it.

    Without a ``control`` only the treatment is shown. Writes a PNG, where a path is given, and returns the figure.
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
    return lines(path, [share.at for share in decay.times], _series(decay.times, control), words)


def compare_by_hop(path: Path | None, decays: Mapping[str, Decay]) -> Figure:
    """Share of holders by hop, net of the control, of several runs by name.

    Writes a PNG, where a path is given, and returns the figure. Raises :class:`InputError` for more runs than can be
    told apart.
    """
    words = Words(
        "Share of holders by hop from the seeds",
        "fewest hops from a seed, over contacts in the order of time",
        "share that ever holds it, net of the control",
        _interval(next(iter(decays.values()))),
        "agents",
        "Shares mix multiple exposures.",
    )
    return _beside(path, {name: decay.hops for name, decay in decays.items()}, words, _at)


def compare_by_time(path: Path | None, decays: Mapping[str, Decay]) -> Figure:
    """Share of holders by time since planting, net of the control, of several runs by name.

    Times need not be the same: between two of its own, a run's share is that of the earlier one. Otherwise like
    :func:`compare_by_hop`.
    """
    words = Words(
        "Spread over time",
        "time since planting, as the log counts it",
        "share of those possibly reached",
        _interval(next(iter(decays.values()))),
        "agents",
        "Net of the control, among those possibly reached by then. Seeds are left out.",
    )
    return _beside(path, {name: decay.times for name, decay in decays.items()}, words, _since)


def _beside(path: Path | None, rows: Mapping[str, tuple[Share, ...]], words: Words, find: _Find) -> Figure:
    if len(rows) > len(STYLES):
        raise InputError(
            f"{len(rows)} runs are more than the {len(STYLES)} that a figure can tell apart",
            remedy="compare fewer at once",
        )
    places = sorted({share.at for shares in rows.values() for share in shares})
    series = {name: [find(shares, place) for place in places] for name, shares in rows.items()}
    return lines(path, places, series, words)


def _at(shares: tuple[Share, ...], place: float) -> Interval:
    """The share at a place, which may have none."""
    return next((share.net.interval for share in shares if share.at == place), _NONE)


def _since(shares: tuple[Share, ...], place: float) -> Interval:
    """The last share up to a place; none behind the last one."""
    if place > shares[-1].at:
        return _NONE
    return [share.net.interval for share in shares if share.at <= place][-1]


def _series(shares: tuple[Share, ...], control: bool) -> dict[str, list[Interval]]:
    treatment = {"treatment": [share.share.interval for share in shares]}
    if not control:
        return treatment
    return {
        **treatment,
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
