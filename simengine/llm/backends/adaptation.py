"""What a server is found not to take, by model: parameters that it refuses, and roles that must be merged."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from simengine.llm.request import Message

log = structlog.get_logger("simengine")

_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_FORMAT = "response_format"
_ABOUT_FORMAT = re.compile(
    r"response[_ ]?format|json[_ ]?(?:schema|object|mode)|structured[_ ]output|guided[_ ](?:json|decoding)",
    re.IGNORECASE,
)
_INDISPENSABLE = frozenset({"model", "messages", "prompt", "input"})
_REFUSED = re.compile(
    r"unsupported|un(?:recogni[sz]ed|known|expected)|extra (?:fields|inputs)|only .{0,40}(?:supported|allowed)"
    r"|(?:not|n't|never) (?:be )?(?:support|permit|allow|recogni[sz]e|accept)",
    re.IGNORECASE,
)
_ROLES = re.compile(
    r"roles? must alternate|alternat\w+ (?:between )?user|system (?:role|message|prompt|instruction)s?\b"
    r"|only user and assistant|(?:unknown|unexpected|invalid) role|developer instruction|role\W+system"
    r"|must be (?:from )?the user",
    re.IGNORECASE,
)


@dataclass
class _Learned:
    """What is known of one model; ``version`` grows with it. ``refused`` holds spellings, see :func:`_spellings`."""

    refused: set[str] = field(default_factory=set)
    merged: bool = False
    version: int = 0


class Adaptations:
    """Learns from refusals (status 400 and the like), once for each model of an endpoint, and remembers for the run.

    A refused parameter goes under its other name if it has one that was not refused, else it is left out; a JSON schema
    that is refused makes way for any JSON object, and that for nothing. Where system messages are refused, or roles
    have to alternate, messages are merged; ``merge`` says so from the beginning.
    """

    def __init__(self, merge: bool) -> None:
        self._models: defaultdict[str, _Learned] = defaultdict(lambda: _Learned(merged=merge))

    def version(self, model: str) -> int:
        """Grows with each thing that is learned about a model."""
        return self._models[model].version

    def parameters(self, model: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a request's body as this model takes them."""
        refused, taken = self._models[model].refused, {}
        for name, value in asked.items():
            for spelling, field_name, meant in _spellings(name, value):
                if spelling not in refused:
                    taken[field_name] = meant
                    break
        return taken

    def messages(self, model: str, asked: Sequence[Message]) -> Sequence[Message]:
        """The messages as this model takes them."""
        return merge_roles(asked) if self._models[model].merged else asked

    def learn(self, model: str, sent: Mapping[str, Any], version: int, param: object, problem: str) -> bool:
        """Whether a refused request should be sent again: something was learned from it, or has been since it went out.

        ``sent`` is its body, ``version`` that of its sending; ``param`` is the field that the error names, if it names
        one, ``problem`` its text.
        """
        learned = self._models[model]
        if version < learned.version:
            return True
        if (name := _refused_field(sent, param, problem)) is not None:
            spelling = next(iter(_spellings(name, sent[name])))[0]
            learned.refused.add(spelling)
            others = (other for other, *_ in _spellings(name, sent[name]) if other not in learned.refused)
            log.warning("parameter refused", model=model, parameter=spelling, instead=next(others, "left out"))
        elif not learned.merged and _ROLES.search(problem):
            learned.merged = True
            log.warning("roles refused", model=model, instead="system texts and neighbours of one role are merged")
        else:
            return False
        learned.version += 1
        return True


def merge_roles(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Only user and assistant, in turn: system texts go before the first user text, neighbours of one role join."""
    system = [message.content for message in messages if message.role == "system"]
    merged: list[Message] = [Message("user", "\n\n".join(system))] if system else []
    for message in messages:
        if message.role == "system":
            continue
        if merged and merged[-1].role == message.role:
            merged[-1] = Message(message.role, f"{merged[-1].content}\n\n{message.content}")
        else:
            merged.append(message)
    return tuple(merged)


def _spellings(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """The ways of asking for a parameter, the first that which is asked for: what to call it, and field and value."""
    if name != _FORMAT:
        yield name, name, value
        if name in _OTHER_NAME:
            yield _OTHER_NAME[name], _OTHER_NAME[name], value
        return
    yield f"{name} {value['type']}", name, value
    if value["type"] == "json_schema":
        yield f"{name} json_object", name, {"type": "json_object"}


def _refused_field(sent: Iterable[str], param: object, problem: str) -> str | None:
    """The field that an error refuses: the one that it names, else the first that its text speaks of."""
    if _FORMAT in sent and (str(param).startswith(_FORMAT) or _ABOUT_FORMAT.search(problem)):
        return _FORMAT  # whatever a server finds wrong with it, a weaker one may do
    if not _REFUSED.search(problem):
        return None
    fields = [name for name in sent if name not in _INDISPENSABLE]
    if isinstance(param, str) and param.partition(".")[0] in fields:
        return param.partition(".")[0]
    named = [(found.start(), name) for name in fields if (found := re.search(rf"\b{name}\b", problem))]
    return min(named)[1] if named else None
