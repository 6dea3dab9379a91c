"""The JSON form of a reply: one object with a few fields, each a text or a list of texts; asked for, written and read.

The rules of reading, in order:

1. Reasoning blocks are dropped. Then every ``{`` may open the answer, wherever it stands: among prose, in a fence.
2. The answer is the first complete JSON object at an opener that has one of the fields asked for; what follows it is
   no part of it. Several such objects that say different things are no answer (``repeated``).
3. Where there is none, an object that the reply's end leaves unclosed is ``truncated``, what only looks like an object
   is ``malformed``, and an object without the fields is ``incomplete``.
4. Where nothing looks like an object, there is no JSON, and the caller may read the reply as plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from simengine.llm.replies.clean import clean, first_words, without_reasoning
from simengine.llm.replies.unreadable import Unreadable

Value = str | tuple[str, ...]

_OPENER = re.compile(r"\{\s*(?=[\"'“}]|\Z)")
_CUT_SHORT = ("Unterminated string", "Invalid \\u")  # what the decoder says of a text that ends inside a string
_NO_LETTER = re.compile(r"[\W_]+")


class JsonForm:
    """What an object holds: ``fields`` maps each name to a placeholder for its text, or to a list of placeholders.

    ``how`` says how the fields are to be filled, ``rule`` what is to be minded beside. ``ask`` is the instruction for
    a prompt, ``schema`` the JSON schema as text, strict: every field is required, and no other is allowed.
    """

    def __init__(self, fields: Mapping[str, str | list[str]], how: str = "", rule: str = "") -> None:
        self.fields = dict(fields)
        self._names = {_folded(name): name for name in fields}
        form = json.dumps(self.fields)
        head = ", ".join(part for part in ("Answer with one JSON object and nothing else", how) if part)
        self.ask = "\n".join(part for part in (f"{head}, in exactly this form:", form, rule) if part)
        text = {"type": "string"}
        texts = {"type": "array", "items": text}
        kinds = {name: texts if isinstance(it, list) else text for name, it in fields.items()}
        strict = {"type": "object", "properties": kinds, "required": list(fields), "additionalProperties": False}
        self.schema = json.dumps(strict)

    def write(self, *values: str | list[str]) -> str:
        """The reply with these values, in the order of the fields."""
        return json.dumps(dict(zip(self.fields, values, strict=True)), ensure_ascii=False)

    def read(self, raw: str) -> dict[str, Value] | None:
        """The fields that a reply fills, without markup; ``None`` where it holds no JSON at all.

        A number stands for the text that it is written as. Raises :class:`Unreadable`: ``repeated``, ``truncated``,
        ``malformed``, ``incomplete`` where a field is of another kind or no field is there, or what ``clean`` raises.
        """
        answer = without_reasoning(raw)
        if _OPENER.search(answer) is None:
            return None
        found: dict[str, Any] | None = None
        for value in _objects(answer, self._names):
            named = {self._names[_folded(key)]: it for key, it in value.items() if _folded(key) in self._names}
            if found is not None and named != found:
                raise Unreadable("repeated", "the JSON answer comes several times, with different values")
            found = named
        if found is None:
            raise Unreadable("incomplete", f"no JSON object has the fields {', '.join(self.fields)}")
        return {name: self._value(name, it) for name, it in found.items()}

    def _value(self, name: str, value: Any) -> Value:
        if isinstance(self.fields[name], str):
            return _text(name, value)
        if not isinstance(value, list):
            raise Unreadable("incomplete", f"the field {name} is no list")
        return tuple(_text(name, part) for part in value)


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


def _objects(answer: str, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every object with one of the fields, in order, none inside another; raises where all that is there is broken."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once)  # models put line breaks into their strings
    at, found, broken = 0, False, None
    while (opener := _OPENER.search(answer, at)) is not None:
        at = opener.end()  # the answer may be wrapped in an object, or stand behind something like one
        try:
            value, end = decoder.raw_decode(answer, opener.start())
        except json.JSONDecodeError as error:
            broken = broken or _broken(answer, error)
            if broken.reason == "truncated":  # what is inside may be a draft of what was to follow
                break
        except Unreadable:
            raise
        except (ValueError, RecursionError):  # a number of thousands of digits, brackets a thousand deep
            broken = Unreadable("malformed", f"the JSON cannot be read: {first_words(answer)}")
            break
        else:
            if any(_folded(key) in names for key in value):
                yield value
                at, found = end, True
    if broken is not None and not found:
        raise broken


def _broken(answer: str, error: json.JSONDecodeError) -> Unreadable:
    if error.pos >= len(answer.rstrip()) or error.msg.startswith(_CUT_SHORT):
        end = " ".join(answer.split())[-60:]
        return Unreadable("truncated", f"the JSON ends before it is closed, after: {end!r}")
    return Unreadable("malformed", f"the JSON cannot be read ({error.msg} at character {error.pos})")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; a name that comes again with another value makes it unreadable."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if made.setdefault(name, value) != value:
            raise Unreadable("repeated", f"the field {name} comes several times, with different values")
    return made


def _folded(name: str) -> str:
    return _NO_LETTER.sub("", name).casefold()
