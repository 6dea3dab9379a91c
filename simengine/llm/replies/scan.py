"""Finds the JSON in a reply: the values that stand whole among prose and in fences, and what is wrong with others.

A model's JSON may be cut off, misspelt, repeated, or made to do harm. Whatever it is, it is read in bounded time, and
what is given back is never nested deeper than ``DEEPEST``, so that nobody need mind the depth of what he works on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from simengine.llm.replies.clean import first_words
from simengine.llm.replies.unreadable import Unreadable

DEEPEST = 100
"""Levels of objects and lists that a value may have."""

_OBJECT = r"\{\s*(?=[\"'“}]|\Z)"
_OPENER = re.compile(_OBJECT)
_OPENER_OR_LIST = re.compile(rf"{_OBJECT}|\[\s*(?=\{{)")
_WORK = 50_000_000  # characters that are looked at, all attempts of one reply together: half a second or so
_ESCAPE = re.compile(r"\\?u[0-9a-fA-F]{0,3}")  # a character by its number, as far as it has come
T = TypeVar("T")


class Scan(NamedTuple):
    """The outermost JSON values of a reply, in their order, and why one that is not among them cannot be read."""

    values: tuple[Any, ...]
    broken: Unreadable | None

    def one(self, take: Callable[[Any], T | None], lacking: str) -> T:
        """What ``take`` makes of the first object or list that it takes, an outer one before those inside it.

        ``take`` returns none for what is something else. Raises :class:`Unreadable`: ``repeated`` where it makes
        different things of several, none inside another; where it takes none, what is wrong with the JSON, else
        ``incomplete``, which says what is ``lacking``.
        """
        found: T | None = None
        for value in self.values:
            for taken in _taken(value, take):
                if found is not None and taken != found:
                    raise Unreadable("repeated", "the JSON answer comes several times, with different values")
                found = taken
        if found is None:
            raise self.broken or Unreadable("incomplete", lacking)
        return found


def scan(answer: str, *, lists: bool = False) -> Scan | None:
    """All JSON objects of a text without reasoning, with ``lists`` also lists of objects; none where none begins.

    A value that is whole counts as one. Where one is misspelt (``malformed``), what begins inside it may still be
    whole. Where one is open at the end (``truncated``), or beyond all measure (``malformed``), the scan ends: what is
    inside may be a draft of what was to follow. Raises :class:`Unreadable` (``repeated``) where an object has a field
    twice, with different values.
    """
    opener = _OPENER_OR_LIST if lists else _OPENER
    if opener.search(answer) is None:
        return None
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once)  # models put line breaks into their strings
    values: list[Any] = []
    broken: Unreadable | None = None
    at = spent = 0
    while (begun := opener.search(answer, at)) is not None:
        try:
            value, at = decoder.raw_decode(answer, begun.start())
        except json.JSONDecodeError as error:
            if _is_cut(answer, error):
                end = " ".join(answer.split())[-60:]
                broken = Unreadable("truncated", f"the JSON ends before it is closed, after: {end!r}")
                break
            at, spent = begun.end(), spent + error.pos
            detail = f"the JSON cannot be read ({error.msg} at character {error.pos})"
            broken = broken or Unreadable("malformed", detail)
            if spent > _WORK:
                break
        except Unreadable:
            raise
        except (ValueError, RecursionError):  # a number of thousands of digits, brackets a thousand deep
            broken = _beyond(answer)
            break
        else:
            if _is_deep(value):
                broken = _beyond(answer)
                break
            values.append(value)
    return Scan(tuple(values), broken)


def _taken(value: Any, take: Callable[[Any], T | None]) -> Iterator[T]:
    if not isinstance(value, dict | list):
        return
    made = take(value)
    if made is not None:
        yield made
        return
    for inner in value.values() if isinstance(value, dict) else value:
        yield from _taken(inner, take)


def _is_cut(answer: str, error: json.JSONDecodeError) -> bool:
    """Whether the value is wrong in nothing but that the text ends inside it."""
    rest = answer[error.pos :].rstrip()
    if error.msg.startswith("Invalid \\u"):
        return _ESCAPE.fullmatch(rest) is not None
    return not rest or error.msg.startswith("Unterminated string")


def _beyond(answer: str) -> Unreadable:
    return Unreadable("malformed", f"the JSON cannot be read: {first_words(answer)}")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        inside = [it.values() if isinstance(it, dict) else it for it in level if isinstance(it, dict | list)]
        if not inside:
            return False
        level = [it for inner in inside for it in inner]
    return True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; a name that comes again with another value makes it unreadable."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made and made[name] != value:
            raise Unreadable("repeated", f"the field {name!r} comes several times, with different values")
        made[name] = value
    return made
