"""The plan as a reply: how it is asked for, how it is written, and how it is read from what a model says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from simengine.llm.replies import Unreadable
from simengine.llm.replies.clean import first_words, without_reasoning
from simengine.llm.replies.lines import one_line
from simengine.llm.replies.objects import TEXT, TEXTS, Form, folded, strict
from simengine.llm.replies.scan import Scan, scan
from simengine.methods.interec.plan import Plan, Written, check
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.tools import TOOLS

_STEPS = ("steps", "plan")
_TOOL = ("tool", "name", "toolname", "action")
_INPUT = ("input", "toolinput", "actioninput", "arguments", "args", "parameters")


def write(plan: Plan, profile: Profile | None = None) -> str:
    """The reply in the format asked for; plans that are only shown go without a profile."""
    steps = [{"tool": step.tool, "input": json.loads(step.input)} for step in plan.steps]
    known = {} if profile is None else {"profile": msgspec.to_builtins(profile)}
    return json.dumps({"thought": plan.thought, **known, "steps": steps}, ensure_ascii=False)


def read(reply: str) -> Plan:
    """The checked plan of a reply. Raises like :func:`scanned` and :func:`plan_of`."""
    return plan_of(scanned(reply))


def scanned(reply: str) -> Scan:
    """The JSON of a reply, prose and fences left aside. Raises :class:`Unreadable` where there is none."""
    answer = without_reasoning(reply)
    found = scan(answer, lists=True)
    if found is None:
        raise Unreadable("incomplete", f"there is no JSON object with steps in {first_words(answer)}")
    return found


def plan_of(found: Scan) -> Plan:
    """The checked plan that is in a reply's JSON.

    It is the first object that has ``steps``, wherever it stands, or the first list of steps. Raises
    :class:`Unreadable` where there is none (``malformed``, ``truncated``, ``incomplete``), or where several say
    different things (``repeated``); and :class:`Fault` where there is one that is not to be carried out.
    """
    written = found.one(_plan, "no JSON object has steps")
    return check(written.thought, written.steps)


class _Found(NamedTuple):
    thought: str
    steps: tuple[Written, ...]


def _plan(value: Any) -> _Found | None:
    """The plan that a value is; none where it is something else."""
    if isinstance(value, Mapping):
        fields = folded(value)
        steps = next((fields[name] for name in _STEPS if isinstance(fields.get(name), list)), None)
        thought = fields.get("thought", "")
        if steps is None:
            return None
        return _Found(_kept(thought) if isinstance(thought, str) else "", tuple(map(_one, steps)))
    steps = tuple(map(_one, value))
    return _Found("", steps) if any(step.tool is not None for step in steps) else None


def _kept(thought: str) -> str:
    # JSON can spell lone surrogates, which no file can hold
    return one_line(thought.encode("utf-8", "replace").decode())


def _one(entry: Any) -> Written:
    if not isinstance(entry, Mapping):
        return Written(None)
    fields = folded(entry)
    tool, given = (next((fields[it] for it in names if it in fields), None) for names in (_TOOL, _INPUT))
    return Written(tool, given)


def _form() -> Form:
    """What a planner is held to where a server can hold it: a profile, and steps whose inputs are those of the tools.

    Servers do not hold a tool to its own input, since they take no alternatives that begin with the same field; nor do
    they all know bounds of numbers and lengths. Both is left to the check of the plan.
    """
    inputs: list[dict[str, Any]] = []
    for tool in TOOLS.values():
        given = _held(tool.given.model_json_schema())
        inputs += [] if given in inputs else [given]
    step = strict({"tool": {**TEXT, "enum": list(TOOLS)}, "input": {"anyOf": inputs}})
    profile = strict(dict.fromkeys(Profile.__struct_fields__, TEXTS))
    return Form(strict({"thought": TEXT, "profile": profile, "steps": {"type": "array", "items": step}}))


def _held(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The types and the permitted values of a schema, and nothing else of it."""
    if "properties" in schema:
        return strict({name: _held(field) for name, field in schema["properties"].items()})
    kept = {key: schema[key] for key in ("type", "enum") if key in schema}
    return {**kept, "items": _held(schema["items"])} if "items" in schema else kept


FORM = _form()
"""The plan in JSON. The prompts ask for it themselves, for answers in text and in JSON alike."""
