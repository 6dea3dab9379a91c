"""The command trace: prints the story of a run, of an event, of an agent's memory, or the causes of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from simengine.errors import InputError
from simengine.runlog import EventLine
from simengine.runlog.origins import Origin, find_origins
from simengine.runlog.texts import find_changes
from simengine.runlog.trace import Cause, Record, Trace, records
from simengine.scenario.loading import open_trace

_SHORT = 100  # characters of a text in the story of a whole run
_LONG = 1_000_000  # more than any text has
_STYLES = {"+": "green", "-": "red strike", "=": "dim"}


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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a line for a whole run.")] = False,
) -> None:
    """Tell the story of a run step by step, and where each sentence of a memory came from."""
    if sum(option is not None for option in (event, agent, message)) > 1:
        raise InputError("say one of --event, --agent and --message", remedy="or none, for the whole run")
    console = Console(soft_wrap=True, highlight=False, markup=False)
    traced, unknown = open_trace(folder)
    if event is not None:
        parts = _event(traced, event)
    elif agent is not None:
        parts = _agent(traced, agent)
    elif message is not None:
        parts = _causes(traced, message)
    else:
        parts = (_Part(line, _story(line, _SHORT)) for line in traced)
    for part in parts:
        if as_json:
            console.print(Text(msgspec.json.encode(part.data).decode()))
        else:
            console.print(Text("\n").join(part.lines), end="\n\n")
    if not as_json:
        _print_notes(traced, unknown)


class _Part:
    """One block of the output: as data for ``--json``, and as lines for reading."""

    def __init__(self, data: Any, lines: Iterable[Text]) -> None:
        self.data = data
        self.lines = lines


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
            yield Text.assemble("  ", (record.name, "cyan"), f" {_cut(record.text, width)}")
        elif record.value is not None:
            yield Text(f"  {record.agent} -> {record.recipient}, {record.kind}: {_cut(record.text, width)}")
    for unit, outcome in line.units.items():
        if outcome != "ok":
            yield Text(f"  failed: {unit or 'the event'}: {outcome}", style="red")


def _event(traced: Trace, name: str) -> Iterator[_Part]:
    line = traced.event(name)
    dependants = list(traced.cone(name))
    lines = [*_story(line, _LONG)]
    lines += [Text(f"  call {call}: {stamp}") for call, stamp in line.calls.items()]
    lines += [Text(f"  spawns {child.id} at {child.time}") for child in line.spawns]
    shown = ", ".join(found.event for found in dependants[:5]) + ", ..." * (len(dependants) > 5)
    lines.append(Text(f"  later events that depend on it: {len(dependants)}{f' ({shown})' if dependants else ''}"))
    yield _Part({"event": line, "dependants": dependants}, lines)


def _agent(traced: Trace, name: str) -> Iterator[_Part]:
    """Each version of each slot; a slot that keeps all entries shows the entry, any other what changed in it."""
    for memory in traced.memories(name):
        earlier = traced.before(memory)
        changes = find_changes(earlier.text, memory.text) if earlier is not None else []
        new = [origin for origin in _origins(traced, memory) if origin.since == memory.name]
        lines = [*_head(memory), *_changes(memory, earlier), *_because(traced, memory), *_came_from(new)]
        yield _Part({"memory": memory, "changes": [change._asdict() for change in changes], "new": new}, lines)


def _origins(traced: Trace, memory: Record) -> list[Origin]:
    """An entry that is only kept needs no origin: its cause is the version that it keeps."""
    return [] if memory.append or memory.event is None else find_origins(traced, memory.name)


def _causes(traced: Trace, name: str) -> Iterator[_Part]:
    tree = traced.causes(name)
    origins = _origins(traced, tree.record) if tree.record.slot else []
    lines = [*_tree(tree, "", ""), *_came_from(origins)]
    yield _Part({"causes": tree, "origins": origins}, lines)


def _tree(node: Cause, first: str, rest: str) -> Iterator[Text]:
    record = node.record
    if record.slot:
        head = Text.assemble((record.name, "cyan"))
    else:
        head = Text(f"{record.name}  {record.agent} -> {record.recipient}, {record.kind}")
    told = _unknown(record) or ("(above)" if node.again else record.text)
    yield Text.assemble(first, head, f": {_cut(told, _LONG)}" * bool(told))
    for at, cause in enumerate(node.causes):
        last = at == len(node.causes) - 1
        yield from _tree(cause, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _head(memory: Record) -> Iterator[Text]:
    where = f"  {memory.event}, time {memory.time}" if memory.event is not None else "  before the run"
    yield Text.assemble((memory.name, "bold cyan"), where, f", {memory.unit}" * bool(memory.unit))


def _changes(memory: Record, earlier: Record | None) -> Iterator[Text]:
    """The new text with its changes marked, in colours on a terminal; off it a line for each run of words."""
    if earlier is None:
        yield Text(f"  {_cut(memory.text, _LONG)}")
        return
    changes = [change for change in find_changes(earlier.text, memory.text) if change.sign != "="]
    if not changes:
        yield Text("  (unchanged)", style="dim")
    for change in changes:
        yield Text(f"  {change.sign} {change.text}", style=_STYLES[change.sign])


def _because(traced: Trace, memory: Record) -> Iterator[Text]:
    causes = [traced.record(name) for name in memory.because]
    for said in (cause for cause in causes if not cause.slot):
        yield Text(f"  because {said.name}: {_cut(said.text, _SHORT)}", style="dim")
    seen = ", ".join(cause.name for cause in causes if cause.slot)
    if seen:
        yield Text(f"  because {seen}", style="dim")


def _came_from(origins: Iterable[Origin]) -> Iterator[Text]:
    """The phrases, those of one label that came one way on one line."""
    together: dict[tuple[str, str], list[str]] = {}
    for origin in origins:
        together.setdefault((origin.label, _way(origin)), []).append(origin.phrase)
    for (label, way), phrases in together.items():
        yield Text.assemble("  from ", (way, "cyan"), f": {label}: " if label else ": ", ("; ".join(phrases), "bold"))


def _way(origin: Origin) -> str:
    """The records on a phrase's way, nearest first; what stayed in one memory is one step, named where it began."""
    steps: list[str] = []
    for name in reversed(origin.path[:-1]):
        memory = name.rpartition("@")[0]
        if steps and memory and steps[-1].rpartition("@")[0] == memory:
            steps[-1] = name
        else:
            steps.append(name)
    if origin.also:
        steps[-1:] = [" or ".join((*steps[-1:], *origin.also))]
    if origin.unknown:
        steps.append(f"perhaps {' or '.join(origin.unknown)}")
    return " <- ".join(steps) or "nothing before it"


def _unknown(record: Record) -> str:
    return "" if record.known else "(not known)"


def _cut(text: str, width: int) -> str:
    line = " / ".join(text.splitlines())
    return line if len(line) <= width else f"{line[: width - 1]}…"
