"""The command decay: how planted preferences travelled and faded, as tables, ``decay.json`` and two figures."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simengine.measure.decay import Decay, Share
from simengine.measure.estimates import Estimate
from simengine.scenario.propagation import measure_spread, pairs
from simengine.scenario.spread import Probing, Spread
from simengine.scenario.wording import counted

_SHOWN = 10
"""How many agents outside of the possible reach, or false positives, are named."""


def decay(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or of their variants.")],
    control: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run without plantings, where it is not found by itself.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write; the folder of the first run by default.")
    ] = None,
) -> None:
    """Measure how planted preferences travelled and faded.

    Prints tables, and writes decay.json and figures by hop and over time.
    """
    spread = asyncio.run(measure_spread(pairs(runs, control)))
    show(spread)
    folder = out or runs[0]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "decay.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(spread), indent=2) + b"\n")
    spread.plot(folder / "decay-by-hop.png")
    spread.plot(folder / "decay-over-time.png", over="time")
    print(f"written: {path}, decay-by-hop.png and decay-over-time.png beside it")


def show(spread: Spread, console: Console | None = None) -> None:
    """Print what was measured: in full of runs together, and of several runs the main numbers beside one another."""
    console = console or Console()
    if len(spread.runs) > 1:
        _show_beside(spread, console)
    if spread.decay is not None:
        _show_decay(spread.decay, spread.controlled, console)
    _show_notes(spread, console)
    _show_probes(spread, console)
    _show_strays(spread, console)


def _show_beside(spread: Spread, console: Console) -> None:
    rows = [
        (
            one.run,
            _below(one.decay.transmission[0].rate, 2),
            _below(one.decay.fit.kept, 2),
            _below(one.decay.fit.half_life, 2),
            _below(one.decay.loss.half_life, 2),
            _below(one.decay.times[-1].net, 3),
        )
        for one in spread.runs
    ]
    names = (
        "run",
        "passed on\nper contact",
        "kept\nper hop",
        "half-life\nin hops",
        "half-life\nin time",
        "share\nat end",
    )
    _table(console, "Runs beside one another, net of their controls [95%]", names, rows, gap=1)


def _show_decay(found: Decay, controlled: bool, console: Console) -> None:
    rows = [(row.kind, f"{row.successes}/{row.trials}", _estimate(row.rate)) for row in found.transmission]
    alone = found.spontaneous
    rows.append(("no holder among the sources", f"{alone.successes}/{alone.trials}", _estimate(alone.rate)))
    _table(console, "Passed on, per contact", ("contact", "passed", "rate [95%]"), rows)
    _show_shares("Holders by hop from the seeds", "hop", found.hops, controlled, console)
    _show_shares("Holders by time since planting", "time", list(_changes(found.times)), controlled, console)
    carried = [(f"{row.generation}", f"{row.carriers}", _estimate(row.number)) for row in found.reproduction]
    _table(console, "Whom carriers brought it to", ("generation", "carriers", "agents each [95%]"), carried)
    _show_possible(found, console)
    fit, loss = found.fit, found.loss
    degrees = counted(fit.freedom, "degree")
    lines = (
        f"share by hop = r^hop: r {_estimate(fit.kept)}, half-life {_estimate(fit.half_life)} hops; deviance "
        f"{_number(fit.deviance)} on {degrees} of freedom (p {_number(fit.p)})",
        f"lost again: {loss.losses} of {counted(loss.spells, 'spell')}, half-life {_estimate(loss.half_life)} in the "
        f"log's time; Weibull shape {_number(loss.shape)} (p {_number(loss.p)} of the exponential)",
    )
    for line in lines:
        console.print(Text(line))
    console.print()


def _show_possible(found: Decay, console: Console) -> None:
    met = [(row.kind, f"{row.contacts}", f"{row.agents}") for row in found.met]
    _table(console, "Contacts with possible holders", ("contact", "contacts", "of agents"), met)
    apart = [
        ("-" if row.distance is None else f"{row.distance}", f"{row.agents}", f"{row.reached}", f"{row.holders}")
        for row in found.apart
    ]
    names = ("edges", "agents", "possibly reached", "holders")
    _table(console, "Distance from the seeds, in edges", names, apart)


def _show_shares(title: str, at: str, shares: Sequence[Share], controlled: bool, console: Console) -> None:
    names = (at, "holders", "share [95%]", "control", "net of control [95%]")
    rows = [
        (f"{row.at:g}", f"{row.holders}/{row.agents}", *map(_estimate, (row.share,)), _number(row.control.value),
         _estimate(row.net))
        for row in shares
    ]  # fmt: skip
    shown = len(names) if controlled else names.index("control")
    _table(console, title, names[:shown], [row[:shown] for row in rows])


def _changes(rows: Sequence[Share]) -> Iterator[Share]:
    """The first row, and each that counts others than the one before."""
    for at, row in enumerate(rows):
        before = rows[at - 1]
        if at == 0 or (row.agents, row.holders) != (before.agents, before.holders):
            yield row


def _show_notes(spread: Spread, console: Console) -> None:
    decays = [spread.decay] if spread.decay is not None else [one.decay for one in spread.runs]
    notes = dict.fromkeys(note for decay in decays for note in decay.notes)
    lacking = ", ".join(one.run for one in spread.runs if one.control is None)
    without = [f"There is no control of {lacking}: nobody is taken to hold it anyway."] if lacking else []
    for note in (*notes, *without):
        console.print(Text(f"note: {note}"))


def _show_probes(spread: Spread, console: Console) -> None:
    """Of one run by statement, of several by run."""
    one = len(spread.runs) == 1
    rows: dict[tuple[str, str], list[Probing]] = {}
    for row in spread.probes:
        rows.setdefault((row.preference if one else row.run, row.at), []).append(row)
    ways = ("users", "answers", "words", "similar", "unread", "control")
    table = [(*key, *(_total([getattr(row, way) for row in found]) for way in ways)) for key, found in rows.items()]
    names = ("preference" if one else "run", "asked", "n", "yes", "words", "similar", "unread", "control")
    _table(console, "Probes: who holds it by answers, words and similarity", names, table)
    agree = [
        (f"{row.first} / {row.second}", f"{row.n}", _number(row.agree), _number(row.kappa)) for row in spread.agreement
    ]
    _table(console, "Agreement of the ways to tell", ("ways", "probes", "agree", "kappa"), agree)


def _show_strays(spread: Spread, console: Console) -> None:
    positives = spread.false_positives
    named = ", ".join(f"{row.user} at {row.at} ({row.preference})" for row in positives[:_SHOWN])
    console.print(Text(f"probes answered with yes outside of the possible reach: {len(positives)} {named}".rstrip()))
    if all(one.control is None for one in spread.runs):
        return
    strays = ", ".join(f"{row.agent} at {row.event}" for row in spread.outside[:_SHOWN])
    said = f"agents that differ from the control outside of the possible reach: {len(spread.outside)} {strays}"
    console.print(Text(said.rstrip()))


def _table(console: Console, title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]], gap: int = 2) -> None:
    """A table whose first column is text, of which what is too long goes on below, and whose others are numbers."""
    if not rows:
        return
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0)
    )
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at else "left", no_wrap=at > 0, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


def _estimate(found: Estimate) -> str:
    return f"{_number(found.value)} [{_number(found.low)}, {_number(found.high)}]"


def _below(found: Estimate, decimals: int) -> str:
    """The interval in a line of its own, where many stand side by side."""
    return f"{_number(found.value)}\n[{_number(found.low, decimals)}, {_number(found.high, decimals)}]"


def _number(value: float | None, decimals: int = 3) -> str:
    """Three digits, and of numbers between 0 and 1 so many decimals."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.{decimals}f}" if 0 < abs(value) < 1 else f"{value:.3g}"


def _total(counts: Sequence[int | None]) -> str:
    known = [count for count in counts if count is not None]
    return str(sum(known)) if len(known) == len(counts) else "-"
