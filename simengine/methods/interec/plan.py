"""The plan: which tools to use, in which order and with what; read from a reply, checked, then carried out.

A reply holds one JSON object, ``{"thought": ..., "steps": [{"tool": ..., "input": {...}}, ...]}``; a turn that needs no
tool has no steps. A step may refer to the rows of an earlier look-up or fetch: ``$1.title`` in a list of titles stands
for all titles that step 1 gave, ``$1.release_date`` in a query for the values, written as SQL literals. Everything
is checked before anything runs, and only tools, typed inputs and values in tokens ever come of what the reply says.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic import ValidationError

from simengine.methods.interec.bus import Bus, Record
from simengine.methods.interec.columns import Value
from simengine.methods.interec.faults import Fault, quoted
from simengine.methods.interec.lexer import REFERENCE, filled, references
from simengine.methods.interec.results import Fetched, Result, Rows
from simengine.methods.interec.tools import TOOLS, Fetch, Input, Shop

MAX_STEPS = 10
"""Steps that a plan may have, a fetch that is appended not counted."""

MAX_VALUES = 20
"""Values that a reference stands for, at most: the first ones."""

_NO_LETTER = re.compile(r"[\W_]+")
_TOOL_NAMES = {_NO_LETTER.sub("", name): name for name in TOOLS}


class Step(msgspec.Struct, frozen=True):
    """One use of a tool; ``input`` is its checked input as JSON."""

    tool: str
    input: str


class Plan(msgspec.Struct, frozen=True):
    """A checked plan. Without steps, the reply is written straight away."""

    thought: str = ""
    steps: tuple[Step, ...] = ()


class Written(msgspec.Struct, frozen=True):
    """A step as a model wrote it, of which nothing is sure."""

    tool: Any
    input: Any = None


def check(thought: str, written: Sequence[Written]) -> Plan:
    """The plan that these steps make, with a fetch behind them where one narrows the candidates and none follows.

    Names of tools are taken whatever their case and underscores. An input that is no object is meant for the tool's
    one field. Raises :class:`Fault` with ``too_many_steps``, ``unknown_tool``, ``wrong_input``, ``unknown_reference``,
    ``later_reference``, ``cycle``, or what a query's text is refused for.
    """
    if len(written) > MAX_STEPS:
        raise Fault("too_many_steps", f"the plan has {len(written)} steps, of {MAX_STEPS} at most")
    steps = tuple(_step(number, it) for number, it in enumerate(written, 1))
    _check_references(steps, [_referred(number, step) for number, step in enumerate(steps, 1)])
    tools = [step.tool for step in steps]
    narrowed = max((at for at, tool in enumerate(tools) if TOOLS[tool].narrows), default=-1)
    if narrowed >= 0 and "fetch" not in tools[narrowed:]:
        steps = (*steps, Step("fetch", Fetch().model_dump_json()))
    return Plan(thought, steps)


def execute(plan: Plan, bus: Bus, shop: Shop, draws: random.Random) -> tuple[Record, ...]:
    """Use the tools in the order of the plan; one record each, which the bus tracks.

    A step that fails leaves the candidates as they are, and those behind it go on, but for what refers to it.
    ``draws`` decides which candidates are kept as a sample.
    """
    tables: dict[int, Rows] = {}
    return tuple(_executed(number, step, tables, bus, shop, draws) for number, step in enumerate(plan.steps, 1))


def refuse(reply: str, fault: Fault, bus: Bus) -> Record:
    """Track that a plan was refused, so that whoever plans again can see why."""
    return bus.failed(0, "plan", json.dumps(reply), fault)


def _step(number: int, written: Written) -> Step:
    name = _TOOL_NAMES.get(_NO_LETTER.sub("", written.tool).casefold()) if isinstance(written.tool, str) else None
    if name is None:
        known = ", ".join(TOOLS)
        raise Fault("unknown_tool", f"step {number}: there is no tool {quoted(str(written.tool))}; there are {known}")
    raw = written.input
    if raw is None:
        raw = {}
    elif not isinstance(raw, Mapping):
        raw = {TOOLS[name].field: raw}
    return Step(name, _input(number, name, raw).model_dump_json())


def _input(number: int, tool: str, raw: Mapping[str, Any]) -> Input:
    """The typed input; by way of JSON, where a list is a list and nothing else is turned into anything."""
    try:
        return TOOLS[tool].given.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise Fault("wrong_input", f"step {number}, {tool} {quoted(field)}: {first['msg']}") from None


def _parsed(step: Step) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(step.input)
    return fields


def _referred(number: int, step: Step) -> list[tuple[int, str]]:
    """The steps and columns that a step refers to."""
    found: list[tuple[int, str]] = []
    for name, value in _parsed(step).items():
        if name == "sql":
            try:
                found += references(value)
            except Fault as fault:
                raise Fault(fault.code, f"step {number}: {fault.detail}") from None
        elif isinstance(value, list):
            matches = map(REFERENCE.fullmatch, value)
            found += [(int(it[1]), it[2]) for it in matches if it]
    return found


def _check_references(steps: Sequence[Step], referred: Sequence[Sequence[tuple[int, str]]]) -> None:
    count = len(steps)
    targets = [{target for target, _ in found if 1 <= target <= count} for found in referred]
    for number, found in enumerate(referred, 1):
        for target, _ in found:
            if not 1 <= target <= count:
                raise Fault("unknown_reference", f"step {number} refers to step {target}, of {count}")
            if number in _reached(target, targets):
                raise Fault("cycle", f"steps {number} and {target} refer to one another")
            if target > number:
                raise Fault("later_reference", f"step {number} refers to step {target}, which comes later")
            if not TOOLS[steps[target - 1].tool].has_rows:
                tool = steps[target - 1].tool
                raise Fault("unknown_reference", f"step {number} refers to step {target}, and {tool} gives no rows")


def _reached(start: int, targets: Sequence[set[int]]) -> set[int]:
    """The steps that a step refers to, directly or through others, and itself."""
    reached, ahead = {start}, [start]
    while ahead:
        new = targets[ahead.pop() - 1] - reached
        reached |= new
        ahead += sorted(new)
    return reached


def _executed(number: int, step: Step, tables: dict[int, Rows], bus: Bus, shop: Shop, draws: random.Random) -> Record:
    text = step.input
    try:
        given = _input(number, step.tool, _with_values(_parsed(step), tables))
        text = given.model_dump_json()
        result, after = TOOLS[step.tool].run(given, bus.candidates, shop, draws)
    except Fault as fault:
        return bus.failed(number, step.tool, text, fault)
    table = _rows(result)
    if table is not None:
        tables[number] = table
    return bus.done(number, step.tool, text, result, after)


def _rows(result: Result) -> Rows | None:
    """What later steps may refer to."""
    if isinstance(result, Fetched):
        return Rows(("id", "title"), tuple((it.id, it.title) for it in result.items))
    return result if isinstance(result, Rows) else None


def _with_values(fields: dict[str, Any], tables: Mapping[int, Rows]) -> dict[str, Any]:
    """The input with its references replaced by what they stand for."""

    def values(step: int, column: str) -> list[Value]:
        return _column(step, column, tables)

    def expanded(titles: Sequence[str]) -> list[str]:
        made: list[str] = []
        for title in titles:
            found = REFERENCE.fullmatch(title)
            made += [str(it) for it in values(int(found[1]), found[2])] if found else [title]
        return made

    lists = {name: expanded(value) for name, value in fields.items() if isinstance(value, list)}
    texts = {name: filled(value, values) for name, value in fields.items() if name == "sql" and references(value)}
    return {**fields, **lists, **texts}


def _column(step: int, column: str, tables: Mapping[int, Rows]) -> list[Value]:
    if step not in tables:
        raise Fault("empty_reference", f"step {step} has failed, so ${step}.{column} stands for nothing")
    names = [name.lower() for name in tables[step].columns]
    if column.lower() not in names:
        raise Fault("unknown_reference", f"step {step} gives no {column}; it gives {', '.join(names)}")
    at = names.index(column.lower())
    found = list(dict.fromkeys(row[at] for row in tables[step].rows if row[at] is not None))
    if not found:
        raise Fault("empty_reference", f"step {step} gives nothing, so ${step}.{column} stands for nothing")
    return found[:MAX_VALUES]
