"""The command compare: prints two runs side by side, how sure their differences are, and where their logs part."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simengine.cli import show
from simengine.runlog import ABSENT
from simengine.runlog.parting import Parting
from simengine.scenario.comparison import Comparison, Rows
from simengine.scenario.comparison import compare as compare_runs
from simengine.scenario.wording import counted

_SHOWN = 160  # characters of a value that differs


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of another run.")],
) -> None:
    """Set two runs side by side: results, differences, where the logs part."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    found = compare_runs(first, second)
    console.print(f"first: {first}\nsecond: {second}")
    console.print(f"made with another: {', '.join(found.changed)}" if found.changed else "made with the same settings")
    if found.results:
        console.print()
        show.results_table(found.results)
    for rows in found.rows:
        _print_rows(rows)
    _print_parting(found, console)
    for note in found.notes:
        console.print(f"note: {note}")


def _print_rows(rows: Rows) -> None:
    ranker = rows.first if rows.first == rows.second else f"{rows.first} and {rows.second}"
    title = f"Stage {rows.stage}, {ranker}: second less first"
    table = Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False, show_edge=False)
    table.add_column("metric", no_wrap=True)
    for name in ("first", "second", "difference", "95% interval", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for metric in rows.metrics:
        name = metric.metric if metric.k is None else f"{metric.metric}@{metric.k}"
        interval = f"[{_number(metric.low, '+')}, {_number(metric.high, '+')}]"
        means = (_number(metric.first), _number(metric.second), _number(metric.difference, "+"))
        table.add_row(name, *means, interval, str(metric.n))
    console = Console()
    console.print(table)
    console.print()


def _number(value: float, sign: str = "") -> str:
    return "n/a" if math.isnan(value) else f"{value:{sign}.4f}"


def _print_parting(found: Comparison, console: Console) -> None:
    parting = found.parting
    if parting is None:
        console.print("the logs hold the same events")
        return
    console.print(f"the logs part after {counted(parting.after, 'equal event')}, at {parting.event}")
    console.print(f"  {_where(parting)}")
    console.print(f"  first:  {_text(parting.difference.expected)}")
    console.print(f"  second: {_text(parting.difference.found)}")


def _where(parting: Parting) -> str:
    said = {"record": parting.difference.record, "agent": parting.difference.agent, "unit": parting.difference.unit}
    return ", ".join(f"{name} {value}" for name, value in said.items() if value)


def _text(value: Any) -> str:
    text = "nothing" if value is ABSENT else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
