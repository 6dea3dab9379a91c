"""The plan as a reply: how it is written, and how it is read from what a model says, prose and fences left aside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from simengine.llm.replies import Unreadable
from simengine.llm.replies.clean import first_words, without_reasoning
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.plan import Plan, Written, check

_OPENER = re.compile(r"\{\s*(?=[\"'}])|\[\s*(?=\{)")
_CUT_SHORT = ("Unterminated string", "Invalid \\u")  # what the decoder says of a text that ends inside a string
_NO_LETTER = re.compile(r"[\W_]+")
_STEPS = ("steps", "plan")
_TOOL = ("tool", "name", "toolname", "action")
_INPUT = ("input", "toolinput", "actioninput", "arguments", "args", "parameters")


def write(plan: Plan) -> str:
    """The reply in the format asked for."""
    steps = [{"tool": step.tool, "input": json.loads(step.input)} for step in plan.steps]
    return json.dumps({"thought": plan.thought, "steps": steps}, ensure_ascii=False)


def read(reply: str) -> Plan:
    """The checked plan of a reply.

    It is the first object that has ``steps``, wherever it stands, or the first list of steps. Raises
    :class:`Unreadable` where there is none (``malformed``, ``truncated``, ``incomplete``, ``empty``), or where several
    say different things (``repeated``); and :class:`Fault` where there is one that is not to be carried out.
    """
    written = _written(without_reasoning(reply))
    return check(written.thought, written.steps)


def fault_of(error: Unreadable | Fault) -> Fault:
    """What the tracker is told of a reply that gave no plan."""
    return error if isinstance(error, Fault) else Fault("unreadable", error.detail)


class _Found(NamedTuple):
    thought: str
    steps: tuple[Written, ...]


def _written(answer: str) -> _Found:
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once)  # models put line breaks into their strings
    at, found, broken = 0, None, None
    while (opener := _OPENER.search(answer, at)) is not None:
        at = opener.end()  # a plan may stand inside something else
        try:
            value, end = decoder.raw_decode(answer, opener.start())
        except json.JSONDecodeError as error:
            broken = broken or _broken(answer, error)
            if broken.reason == "truncated":  # what is inside may be a part of what was to follow
                break
        except Unreadable:
            raise
        except (ValueError, RecursionError):  # a number of thousands of digits, brackets a thousand deep
            broken = Unreadable("malformed", f"the JSON cannot be read: {first_words(answer)}")
            break
        else:
            plan = _plan(value)
            if plan is not None:
                if found is not None and plan != found:
                    raise Unreadable("repeated", "the reply holds several plans that are different")
                at, found = end, plan
    if found is None:
        raise broken or Unreadable("incomplete", f"there is no JSON object with steps in {first_words(answer)}")
    return found


def _plan(value: Any) -> _Found | None:
    """The plan that a value is; none where it is something else."""
    if isinstance(value, Mapping):
        fields = _folded(value)
        steps = next((fields[name] for name in _STEPS if isinstance(fields.get(name), list)), None)
        thought = fields.get("thought", "")
        if steps is None:
            return None
        return _Found(thought if isinstance(thought, str) else "", tuple(map(_one, steps)))
    steps = tuple(map(_one, value))
    return _Found("", steps) if any(step.tool is not None for step in steps) else None


def _one(entry: Any) -> Written:
    if not isinstance(entry, Mapping):
        return Written(None)
    fields = _folded(entry)
    tool, given = (next((fields[it] for it in names if it in fields), None) for names in (_TOOL, _INPUT))
    return Written(tool, given)


def _folded(value: Mapping[str, Any]) -> dict[str, Any]:
    return {_NO_LETTER.sub("", name).casefold(): it for name, it in value.items()}


def _broken(answer: str, error: json.JSONDecodeError) -> Unreadable:
    if error.pos >= len(answer.rstrip()) or error.msg.startswith(_CUT_SHORT):
        return Unreadable("truncated", "the JSON ends before it is closed")
    return Unreadable("malformed", f"the JSON cannot be read ({error.msg} at character {error.pos})")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; a name that comes again with another value makes it unreadable."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made and made[name] != value:
            raise Unreadable("repeated", f"the field {name!r} comes several times, with different values")
        made[name] = value
    return made
