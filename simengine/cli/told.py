"""Turns records of a log, their changes, their causes and the origins of their phrases into lines for reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from simengine.runlog.origins import Origin, find_origins
from simengine.runlog.texts import find_changes
from simengine.runlog.trace import Cause, Record, Trace

SHORT = 100
"""Characters of a text in the story of a whole run."""
LONG = 1_000_000
"""More characters than any text has."""
_STYLES = {"+": "green", "-": "red strike", "=": "dim"}


class Part:
    """One block of the output: as data for ``--json``, and as lines for reading."""

    def __init__(self, data: Any, lines: Iterable[Text]) -> None:
        self.data = data
        self.lines = lines


def version(traced: Trace, memory: Record) -> Part:
    """A memory version; one of a slot that keeps all entries shows the entry, any other what changed and from where."""
    earlier = traced.before(memory)
    changes = find_changes(earlier.text, memory.text) if earlier is not None else []
    new = [origin for origin in origins(traced, memory) if origin.since == memory.name]
    lines = [*head(memory), *changed(memory, earlier), *because(traced, memory), *came_from(new)]
    return Part({"memory": memory, "changes": [change._asdict() for change in changes], "new": new}, lines)


def origins(traced: Trace, memory: Record) -> list[Origin]:
    """An entry that is only kept needs no origin: its cause is the version that it keeps."""
    return [] if memory.append or memory.event is None else find_origins(traced, memory.name)


def tree(node: Cause, first: str = "", rest: str = "") -> Iterator[Text]:
    """A record and all that led to it; ``first`` stands before its own line, ``rest`` before those of its causes."""
    record = node.record
    if record.slot:
        name = Text.assemble((record.name, "cyan"))
    else:
        name = Text(f"{record.name}  {record.agent} -> {record.recipient}, {record.kind}")
    told = _unknown(record) or ("(above)" if node.again else record.text)
    yield Text.assemble(first, name, f": {cut(told, LONG)}" * bool(told))
    for at, cause in enumerate(node.causes):
        last = at == len(node.causes) - 1
        yield from tree(cause, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def head(memory: Record) -> Iterator[Text]:
    """The name of a memory version, and where it was written."""
    where = f"  {memory.event}, time {memory.time}" if memory.event is not None else "  before the run"
    yield Text.assemble((memory.name, "bold cyan"), where, f", {memory.unit}" * bool(memory.unit))


def changed(memory: Record, earlier: Record | None) -> Iterator[Text]:
    """The new text with its changes marked, in colours on a terminal; off it a line for each run of words."""
    if earlier is None:
        yield Text(f"  {_unknown(memory) or cut(memory.text, LONG)}")
        return
    changes = [change for change in find_changes(earlier.text, memory.text) if change.sign != "="]
    if not changes:
        yield Text("  (unchanged)", style="dim")
    for change in changes:
        yield Text(f"  {change.sign} {change.text}", style=_STYLES[change.sign])


def because(traced: Trace, memory: Record) -> Iterator[Text]:
    """What led to a memory version: messages with the beginning of what they say, memories by their names."""
    causes = [traced.record(name) for name in memory.because]
    for said in (cause for cause in causes if not cause.slot):
        yield Text(f"  because {said.name}: {cut(said.text, SHORT)}", style="dim")
    seen = ", ".join(cause.name for cause in causes if cause.slot)
    if seen:
        yield Text(f"  because {seen}", style="dim")


def came_from(origins: Iterable[Origin]) -> Iterator[Text]:
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


def spoken(message: Record) -> str:
    """What a message says: of a body that holds a text beside other data, the text."""
    body = message.value
    return body["text"] if isinstance(body, dict) and isinstance(body.get("text"), str) else message.text


def cut(text: str, width: int) -> str:
    """A text on one line, not longer than that."""
    line = " / ".join(text.splitlines())
    return line if len(line) <= width else f"{line[: width - 1]}…"
