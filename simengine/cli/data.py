"""The commands under data: published data as atomic files, and cross-domain data sets; progress goes to stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from simengine.errors import InputError
from simengine.scenario import datasets
from simengine.scenario.wording import counted

data = typer.Typer(help="Make data sets: published data as atomic files, cross-domain sets.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to make.")]
Domains = Annotated[str | None, typer.Option(metavar="A,B", help="The domains to use; by default all.")]


class Format(StrEnum):
    """Whose files can be converted."""

    amazon = "amazon"
    movielens = "movielens"
    steam = "steam"


@data.command()
def convert(
    format: Annotated[Format, typer.Argument(help="Whose files these are.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The folder of the files as published.")],
    out: Out,
    domains: Domains = None,
) -> None:
    """Write published data as atomic files (.inter, .item); memory does not grow with the number of reviews."""
    if domains is not None and format is not Format.amazon:
        raise InputError(f"{format} data have no domains", remedy="Leave out --domains.")
    said = {"format": format.value, "path": source, "domains": _names(domains)}
    with _watching() as watch:
        made = datasets.convert(said, out, watch)
    sizes = (counted(made.users, "user"), counted(made.items, "item"), counted(made.interactions, "interaction"))
    print(", ".join(sizes))
    for note in made.notes:
        print(f"note: {note}")
    print(f"data: {{format: atomic, path: {made.folder}}}")


@data.command("cross-domain")
def cross_domain(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Amazon reviews, or atomic files whose items have domains.")
    ],
    out: Out,
    domains: Domains = None,
    min_rating: Annotated[float, typer.Option(help="The least rating that is kept.")] = 4.0,
    since: Annotated[str, typer.Option(metavar="DATE", help="The first day (UTC).")] = "2021-10-01",
    until: Annotated[str, typer.Option(metavar="DATE", help="The last day (UTC).")] = "2022-03-31",
    min_domains: Annotated[int, typer.Option(help="In how many domains a user is active at least.")] = 2,
    min_interactions: Annotated[int, typer.Option(help="How many interactions a user has at least.")] = 10,
    users: Annotated[int, typer.Option(help="How many users are drawn by lot.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of the lot.")] = 0,
    ratio: Annotated[str, typer.Option(metavar="A:B:C", help="Training, validation, test.")] = "8:1:1",
    split_by: Annotated[str, typer.Option(metavar="user|timeline", help="Split each user's own, or all.")] = "user",
) -> None:
    """Build a cross-domain data set as AgentCF++ did, and say what each step kept; the defaults are the paper's."""
    said = {
        "domains": _names(domains),
        "min_rating": min_rating,
        "since": since,
        "until": until,
        "min_domains": min_domains,
        "min_interactions": min_interactions,
        "users": users,
        "seed": seed,
        "split": {"ratio": _shares(ratio), "by": split_by},
    }
    with _watching() as watch:
        steps, notes = datasets.cross_domain(source, out, said, watch)
    table = Table(box=box.HORIZONTALS, show_edge=False, header_style="")
    for name in ("kept", "users", "items", "interactions"):
        table.add_column(name, justify="left" if name == "kept" else "right")
    for step in steps:
        table.add_row(step.step, f"{step.users}", f"{step.items}", f"{step.interactions}")
    Console().print(table)
    for note in notes:
        print(f"note: {note}")
    print(f"written: {out}; a scenario can say `extends: {out / 'data.yaml'}`")


def _names(listed: str | None) -> tuple[str, ...] | None:
    return None if listed is None else tuple(name.strip() for name in listed.split(","))


def _shares(ratio: str) -> tuple[float, ...]:
    """``8:1:1`` as shares that add up to 1."""
    try:
        parts = [float(part) for part in ratio.split(":")]
        return tuple(part / sum(parts) for part in parts)
    except (ValueError, ZeroDivisionError):
        raise InputError(
            "this is no ratio", remedy="Write it as 8:1:1: training, validation, test.", option="--ratio", value=ratio
        ) from None


@contextmanager
def _watching() -> Iterator[datasets.Watch]:
    """A bar for each file on stderr, with the rows found so far."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, TaskID] = {}

    def watch(now: datasets.Reading) -> None:
        if not tasks:
            progress.start()
        if now.file not in tasks:
            tasks[now.file] = progress.add_task(Path(now.file).name, total=now.total, rows=0)
        progress.update(tasks[now.file], completed=now.done, rows=now.rows)

    try:
        yield watch
    finally:
        if tasks:
            progress.stop()
