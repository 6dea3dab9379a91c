"""What was found of planted preferences, as values: of each run, of all together, as a DataFrame and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from simengine.measure.decay import Decay, Share
from simengine.measure.decay_figure import compare_by_hop, compare_by_time, draw_by_hop, draw_by_time
from simengine.measure.estimates import Estimate
from simengine.measure.probes import Agreement
from simengine.measure.reachability import Outside
from simengine.scenario.opened import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class RunDecay(msgspec.Struct, frozen=True):
    """One run with plantings: its name, its folder, that of its control (``None``: there is none), its decay."""

    run: str
    folder: str
    control: str | None
    decay: Decay


class FalsePositive(msgspec.Struct, frozen=True):
    """A user who said that it holds a statement which cannot have come to it."""

    run: str
    user: str
    at: str
    preference: str


class Probing(msgspec.Struct, frozen=True):
    """What the probes of a run, time and statement were answered: of ``users`` asked, how many hold it, by each way.

    ``unread`` answers could not be read; ``control`` is how many hold it by their answers in the control. What cannot
    be told without a control is ``None``.
    """

    run: str
    at: str
    preference: str
    users: int
    answers: int
    words: int
    similar: int | None
    unread: int
    control: int | None


class Number(msgspec.Struct, frozen=True):
    """One number of a run, as a row of a table: what it is of, where (a kind of contact, a hop, a time), interval, n.

    ``run`` is empty for runs taken together.
    """

    run: str
    what: str
    at: str | float | None
    value: float | None
    low: float | None
    high: float | None
    n: int


class Spread(msgspec.Struct, frozen=True):
    """All that was found: ``decay.json``.

    ``runs`` are the runs with plantings, each by itself. ``decay`` is of all their plantings together, where the runs
    differ by their seeds alone; ``None`` where they stand beside one another to be compared. ``outside`` are agents
    whose memories differ from the control's though nothing leads to them, of which there are none in a sound run;
    ``false_positives`` the probes that were answered with yes where nothing leads to the user.
    """

    runs: tuple[RunDecay, ...]
    decay: Decay | None
    probes: tuple[Probing, ...]
    agreement: tuple[Agreement, ...]
    false_positives: tuple[FalsePositive, ...]
    outside: tuple[Outside, ...]

    @property
    def controlled(self) -> bool:
        """Whether every run has a control; without one, nobody is taken to hold anything anyway."""
        return all(one.control is not None for one in self.runs)

    def numbers(self) -> Table[Number]:
        """Every number with its interval: of the runs together where they are, and of each where there are several."""
        together = [("", self.decay)] if self.decay is not None else []
        each = [(one.run, one.decay) for one in self.runs] if len(self.runs) > 1 else []
        return Table(row for run, decay in (*together, *each) for row in _numbers(run, decay))

    def to_pandas(self) -> Any:
        """:meth:`numbers` as a DataFrame. Raises :class:`InputError` where pandas is missing."""
        return self.numbers().to_pandas()

    def plot(self, path: str | Path | None = None, over: Literal["hops", "time"] = "hops") -> Figure:
        """The share of holders by hop or over time as a matplotlib figure, written as a PNG where a path is given.

        Of runs together it has treatment and control, of runs beside one another the share of each, net of the control.
        """
        place = None if path is None else Path(path)
        if self.decay is not None:
            return (draw_by_hop if over == "hops" else draw_by_time)(place, self.decay, control=self.controlled)
        decays = {one.run: one.decay for one in self.runs}
        return (compare_by_hop if over == "hops" else compare_by_time)(place, decays)


def _numbers(run: str, decay: Decay) -> Iterator[Number]:
    def row(what: str, at: str | float | None, found: Estimate) -> Number:
        return Number(run, what, at, found.value, found.low, found.high, found.n)

    yield from (row("rate per contact", each.kind, each.rate) for each in (*decay.transmission, decay.spontaneous))
    for name, shares in (("hop", decay.hops), ("time", decay.times)):
        for share in shares:
            yield from (row(f"{what} by {name}", share.at, found) for what, found in _shares(share))
    yield row("kept per hop", None, decay.fit.kept)
    yield row("half-life in hops", None, decay.fit.half_life)
    yield row("half-life in time", None, decay.loss.half_life)
    yield from (row("reproduction", float(each.generation), each.number) for each in decay.reproduction)


def _shares(share: Share) -> Iterator[tuple[str, Estimate]]:
    yield "share", share.share
    yield "control", share.control
    yield "net share", share.net
