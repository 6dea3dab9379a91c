"""The commands under export: what a run has generated as demonstrations, and plans as data to train models on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simengine.scenario.demonstrations import export_demonstrations
from simengine.scenario.imitation import export_plans

export = typer.Typer(help="Write files from runs: demonstrations, data to train planners on.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(metavar="FILE", help="The file to write; it must not exist.")]


@export.command()
def demonstrations(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")], out: Out
) -> None:
    """Write the requests and plans that a run has generated, those that are new, for `method.store` of a scenario."""
    ways = export_demonstrations(folder, out)
    rows = [(way.way, str(way.asked), str(way.made), str(way.kept)) for way in ways]
    _table(("way", "asked for", "generated", "new"), rows)
    for way in ways:
        for what, count in way.failed.items():
            print(f"{way.way} failed: {count} x {what}")
    print(f"written: {out}, {sum(way.kept for way in ways)} demonstrations")
    print(f"method: {{kind: interec, store: {out}}}")


@export.command()
def plans(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    out: Out,
    domains: Annotated[
        str | None, typer.Option(metavar="A,B", help="Take the runs whose data call an item so; by default all.")
    ] = None,
) -> None:
    """Write accepted plans with the prompts that asked for them, as lines of chat for fine-tuning."""
    named = [] if domains is None else [name.strip() for name in domains.split(",")]
    found = export_plans(folders, out, named)
    _table(("domain", "source", "samples"), [(*key, str(count)) for key, count in found.counts.items()])
    print(f"left out, as they came before: {found.repeated}")
    print(f"written: {out}, {sum(found.counts.values())} samples")


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table whose columns of numbers stand to the right."""
    table = Table(box=box.HORIZONTALS, show_edge=False, header_style="")
    for at, name in enumerate(columns):
        table.add_column(name, justify="right" if rows[0][at].isdecimal() else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
