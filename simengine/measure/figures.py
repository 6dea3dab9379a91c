"""Figures that a printer without colour can show: grouped bars, lines, pairs of dots, each with its intervals.

Series differ in hatch, marker or line style besides their colour, and colours differ in lightness. A caption says how
many the means rest on and what the intervals are. Equal input gives equal bytes, whatever a user's own matplotlib
settings say.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simengine.measure.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INTERVAL = "95% bootstrap interval over users"

BANDS_FROM = 16
"""From so many places on, lines show their intervals as bands instead of bars, which would run together."""


class Style(NamedTuple):
    """How one series is drawn, by shape as well as by colour."""

    colour: str
    hatch: str
    marker: str
    line: Any


STYLES = (
    Style("#4f7cac", "", "o", "-"),
    Style("#f2c14e", "///", "s", "--"),
    Style("#e39aa6", "...", "^", "-."),
    Style("#a9d6c9", "\\\\\\", "D", ":"),
    Style("#a7aad4", "xxx", "v", (0, (5, 1, 1, 1, 1, 1))),
    Style("#f2f2f2", "---", "P", (0, (8, 3))),
    Style("#7fbfae", "+++", "X", (0, (1, 3))),
    Style("#f4a9a8", "|||", "<", (0, (3, 3, 1, 3))),
    Style("#b5b5b5", "ooo", ">", (0, (10, 2, 2, 2))),
    Style("#dccbe8", "**", "h", (0, (2, 1))),
)
"""The styles of series, in order; no two share a hatch, a marker or a line style."""

_INK = "#222222"
_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": _INK,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "legend.handleheight": 1.2,
}
_DPI = 150
_CHANCE: dict[str, Any] = {
    "color": _INK,
    "linestyle": (0, (4, 3)),
    "linewidth": 1.2,
    "zorder": 2.7,
    "label": "chance",
    "gid": "chance",
}


@dataclass(frozen=True)
class Words:
    """What a figure says: its title, its axes, and in the caption what an interval is and anything else to know.

    ``of`` is what means are taken over; ``note`` ends the caption.
    """

    title: str
    x: str
    y: str
    interval: str = INTERVAL
    of: str = "users"
    note: str = ""

    def caption(self, intervals: Sequence[Interval]) -> str:
        """How many the means rest on, what the intervals are, and the note. Gaps do not count."""
        there = [each for each in intervals if not math.isnan(each.mean)]
        counts = [each.n for each in there]
        least, most = min(counts, default=0), max(counts, default=0)
        size = f"n = {most}" if least == most else f"n = {least} to {most}"
        unbounded = any(not math.isfinite(each.low) for each in there)
        none = " (none where there are too few)" if unbounded else ""
        return f"{size} {self.of}; intervals: {self.interval}{none}.{f' {self.note}' if self.note else ''}"


def bars(
    path: Path,
    groups: Sequence[str],
    series: Mapping[str, Sequence[Interval]],
    words: Words,
    *,
    chance: Sequence[float] | float | None = None,
) -> Figure:
    """Grouped bars from zero with whiskers: one bar of each series in each group. Writes a PNG and returns the figure.

    ``chance`` is drawn across each group: one value, or one a group. Raises ``ValueError`` where numbers do not fit, or
    where there are more series than can be told apart.
    """
    _check(len(groups), series)
    levels = None if chance is None else _per_place(chance, len(groups))
    with _settings():
        figure, axes = _blank(words, min(16.0, max(7.0, 3.0 + 0.3 * len(groups) * (len(series) + 1))))
        width = 0.84 / max(1, len(series))
        for at, ((name, intervals), style) in enumerate(zip(series.items(), STYLES, strict=False)):
            places = [group + (at - (len(series) - 1) / 2) * width for group in range(len(groups))]
            means = [each.mean for each in intervals]
            axes.bar(
                places, means, width * 0.94, label=name, color=style.colour, hatch=style.hatch, edgecolor=_INK, lw=0.8
            )
            _whiskers(axes, places, intervals, colour=_INK)
        if levels is not None:
            starts, ends = [at - 0.46 for at in range(len(groups))], [at + 0.46 for at in range(len(groups))]
            axes.hlines(levels, starts, ends, **_CHANCE)
        axes.set_xticks(range(len(groups)), [textwrap.fill(group, 16) for group in groups])
        axes.tick_params(axis="x", length=0)
        axes.axhline(0, color=_INK, linewidth=0.8)
        axes.margins(x=0.02)
        return _finish(figure, axes, path, words, [each for row in series.values() for each in row])


def lines(
    path: Path | None,
    places: Sequence[float],
    series: Mapping[str, Sequence[Interval]],
    words: Words,
    *,
    chance: float | None = None,
) -> Figure:
    """Lines through means at numbers on the x axis, intervals as bars or, where places are many, as bands.

    Writes a PNG, where a path is given, and returns the figure; ``chance`` is a level line. A NaN mean is a gap. Errors
    as in :func:`bars`.
    """
    _check(len(places), series)
    with _settings():
        figure, axes = _blank(words, 7.5)
        step = (max(places) - min(places)) / max(1, len(places) - 1) if places else 0.0
        for at, ((name, intervals), style) in enumerate(zip(series.items(), STYLES, strict=False)):
            means, lows, highs = ([each[field] for each in intervals] for field in range(3))
            banded = len(places) >= BANDS_FROM
            aside = 0.0 if banded else (at - (len(series) - 1) / 2) * 0.05 * step  # so that bars do not hide bars
            shifted = [place + aside for place in places]
            ink = _darker(style.colour)
            axes.plot(
                shifted,
                means,
                label=name,
                color=ink,
                linestyle=style.line,
                linewidth=1.8,
                marker=style.marker,
                markerfacecolor=style.colour,
                markeredgecolor=_INK,
                markersize=7,
                markevery=max(1, len(places) // 12),
                zorder=3,
            )
            if banded:
                axes.fill_between(shifted, lows, highs, color=style.colour, alpha=0.3, linewidth=0)
                for edge in (lows, highs):
                    axes.plot(shifted, edge, color=ink, linestyle=style.line, linewidth=0.6)
            else:
                _whiskers(axes, shifted, intervals, colour=ink)
        if chance is not None:
            axes.axhline(chance, **_CHANCE)
        if 0 < len(places) < BANDS_FROM:
            axes.set_xticks(list(places), [f"{place:g}" for place in places])
        return _finish(figure, axes, path, words, [each for row in series.values() for each in row])


def dots(
    path: Path,
    rows: Sequence[str],
    before: Sequence[Interval],
    after: Sequence[Interval],
    words: Words,
    *,
    names: tuple[str, str] = ("before", "after"),
    chance: float | None = None,
) -> Figure:
    """Two dots a row, hollow before and filled after, joined by an arrow, with their intervals along the x axis.

    Writes a PNG and returns the figure; the first row stands on top; ``chance`` is an upright line. Errors as in
    :func:`bars`.
    """
    _check(len(rows), {names[0]: before, names[1]: after})
    with _settings():
        figure, axes = _blank(words, 7.5, 2.4 + 0.62 * len(rows))
        shapes = ((names[0], before, -0.13, "o", "white"), (names[1], after, 0.13, "s", STYLES[0].colour))
        for name, intervals, aside, marker, fill in shapes:
            places = [row + aside for row in range(len(rows))]
            _whiskers(axes, places, intervals, colour=STYLES[0].colour, along_x=True)
            means = [each.mean for each in intervals]
            axes.plot(
                means,
                places,
                label=name,
                linestyle="none",
                marker=marker,
                markersize=8,
                color=fill,
                markeredgecolor=STYLES[0].colour,
                markeredgewidth=1.6,
                zorder=3,
            )
        for row, (start, end) in enumerate(zip(before, after, strict=True)):
            if math.isfinite(start.mean) and math.isfinite(end.mean):
                arrow = {"arrowstyle": "->", "color": _INK, "linewidth": 0.9, "shrinkA": 5, "shrinkB": 5}
                axes.annotate("", (end.mean, row + 0.13), (start.mean, row - 0.13), arrowprops=arrow)
        if chance is not None:
            axes.axvline(chance, **_CHANCE)
        axes.set_yticks(range(len(rows)), [textwrap.fill(row, 28) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.08)
        return _finish(figure, axes, path, words, [*before, *after], value_axis="x")


@contextmanager
def _settings() -> Iterator[None]:
    """Matplotlib as these figures need it, whatever its settings are, and as it was afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams  # whose type lists every name
        settings.update(_SETTINGS)
        yield


