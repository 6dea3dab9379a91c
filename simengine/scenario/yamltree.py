"""YAML 1.2 text as a tree of nodes that know their place; repeated keys are refused, unquoted spellings are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamStartEvent,
)
from ruamel.yaml.reader import ReaderError

from simengine.errors import InputError

Path = tuple[str | int, ...]

_MAX_DEPTH = 100
TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = ("!", f"{TAG}str")
_OTHER_TAGS = tuple(TAG + kind for kind in ("null", "bool", "int", "float", "seq", "map"))
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Python reads no whole number of more than 4300 digits; far above any setting, such a text stays a text.
_WHOLE = re.compile(r"[-+]?[0-9]{1,1000}|0o[0-7]{1,1000}|0x[0-9a-fA-F]{1,1000}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]{1,1000}(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def scalar(text: str) -> bool | int | float | str | None:
    """What an unquoted text means by the core schema of YAML 1.2 (section 10.3.2): ``no`` and ``12:30`` are texts."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _WHOLE.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _NUMBER.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if _NOT_FINITE.fullmatch(text) else text


def dotted(path: Iterable[str | int]) -> str:
    """A path as users write it: ``stages[1].rank.k[0]``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def together(problems: list[InputError], file: str) -> InputError:
    """One error for a list of at least one; each keeps its own place and remedy in the text."""
    if len(problems) == 1:
        return problems[0]
    listed = "\n".join(indent(str(problem), "  ") for problem in problems)
    return InputError(f"{len(problems)} problems\n{listed}", file=file)


class Place(NamedTuple):
    """Where something was written: a line and column of a file (from 1), or an ``entry`` of the command line."""

    file: str
    line: int | None = None
    column: int | None = None
    entry: str | None = None

    def error(self, problem: str, remedy: str, **more: Any) -> InputError:
        return InputError(problem, remedy=remedy, **self._asdict(), **more)


@dataclass(frozen=True)
class Node:
    """A scalar's text, a list of nodes, or a mapping from key text to node; merge keys and aliases are resolved."""

    value: str | list[Node] | dict[str, Node]
    place: Place
    plain: bool = False
    """A scalar without quotes, which may mean a number, true, false or null."""
    block: bool = False
    """A list or mapping in lines, not in brackets."""
    keys: Mapping[str, Place] = field(default_factory=dict)
    """Where each key of a mapping is written."""

    @property
    def empty(self) -> bool:
        return self.plain and isinstance(self.value, str) and scalar(self.value) is None

    def data(self) -> Any:
        """Plain Python data, nothing shared: aliased parts come out as copies."""
        if isinstance(self.value, dict):
            return {key: child.data() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.data() for child in self.value]
        return scalar(self.value) if self.plain else self.value

    def child(self, part: str | int) -> Node | None:
        """The node under a key or an index, None where there is none."""
        if isinstance(self.value, dict) and isinstance(part, str):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and 0 <= part < len(self.value):
            return self.value[part]
        return None

    def describe(self) -> str:
        """The value in a few words: a scalar as it is spelled, cut when long, collections by their kind."""
        if isinstance(self.value, dict):
            return f"a mapping with {', '.join(self.value)}" if len(self.value) in range(1, 6) else "a mapping"
        if isinstance(self.value, list):
            return f"a list of {len(self.value)}"
        if self.empty:
            return "empty"
        text = self.value if self.plain else repr(self.value)
        return text if len(text) <= 60 else f"{text[:57]}..."


def parse(text: str, origin: Place) -> Node | None:
    """The one document of ``text``, None where there is nothing in it.

    ``origin`` names the file, or the command-line entry that the text stands in.

    Raises InputError for text that is not YAML, for repeated keys (all of them at once, each with both lines), for keys
    that are not text, unknown tags, and a second document.
    """
    composer = _Composer(text, origin)
    try:
        node = composer.document()
    except YAMLError as error:
        raise _syntax_error(error, text, origin) from None
    if composer.repeated:
        raise together(sorted(composer.repeated, key=lambda problem: problem.where.get("line", 0)), origin.file)
    return node


