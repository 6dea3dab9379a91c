"""How an answer of InteRecAgent came about, attempt by attempt, read from the messages of its turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

from simengine.methods.interec.exchange import JUDGED, PLANNED, REPLIED


class Spoken(Protocol):
    """A message, of a log or under way."""

    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> Any: ...


class Used(msgspec.Struct, frozen=True):
    """One use of a tool: its input in a few words, the candidates before and after, and an error code where it failed.

    ``cut`` says which were kept where there were more than there may be: the ``first`` of an order, or a ``sample``.
    A plan that was refused is a use of the tool ``plan``, without an input.
    """

    tool: str
    given: str
    before: int
    after: int
    code: str
    cut: str = ""


class Attempt(msgspec.Struct):
    """One plan: why, what its tools did, the reply that came of it, and the critic's verdict, where there are any."""

    thought: str = ""
    used: tuple[Used, ...] = ()
    reply: str = ""
    accepted: bool | None = None
    advice: str = ""


def attempts(messages: Iterable[Spoken]) -> list[Attempt]:
    """The attempts of one turn, in their order. A recommender that makes no plans has one that is a reply alone."""
    found: dict[int, Attempt] = {}
    for message in messages:
        if message.kind not in (PLANNED, REPLIED, JUDGED):
            continue
        body = message.body
        attempt = found.setdefault(body["attempt"], Attempt())
        if message.kind == PLANNED:
            attempt.thought, attempt.used = body["thought"], tuple(_used(body))
        elif message.kind == REPLIED:
            attempt.reply = body["text"]
        else:
            attempt.accepted, attempt.advice = body["accepted"], body["advice"]
    return list(found.values())


def _used(body: Mapping[str, Any]) -> Iterator[Used]:
    """The work of the tools, each with the step of the plan that asked for it."""
    steps = iter(body["steps"])
    for work in body["work"]:
        step = None if work["tool"] == "plan" else next(steps, None)
        given = _given(step["input"]) if step else ""
        yield Used(work["tool"], given, work["before"], work["after"], work["code"], work.get("cut", ""))


def _given(fields: Mapping[str, Any]) -> str:
    """A query, or the fields that say something."""
    if isinstance(fields.get("sql"), str):
        return " ".join(fields["sql"].split())
    said = {name: value for name, value in fields.items() if value != []}
    return json.dumps(said, ensure_ascii=False)[1:-1]
