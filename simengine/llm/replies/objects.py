"""The JSON form of a reply: one object with a few fields, each a text or a list of texts; asked for, written and read.

The rules of reading, in order:

1. Reasoning blocks are dropped. Then every ``{`` may open the answer, wherever it stands: among prose, in a fence, in
   another object (:mod:`~simengine.llm.replies.scan`).
2. The answer is the first complete JSON object that has one of the fields asked for; what follows it is no part of it.
   Several such objects that say different things are no answer (``repeated``).
3. Where there is none, an object that the reply's end leaves unclosed is ``truncated``, what only looks like an object
   is ``malformed``, and an object without the fields is ``incomplete``.
4. Where nothing looks like an object, there is no JSON, and the caller may read the reply as plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from simengine.llm.replies.clean import clean, without_reasoning
from simengine.llm.replies.scan import Scan, scan
from simengine.llm.replies.unreadable import Unreadable

Value = str | tuple[str, ...]

_NO_LETTER = re.compile(r"[\W_]+")


class Form:
    """A form of JSON: ``schema`` is its JSON schema as text, ``ask`` the instruction for a prompt.

    Where ``ask`` is empty, the prompts that ask for it say the form themselves, in text and in JSON alike.
    """

    def __init__(self, schema: Mapping[str, Any], ask: str = "") -> None:
        self.ask = ask
        self.schema = json.dumps(schema)


class JsonForm(Form):
    """What an object holds: ``fields`` maps each name to a placeholder for its text, or to a list of placeholders.

    ``how`` says how the fields are to be filled, ``rule`` what is to be minded beside. The schema is strict.
    """

    def __init__(self, fields: Mapping[str, str | list[str]], how: str = "", rule: str = "") -> None:
        self.fields = dict(fields)
        self._names = {_folded(name): name for name in fields}
        form = json.dumps(self.fields)
        head = ", ".join(part for part in ("Answer with one JSON object and nothing else", how) if part)
        ask = "\n".join(part for part in (f"{head}, in exactly this form:", form, rule) if part)
        super().__init__(strict({name: TEXTS if isinstance(it, list) else TEXT for name, it in fields.items()}), ask)

    def write(self, *values: str | list[str]) -> str:
        """The reply with these values, in the order of the fields."""
        return json.dumps(dict(zip(self.fields, values, strict=True)), ensure_ascii=False)

    def read(self, raw: str) -> dict[str, Value] | None:
        """The fields that a reply fills, without markup; ``None`` where it holds no JSON at all.

        A number stands for the text that it is written as. Raises :class:`Unreadable`: ``repeated``, ``truncated``,
        ``malformed``, ``incomplete`` where a field is of another kind or no field is there, or what ``clean`` raises.
        """
        scanned = scan(without_reasoning(raw))
        return None if scanned is None else self.of(scanned)

    def of(self, scanned: Scan) -> dict[str, Value]:
        """The fields that are in a reply's JSON. Raises like :meth:`read`."""
        found = scanned.one(self._named, f"no JSON object has the fields {', '.join(self.fields)}")
        return {name: self._value(name, it) for name, it in found.items()}

    def _named(self, value: Any) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return None
        return {self._names[name]: it for name, it in folded(value).items() if name in self._names} or None

    def _value(self, name: str, value: Any) -> Value:
        if isinstance(self.fields[name], str):
            return _text(name, value)
        if not isinstance(value, list):
            raise Unreadable("incomplete", f"the field {name} is no list")
        return tuple(_text(name, part) for part in value)


TEXT: Mapping[str, Any] = {"type": "string"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": TEXT}
"""The schemas of a text and of a list of texts."""


def strict(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of an object with these fields, as servers take it: each is required, and no other is allowed."""
    required = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def folded(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object by their names in lower case, without all that is no letter or digit."""
    return {_folded(name): it for name, it in value.items()}


def text_of(fields: Mapping[str, Value], name: str) -> str:
    """The text of a field that must be there; :class:`Unreadable` (``incomplete``, ``empty``) where it is not."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise Unreadable("incomplete", f"the JSON has no field {name}")
    if not value:
        raise Unreadable("empty", f"the field {name} is empty")
    return value


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Unreadable("incomplete", f"the field {name} holds what is no text")
    # JSON can spell lone surrogates, which no file can hold
    text = str(value).encode("utf-8", "replace").decode().strip()
    return clean(text) if text else ""


def _folded(name: str) -> str:
    return _NO_LETTER.sub("", name).casefold()
