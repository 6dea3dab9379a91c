"""Figures: bytes that repeat, words that are there, intervals that are drawn, series told apart without colour."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from simengine.measure.figures import BANDS_FROM, INTERVAL, STYLES, Words, bars, dots, lines
from simengine.measure.statistics import Interval

WORDS = Words("Ranking on invented data", "place asked", "NDCG@10", note="Chance is exact.")
ONE = Interval(0.5, 0.4, 0.7, 20)
UNBOUND = Interval(0.3, math.nan, math.nan, 1)
NAMES = [f"ranker {number}" for number in range(len(STYLES))]


def three(path: Path) -> Figure:
    return bars(path, ["at 1", "at 5"], {"agents": [ONE, ONE], "pop": [ONE, UNBOUND]}, WORDS, chance=[0.1, 0.3])


def line(path: Path) -> Figure:
    return lines(path, [1, 2, 5], {"agents": [ONE, UNBOUND, ONE], "pop": [ONE, ONE, ONE]}, WORDS, chance=0.4544)


def band(path: Path) -> Figure:
    return lines(path, range(BANDS_FROM), {"agents": [ONE] * BANDS_FROM, "pop": [ONE] * BANDS_FROM}, WORDS)


def pair(path: Path) -> Figure:
    return dots(path, ["similar", "distinct"], [ONE, UNBOUND], [ONE, ONE], WORDS, chance=0.4544)


each = pytest.mark.parametrize("draw", [three, line, band, pair])
Draw = Callable[[Path], Figure]


@each
def test_a_whole_png_with_equal_bytes_twice_and_no_date(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "one.png")
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 30, "axes.grid": True}):  # a user's own settings
        draw(tmp_path / "two.png")
    written = (tmp_path / "one.png").read_bytes()
    assert written.startswith(b"\x89PNG\r\n\x1a\n")
    assert written.endswith(b"IEND\xaeB`\x82")
    assert matplotlib.image.imread(tmp_path / "one.png").std() > 0.05  # something is drawn on it
    assert not any(chunk in written for chunk in (b"tIME", b"Software", b"Creation"))
    assert (tmp_path / "two.png").read_bytes() == written


@each
def test_title_axes_and_caption_say_what_is_shown(tmp_path: Path, draw: Draw) -> None:
    figure = draw(tmp_path / "figure.png")
    (axes,) = figure.axes
    assert figure.get_suptitle() == WORDS.title
    assert (axes.get_xlabel(), axes.get_ylabel()) == (WORDS.x, WORDS.y)
    caption = " ".join(figure.get_supxlabel().split())
    assert INTERVAL in caption
    assert caption.endswith("Chance is exact.")
    assert ("n = 20 users;" if draw is band else "n = 1 to 20 users;") in caption
    assert ("none where there are too few" in caption) == (draw is not band)


@each
def test_the_legend_names_all_and_hides_no_data(tmp_path: Path, draw: Draw) -> None:
    figure = draw(tmp_path / "figure.png")
    (legend,) = figure.legends
    said = [text.get_text() for text in legend.get_texts()]
    assert said[:2] == (["before", "after"] if draw is pair else ["agents", "pop"])
    assert said[2:] == ([] if draw is band else ["chance"])
    assert not legend.get_window_extent().overlaps(figure.axes[0].get_window_extent())
    assert not figure.axes[0].get_tightbbox().overlaps(legend.get_window_extent())


@each
def test_drawing_leaves_settings_alone(tmp_path: Path, draw: Draw) -> None:
    before = dict(matplotlib.rcParams)
    draw(tmp_path / "figure.png")
    assert dict(matplotlib.rcParams) == before


def test_matplotlib_is_loaded_when_something_is_drawn_and_pyplot_never(tmp_path: Path) -> None:
    code = "import sys, pathlib, simengine.measure.figures as f; loaded = 'matplotlib' in sys.modules; "
    code += "f.bars(pathlib.Path(sys.argv[1]), [], {}, f.Words('', '', '')); "
    code += "print(loaded, 'matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    command = [sys.executable, "-c", code, str(tmp_path / "empty.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def segments(figure: Figure) -> list[list[list[float]]]:
    """The ends of all whiskers, rounded."""
    drawn = [part for part in figure.axes[0].collections if hasattr(part, "get_segments")]
    return [[[round(float(x), 3) for x in end] for end in stroke] for part in drawn for stroke in part.get_segments()]


def test_bars_stand_from_zero_with_whiskers_and_chance_across_each_group(tmp_path: Path) -> None:
    figure = three(tmp_path / "figure.png")
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert heights == [0.5, 0.5, 0.5, 0.3]
    assert figure.axes[0].get_ylim()[0] <= 0
    ends = [[end[1] for end in stroke] for stroke in segments(figure)]
    assert ends == [[0.4, 0.7]] * 3 + [[0.1, 0.1], [0.3, 0.3]]  # none for the value without bounds; then chance


def test_lines_have_whiskers_at_few_places_and_bands_at_many(tmp_path: Path) -> None:
    few, many = line(tmp_path / "few.png"), band(tmp_path / "many.png")
    assert [[end[1] for end in stroke] for stroke in segments(few)] == [[0.4, 0.7]] * 5
    assert segments(many) == []
    edges = [
        (path.vertices[:, 1].min(), path.vertices[:, 1].max())
        for c in many.axes[0].collections
        for path in c.get_paths()
    ]
    assert edges == [(0.4, 0.7)] * 2
    assert [tick.get_text() for tick in few.axes[0].get_xticklabels()] == ["1", "2", "5"]


def test_dots_are_hollow_before_and_filled_after_with_the_first_row_on_top(tmp_path: Path) -> None:
    figure = dots(tmp_path / "figure.png", ["a", "b"], [ONE, ONE], [Interval(0.8, 0.7, 0.9, 20), UNBOUND], WORDS)
    axes = figure.axes[0]
    before, after = (one for one in axes.lines if one.get_label() in ("before", "after"))
    assert (list(before.get_xdata()), list(after.get_xdata())) == ([0.5, 0.5], [0.8, 0.3])
    assert to_rgb(before.get_markerfacecolor()) == (1, 1, 1)
    assert sum(to_rgb(after.get_markerfacecolor())) < 2
    assert before.get_marker() != after.get_marker()
    low, high = axes.get_ylim()
    assert low > high
    assert [[end[0] for end in stroke] for stroke in segments(figure)] == [[0.4, 0.7]] * 2 + [[0.7, 0.9]]


def test_bars_differ_in_hatch_where_greys_are_alike(tmp_path: Path) -> None:
    figure = bars(tmp_path / "figure.png", ["at 1"], {name: [ONE] for name in NAMES}, WORDS)
    patches = figure.axes[0].patches
    assert len(patches) == len(NAMES)
    for one, other in itertools.combinations(patches, 2):
        assert one.get_hatch() != other.get_hatch()
    for patch in patches:  # whiskers, hatches and chance, which are nearly black, can be seen on each of them
        red, green, blue = to_rgb(patch.get_facecolor())
        assert 0.299 * red + 0.587 * green + 0.114 * blue > 0.4


def test_lines_differ_in_marker_and_in_dashes_and_can_be_seen_on_white(tmp_path: Path) -> None:
    figure = lines(tmp_path / "figure.png", [1, 2], {name: [ONE, ONE] for name in NAMES}, WORDS)
    drawn = [one for one in figure.axes[0].lines if one.get_label() in NAMES]
    assert len(drawn) == len(NAMES)
    for one, other in itertools.combinations(drawn, 2):
        assert one.get_marker() != other.get_marker()
        assert one._unscaled_dash_pattern != other._unscaled_dash_pattern
    for one in drawn:
        red, green, blue = to_rgb(one.get_color())
        assert 0.299 * red + 0.587 * green + 0.114 * blue < 0.6


def test_a_value_that_is_missing_is_a_gap(tmp_path: Path) -> None:
    none = Interval(math.nan, math.nan, math.nan, 0)
    figure = lines(tmp_path / "line.png", [1, 2], {"x": [none, ONE]}, WORDS)
    assert [[end[1] for end in stroke] for stroke in segments(figure)] == [[0.4, 0.7]]
    dots(tmp_path / "dots.png", ["a", "b"], [none, ONE], [ONE, none], WORDS)
    bars(tmp_path / "bars.png", ["a", "b"], {"x": [none, ONE]}, WORDS)


def test_an_interval_that_ends_short_of_its_mean_is_cut_there(tmp_path: Path) -> None:
    figure = bars(tmp_path / "figure.png", ["a"], {"x": [Interval(0.5, 0.52, 0.6, 9)]}, WORDS)
    assert [[end[1] for end in stroke] for stroke in segments(figure)] == [[0.5, 0.6]]


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (
            lambda path: bars(path, ["a"], {f"x{at}": [ONE] for at in range(11)}, WORDS),
            "11 series are more than the 10",
        ),
        (lambda path: bars(path, ["a", "b"], {"x": [ONE]}, WORDS), "x has 1 values for 2 places"),
        (lambda path: bars(path, ["a"], {"x": [ONE]}, WORDS, chance=[0.1, 0.2]), "chance has 2 values for 1 places"),
        (lambda path: lines(path, [1], {"x": [ONE, ONE]}, WORDS), "x has 2 values for 1 places"),
        (lambda path: dots(path, ["a"], [ONE], [], WORDS), "after has 0 values for 1 places"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_written(tmp_path: Path, draw: Draw, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        draw(tmp_path / "figure.png")
    assert list(tmp_path.iterdir()) == []
