"""The command trace: prints the story of a run, an event, an agent, an item, a group, a preference, or of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from simengine.cli import grouped, stories, told
from simengine.errors import InputError
from simengine.runlog import EventLine
from simengine.runlog.trace import Trace, records
from simengine.scenario.loading import open_trace


def trace(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    event: Annotated[str | None, typer.Option(metavar="ID", help="One event in full, and what depends on it.")] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="AGENT", help="The memory of an agent, as user:12: what changed and why.")
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The causes of a message, or of a memory version such as user:12/short@3."),
    ] = None,
    preference: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Who came to hold it, and how; with --agent only how that one did."),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="The memory of an item, by id or title, and who read and wrote it."),
    ] = None,
    why: Annotated[
        str | None,
        typer.Option(metavar="AGENT@TIME", help="What an agent knew at a time, from where, and its last choice."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="An interest group: its members, re-formations, and views.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a line for each block.")] = False,
) -> None:
    """Tell the story of a run step by step, and where each sentence of a memory came from."""
    _check_one(event, message, preference, item, why, group, agent if preference is None else None)
    traced, unknown = open_trace(folder)
    if event is not None:
        parts = _event(traced, event)
    elif preference is not None:
        parts = stories.of_preference(folder, traced, preference, agent)
    elif agent is not None:
        parts = (told.version(traced, memory) for memory in traced.memories(agent))
    elif message is not None:
        parts = _causes(traced, message)
    elif item is not None:
        parts = stories.of_item(folder, traced, item)
    elif why is not None:
        parts = stories.of_why(traced, why)
    elif group is not None:
        parts = grouped.of_group(traced, group)
    else:
        parts = (told.Part(line, _story(line, told.SHORT)) for line in traced)
    _print(parts, as_json)
    if not as_json:
        _print_notes(traced, unknown)


def _check_one(*options: str | None) -> None:
    if sum(option is not None for option in options) > 1:
        raise InputError(
            "say one of --event, --agent, --message, --preference, --item, --why and --group",
            remedy="or none, for the whole run; only --preference and --agent go together",
        )


def _print(parts: Iterable[told.Part], as_json: bool) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    for part in parts:
        if as_json:
            console.print(Text(msgspec.json.encode(part.data).decode()))
        else:
            console.print(Text("\n").join(part.lines), end="\n\n")


def _print_notes(traced: Trace, unknown: str) -> None:
    notes = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    if not traced.finished:
        notes.print(f"note: the run is not finished; its log holds {len(traced)} events")
    if unknown:
        notes.print(f"note: what agents started with (version 0) is not in the log and is not known here: {unknown}")


def _story(line: EventLine, width: int) -> Iterator[Text]:
    """An event: what was known beforehand, what was said, what was remembered, what failed."""
    child = f", child of {line.parent}" if line.parent else ""
    yield Text.assemble((line.event, "bold"), f"  {line.kind} at {line.time}{child}")
    for edge in line.edges:
        yield Text(f"  {edge.kind}: {edge.user} - {edge.node}")
    silent = [record for record in records(line) if not record.slot and record.value is None]
    if silent:
        yield Text(f"  shown: {', '.join(dict.fromkeys(cause for said in silent for cause in said.because))}")
    for record in records(line):
        if record.slot:
            yield Text.assemble("  ", (record.name, "cyan"), f" {told.cut(record.text, width)}")
        elif record.value is not None:
            yield Text(f"  {record.agent} -> {record.recipient}, {record.kind}: {told.cut(record.text, width)}")
    for unit, outcome in line.units.items():
        if outcome != "ok":
            yield Text(f"  failed: {unit or 'the event'}: {outcome}", style="red")


def _event(traced: Trace, name: str) -> Iterator[told.Part]:
    line = traced.event(name)
    dependants = list(traced.cone(name))
    lines = [*_story(line, told.LONG)]
    lines += [Text(f"  call {call}: {stamp}") for call, stamp in line.calls.items()]
    lines += [Text(f"  spawns {child.id} at {child.time}") for child in line.spawns]
    shown = ", ".join(found.event for found in dependants[:5]) + ", ..." * (len(dependants) > 5)
    lines.append(Text(f"  later events that depend on it: {len(dependants)}{f' ({shown})' if dependants else ''}"))
    yield told.Part({"event": line, "dependants": dependants}, lines)


def _causes(traced: Trace, name: str) -> Iterator[told.Part]:
    tree = traced.causes(name)
    origins = told.origins(traced, tree.record) if tree.record.slot else []
    lines = [*told.tree(tree), *told.came_from(origins)]
    yield told.Part({"causes": tree, "origins": origins}, lines)
