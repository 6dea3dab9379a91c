"""The command decay: how planted preferences travelled and faded, as a table, ``decay.json`` and two figures."""

from __future__ import annotations

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

from simengine.measure.decay import Share
from simengine.measure.decay_figure import draw_by_hop, draw_by_time
from simengine.measure.estimates import Estimate
from simengine.scenario.propagation import Spread, measure_spread, pairs

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
    """Measure how planted preferences travelled and faded: the table, decay.json, and figures by hop and over time."""
    spread = measure_spread(pairs(runs, control))
    show(spread)
    folder = out or runs[0]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "decay.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(spread), indent=2) + b"\n")
    draw_by_hop(folder / "decay-by-hop.png", spread.decay)
    draw_by_time(folder / "decay-over-time.png", spread.decay)
    print(f"written: {path}, decay-by-hop.png and decay-over-time.png beside it")


def show(spread: Spread, console: Console | None = None) -> None:
    """Print what was measured."""
    console = console or Console()
    found = spread.decay
    rows = [(row.kind, f"{row.successes}/{row.trials}", _estimate(row.rate)) for row in found.transmission]
    alone = found.spontaneous
    rows.append(("no holder among the sources", f"{alone.successes}/{alone.trials}", _estimate(alone.rate)))
    _table(console, "Passed on, per contact", ("contact", "passed", "rate [95%]"), rows)
    _table(console, "Holders by hop from the seeds", _SHARES, [_share(row) for row in found.hops])
    _table(console, "Holders by time since planting", _SHARES, [_share(row) for row in _changes(found.times)])
    carried = [(f"{row.generation}", f"{row.carriers}", _estimate(row.number)) for row in found.reproduction]
    _table(console, "Whom carriers brought it to", ("generation", "carriers", "agents each [95%]"), carried)
    fit, loss = found.fit, found.loss
    lines = [
        f"share by hop = r^hop: r {_estimate(fit.kept)}, half-life {_estimate(fit.half_life)} hops, deviance "
        f"{_number(fit.deviance)} on {fit.freedom} degrees of freedom (p {_number(fit.p)})",
        f"lost again: {loss.losses} of {loss.spells} spells, half-life {_estimate(loss.half_life)} in the log's time, "
        f"Weibull shape {_number(loss.shape)} (p {_number(loss.p)} of the exponential)",
    ]
    for line in (*lines, *found.notes):
        console.print(Text(line), soft_wrap=True)
    _show_probes(spread, console)
    _show_strays(spread, console)


_SHARES = ("at", "agents", "holders", "share [95%]", "control", "net of control [95%]")


def _changes(rows: Sequence[Share]) -> Iterator[Share]:
    """The first row, and each that counts others than the one before."""
    for at, row in enumerate(rows):
        before = rows[at - 1]
        if at == 0 or (row.agents, row.holders) != (before.agents, before.holders):
            yield row


def _show_probes(spread: Spread, console: Console) -> None:
    rows = [
        (row.at, row.preference, *(_count(value) for value in (row.users, row.answers, row.words, row.similar)),
         _count(row.unread), _count(row.control))
        for row in spread.probes
    ]  # fmt: skip
    names = ("asked at", "preference", "users", "say yes", "by words", "by similarity", "unread", "control")
    _table(console, "Probes", names, rows)
    ways = [
        (f"{way.first} / {way.second}", f"{way.n}", _number(way.agree), _number(way.kappa)) for way in spread.agreement
    ]
    _table(console, "Agreement of the ways to tell", ("ways", "probes", "agree", "kappa"), ways)


def _show_strays(spread: Spread, console: Console) -> None:
    positives = spread.false_positives
    named = ", ".join(f"{row.user} at {row.at} ({row.preference})" for row in positives[:_SHOWN])
    console.print(Text(f"probes answered with yes outside of the possible reach: {len(positives)} {named}".rstrip()))
    strays = ", ".join(f"{row.agent} at {row.event}" for row in spread.outside[:_SHOWN])
    said = f"agents that differ from the control outside of the possible reach: {len(spread.outside)} {strays}"
    console.print(Text(said.rstrip()), soft_wrap=True)


def _table(console: Console, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="left" if column == columns[0] or column == "preference" else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _share(row: Share) -> tuple[str, ...]:
    shares = (_estimate(row.share), _number(row.control.value), _estimate(row.net))
    return f"{row.at:g}", str(row.agents), str(row.holders), *shares


def _estimate(found: Estimate) -> str:
    return f"{_number(found.value)} [{_number(found.low)}, {_number(found.high)}]"


def _number(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.3g}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
