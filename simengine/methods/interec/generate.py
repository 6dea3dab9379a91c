"""How requests with their plans are generated (sections 3.3 and 3.5, appendix B.4): ways, tools, what is asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence

from simengine.errors import UnitFailed
from simengine.llm.prompts import Slot
from simengine.llm.replies.headed import REQUEST
from simengine.llm.replies.lines import one_line
from simengine.llm.replies.objects import TEXTS, Form, strict
from simengine.llm.task import Json, Slots, Task
from simengine.methods.interec import dialogues
from simengine.methods.interec.plan import Plan
from simengine.methods.interec.reply import FORM
from simengine.methods.interec.tasks import Planned, prompt_text

INPUT_FIRST, OUTPUT_FIRST, DIALOGUES = "input_first", "output_first", "dialogues"
WAYS = (INPUT_FIRST, OUTPUT_FIRST, DIALOGUES)
"""First a request like others and then its plan; first the tools and then a request that takes them; a talk with the
plan for its last message."""
DEMONSTRATION = "demonstration"
"""The kind of the message that holds a request with its plan."""
NO_TOOLS = "none"
"""What a prompt says instead of tools where none are to be used."""

COMBINATIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("look_up",),
    ("rank", "fetch"),
    ("hard_filter", "fetch"),
    ("hard_filter", "rank", "fetch"),
    ("soft_filter", "fetch"),
    ("soft_filter", "rank", "fetch"),
    ("hard_filter", "soft_filter", "fetch"),
    ("hard_filter", "soft_filter", "rank", "fetch"),
    ("store", "rank", "fetch"),
    ("store", "hard_filter", "fetch"),
    ("store", "hard_filter", "rank", "fetch"),
    ("store", "soft_filter", "rank", "fetch"),
    ("look_up", "hard_filter", "fetch"),
    ("look_up", "hard_filter", "rank", "fetch"),
    ("look_up", "soft_filter", "rank", "fetch"),
)
"""The sets of tools that serve some sensible request, in the usual order of their use.

Whatever narrows the candidates is fetched in the end; a list that is only stored and fetched is what the user has said;
and a look-up beside a ranking alone tells it nothing.
"""


def asking(
    request: str, dialogue: Sequence[str], columns: Sequence[str], demonstrations: Sequence[str]
) -> dict[str, Slot]:
    """What the planner is asked by for a request behind a dialogue, at its first attempt, nothing known of the user."""
    shown = {"dialogue": tuple(dialogue), "columns": tuple(columns), "demonstrations": tuple(demonstrations)}
    return {**shown, "request": request, "profile": "", "advice": "", "tracker": ()}


def require(planned: Planned, event: str, tools: Sequence[str] | None = None) -> Plan:
    """The plan, if it can be carried out and, where ``tools`` are given, takes these and no others, in any order.

    Raises :class:`UnitFailed` with the fault's code, or ``other_tools``.
    """
    if planned.fault is not None:
        raise UnitFailed(planned.fault.detail, reason=planned.fault.code, event=event)
    used = sorted({step.tool for step in planned.plan.steps})
    if tools is not None and used != sorted(tools):
        wanted = ", ".join(tools) or NO_TOOLS
        raise UnitFailed(
            f"the plan takes {', '.join(used) or NO_TOOLS} for a request that was to take {wanted}",
            reason="other_tools",
            event=event,
        )
    return planned.plan


def _read(text: str, slots: Slots) -> str:
    return one_line(REQUEST.read(text, prompt_text(slots)))


def _read_json(text: str, slots: Slots) -> str:
    return one_line(REQUEST.read_json(text, prompt_text(slots)))


_TALK = Form(strict({"dialogue": TEXTS, **json.loads(FORM.schema)["properties"]}))

REQUEST_LIKE = Task("demonstrate.input_first", "interec.input_first", _read, Json(REQUEST.json, _read_json))
REQUEST_FOR = Task("demonstrate.output_first", "interec.output_first", _read, Json(REQUEST.json, _read_json))
TALK = Task("demonstrate.dialogues", "interec.dialogues", dialogues.read, Json(_TALK, dialogues.read))