def _check(places: int, series: Mapping[str, Sequence[Interval]]) -> None:
    if len(series) > len(STYLES):
        raise ValueError(f"{len(series)} series are more than the {len(STYLES)} that can be told apart without colour")
    for name, intervals in series.items():
        if len(intervals) != places:
            raise ValueError(f"{name} has {len(intervals)} values for {places} places")


def _per_place(chance: Sequence[float] | float, places: int) -> list[float]:
    levels = [float(chance)] * places if isinstance(chance, int | float) else list(chance)
    if len(levels) != places:
        raise ValueError(f"chance has {len(levels)} values for {places} places")
    return levels


def _blank(words: Words, width: float, height: float = 4.6) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    figure.suptitle(textwrap.fill(words.title, int(width * 9)), x=0.01, ha="left")
    axes.set_xlabel(words.x)
    axes.set_ylabel(words.y)
    return figure, axes


def _whiskers(
    axes: Axes, places: Sequence[float], intervals: Sequence[Interval], *, colour: str, along_x: bool = False
) -> None:
    """The intervals that have bounds."""
    from matplotlib.patheffects import withStroke

    bound = [(place, each) for place, each in zip(places, intervals, strict=True) if math.isfinite(each.low)]
    if not bound:
        return
    at = [place for place, _ in bound]
    means = [each.mean for _, each in bound]
    # A percentile interval of a skewed mean may end short of it.
    sizes = [
        [max(0.0, each.mean - each.low) for _, each in bound],
        [max(0.0, each.high - each.mean) for _, each in bound],
    ]
    style: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 1.2, "capsize": 3, "zorder": 2.5}
    style["xerr" if along_x else "yerr"] = sizes
    drawn = axes.errorbar(*((means, at) if along_x else (at, means)), **style)
    for part in drawn.get_children():
        part.set_path_effects([withStroke(linewidth=3, foreground="white")])  # to be seen on dark bars


def _darker(colour: str) -> str:
    """The colour as lines show it on white: no lighter than a middle grey."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = to_rgb(colour)
    lightness = 0.299 * red + 0.587 * green + 0.114 * blue
    scale = min(1.0, 0.55 / lightness) if lightness else 1.0
    return str(to_hex((red * scale, green * scale, blue * scale)))


def _finish(
    figure: Figure, axes: Axes, path: Path | None, words: Words, intervals: Sequence[Interval], value_axis: Any = "y"
) -> Figure:
    """Grid, legend beside the data, caption below; then the PNG, whose bytes name neither date nor version."""
    axes.grid(axis=value_axis, color="#d9d9d9", linewidth=0.7)
    handles, labels = axes.get_legend_handles_labels()
    last = sorted(range(len(labels)), key=lambda at: labels[at] == _CHANCE["label"])
    figure.legend([handles[at] for at in last], [labels[at] for at in last], loc="outside right center")
    caption = textwrap.fill(words.caption(intervals), int(figure.get_figwidth() * 14))
    figure.supxlabel(caption, x=0.01, ha="left", fontsize=8, color="#444444")
    if path is not None:
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", metadata={"Software": None})
        path.write_bytes(drawn.getvalue())
    return figure