def _syntax_error(error: YAMLError, text: str, origin: Place) -> InputError:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        line, column = error.problem_mark.line, error.problem_mark.column
        problem = ": ".join(part for part in (error.context, error.problem) if part)
    else:
        position = error.position if isinstance(error, ReaderError) else 0
        line, column = text.count("\n", 0, position), position - (text.rfind("\n", 0, position) + 1)
        problem = f"the character {text[position]!r} is not allowed in YAML" if position < len(text) else str(error)
    lines = text.splitlines()
    culprit = lines[line] if line < len(lines) else ""
    remedy = "Correct the YAML there; the cause may stand a line or two before."
    if "${" in culprit:
        remedy = 'Inside {...} and [...] put quotes round a variable: "${NAME}".'
    elif "\t" in culprit:
        remedy = "Indent with spaces: YAML allows no tabs there."
    elif "not allowed here" in problem or "cannot start any token" in problem:
        remedy = "Put quotes round a value that holds ': ' or starts with a special character."
    place = origin if origin.entry else origin._replace(line=line + 1, column=column + 1)
    return place.error(f"not valid YAML: {problem}", remedy)


class _Composer:
    """Builds nodes from the parser's events. ``repeated`` collects what is wrong but does not stop the reading."""

    def __init__(self, text: str, origin: Place) -> None:
        self._origin = origin
        self._events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self._anchors: dict[str, Node | None] = {}
        self.repeated: list[InputError] = []

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, StreamStartEvent):
                continue
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise self._place(event).error("a second document starts here", "Keep one document in the file.")
                root = self._node(next(self._events), ())
        return None if root is None or root.empty else root

    def _place(self, event: Any) -> Place:
        if self._origin.entry:
            return self._origin
        return self._origin._replace(line=event.start_mark.line + 1, column=event.start_mark.column + 1)

    def _node(self, event: NodeEvent, path: Path) -> Node:
        place = self._place(event)
        if isinstance(event, AliasEvent):
            known = self._anchors.get(event.anchor)
            if known is None:
                raise place.error(f"no complete anchor &{event.anchor} stands before this", "Define it above.")
            return known
        if len(path) > _MAX_DEPTH:
            raise place.error(f"nested more than {_MAX_DEPTH} deep", "Flatten this part of the file.")
        if event.anchor:
            self._anchors[event.anchor] = None
        node = self._collection(event, path, place)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _collection(self, event: NodeEvent, path: Path, place: Place) -> Node:
        if isinstance(event, ScalarEvent):
            return Node(event.value, place, plain=self._is_plain(event))
        self._is_plain(event)
        if isinstance(event, SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(following := next(self._events), SequenceEndEvent):
                items.append(self._node(following, (*path, len(items))))
            return Node(items, place, block=not event.flow_style)
        return self._mapping(event, path, place)

    def _is_plain(self, event: Any) -> bool:
        """Whether a scalar may mean something else than text; refuses tags of a private or unsupported kind."""
        if event.tag is None:
            return isinstance(event, ScalarEvent) and bool(event.implicit[0])
        if event.tag not in _TEXT_TAGS + _OTHER_TAGS:
            raise self._place(event).error(f"the tag {event.tag} is not known here", "Remove the tag.")
        return event.tag in _OTHER_TAGS

    def _mapping(self, event: Any, path: Path, place: Place) -> Node:
        value: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[Node] = []
        while not isinstance(following := next(self._events), MappingEndEvent):
            at = self._place(following)
            key = self._node(following, path)
            name = key.value
            if not isinstance(name, str):
                raise at.error("a key must be a text", "Put quotes round text that starts with { or [.")
            child = self._node(next(self._events), (*path, name))
            if name in keys:
                self.repeated.append(self._repeated(name, path, at, keys[name]))
            elif name == "<<" and key.plain:
                merged = self._to_merge(child)
            else:
                value[name] = child
            keys[name] = at
        for source in merged:
            assert isinstance(source.value, dict)
            value = source.value | value
            keys = {**source.keys, **keys}
        return Node(value, place, block=not event.flow_style, keys=keys)

    def _to_merge(self, node: Node) -> list[Node]:
        """The mappings that a merge key names; what stands first wins over what comes later."""
        sources = node.value if isinstance(node.value, list) else [node]
        for source in sources:
            if not isinstance(source.value, dict):
                raise source.place.error("only mappings can be merged with <<", "Name an anchor of a mapping.")
        return sources

    @staticmethod
    def _repeated(name: str, path: Path, at: Place, first: Place) -> InputError:
        problem = f"the key `{name}` is repeated"
        if first.line is not None:
            problem += f": it stands on line {first.line} and again on line {at.line}"
        return at.error(problem, "Keep one of them, with the settings of both.", field=dotted((*path, name)))
