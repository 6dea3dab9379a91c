"""The command trace: prints the story of a run, an event, an agent, an item, a group, a preference, or of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from simengine.cli import grouped, stories, talks, told
from simengine.errors import InputError
from simengine.runlog import EventLine
from simengine.runlog.trace import Trace, records
from simengine.scenario.asked import Asked, asked
from simengine.scenario.loading import open_trace
from simengine.scenario.wording import counted


def _of(metavar: str, told: str) -> Any:
    return typer.Option(metavar=metavar, help=told)


def _flag(name: str, told: str) -> Any:
    return typer.Option(name, help=told)


def trace(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    event: Annotated[str | None, _of("ID", "One event in full, and what depends on it.")] = None,
    agent: Annotated[str | None, _of("AGENT", "The memory of an agent (user:12, or 12): what changed; why.")] = None,
    message: Annotated[
        str | None, _of("ID", "The causes of a message, or of a memory such as user:12/short@3.")
    ] = None,
    preference: Annotated[
        str | None, _of("TEXT", "Who came to hold it, and how; with --agent how that one did.")
    ] = None,
    item: Annotated[str | None, _of("ITEM", "The memory of an item, by id or title; who read and wrote it.")] = None,
    why: Annotated[str | None, _of("AGENT@TIME", "What an agent knew then, from where, and its last choice.")] = None,
    group: Annotated[str | None, _of("NAME", "An interest group: its members, re-formations, and views.")] = None,
    talk: Annotated[str | None, _of("AGENT", "A talk, of a user or at a venue: words, tools, verdicts.")] = None,
    calls: Annotated[bool, _flag("--calls", "With --event: the prompt and the answer of each call.")] = False,
    ids: Annotated[bool, _flag("--ids", "Put its id, as --message takes it, before each message.")] = False,
    as_json: Annotated[bool, _flag("--json", "Print JSON: one object a line for each block.")] = False,
) -> None:
    """Tell what happened in a run, and where each sentence came from."""
    _check_one(event, message, preference, item, why, group, talk, agent if preference is None else None)
    if calls and event is None:
        raise InputError("--calls shows those of one event", remedy="add --event ID")
    traced, unknown = open_trace(folder)
    if event is not None:
        line = traced.event(event)
        parts = _event(traced, line, asked(folder, line) if calls else None, ids)
    elif preference is not None:
        parts = stories.of_preference(folder, traced, preference, agent)
    elif agent is not None:
        parts = (told.version(traced, memory) for memory in traced.memories(stories.find_agent(traced, agent)))
    elif message is not None:
        parts = _causes(traced, message)
    elif item is not None:
        parts = stories.of_item(folder, traced, item)
    elif why is not None:
        parts = stories.of_why(traced, why)
    elif group is not None:
        parts = grouped.of_group(traced, group)
    elif talk is not None:
        parts = talks.of_talk(traced, talk)
    else:
        parts = (told.Part(line, _story(line, told.SHORT, ids)) for line in traced)
    _print(parts, as_json)
    if not as_json:
        _print_notes(traced, unknown)


def _check_one(*options: str | None) -> None:
    if sum(option is not None for option in options) > 1:
        raise InputError(
            "say one of --event, --agent, --message, --preference, --item, --why, --group and --talk",
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
        notes.print(f"note: the run is not finished; its log holds {counted(len(traced), 'event')}")
    if unknown:
        notes.print(f"note: what agents started with (version 0) is not in the log and is not known here: {unknown}")


def _story(line: EventLine, width: int, ids: bool) -> Iterator[Text]:
    """An event: what was known beforehand, what was said (with ``ids``), what was remembered, what failed."""
    child = f", child of {line.parent}" if line.parent else ""
    yield Text.assemble((line.event, "bold"), f"  {line.kind} at {line.time}{child}")
    for edge in line.edges:
        yield Text(f"  {edge.kind}: {edge.user} - {edge.node}")
    silent = [record for record in records(line) if not record.slot and record.value is None]
    if silent:
        named = f" ({', '.join(said.name for said in silent)})" if ids else ""
        yield Text(f"  shown{named}: {', '.join(dict.fromkeys(cause for said in silent for cause in said.because))}")
    for record in records(line):
        if record.slot:
            yield Text.assemble("  ", (record.name, "cyan"), f" {told.cut(record.text, width)}")
        elif record.value is not None:
            name = f"{record.name}  " if ids else ""
            body = told.spoken(record) if width == told.SHORT else record.text
            yield Text(f"  {name}{record.agent} -> {record.recipient}, {record.kind}: {told.cut(body, width)}")
    for unit, outcome in line.units.items():
        if outcome != "ok":
            yield Text(f"  failed: {unit or 'the event'}: {outcome}", style="red")


def _event(traced: Trace, line: EventLine, calls: Sequence[Asked] | None, ids: bool) -> Iterator[told.Part]:
    """An event in full; where ``calls`` are given, with their prompts and answers."""
    dependants = list(traced.cone(line.event))
    lines = [*_story(line, told.LONG, ids)]
    if calls is None:
        lines += [Text(f"  call {call}: {stamp}") for call, stamp in line.calls.items()]
    for call in calls or ():
        lines += _call(call)
    lines += [Text(f"  spawns {child.id} at {child.time}") for child in line.spawns]
    shown = ", ".join(found.event for found in dependants[:5]) + ", ..." * (len(dependants) > 5)
    lines.append(Text(f"  later events that depend on it: {len(dependants)}{f' ({shown})' if dependants else ''}"))
    data = {"event": line, "dependants": dependants} | ({} if calls is None else {"calls": calls})
    yield told.Part(data, lines)


def _call(call: Asked) -> Iterator[Text]:
    """A call: who said what to the model, and what came back, in lines as they are."""
    yield Text.assemble("  call ", (call.call, "bold"), f", model {call.model}" * bool(call.model))
    told_by = [(message.role, message.content) for message in call.prompt]
    for who, text in (*told_by, ("no answer" if call.failed else "answer", call.answer)):
        yield Text(f"    {who}:", style="cyan")
        yield from (Text(f"      {row}".rstrip()) for row in text.splitlines())


def _causes(traced: Trace, name: str) -> Iterator[told.Part]:
    tree = traced.causes(name)
    origins = told.origins(traced, tree.record) if tree.record.slot else []
    lines = [*told.tree(tree), *told.came_from(origins)]
    yield told.Part({"causes": tree, "origins": origins}, lines)
