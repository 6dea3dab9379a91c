"""What pydantic found wrong with a YAML document, told by file, line, column and dotted field, each with a remedy."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, RootModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from simengine.data.table import nearest
from simengine.errors import InputError
from simengine.scenario.yamltree import Node, Path, dotted

_EXPECTED = {
    "greater_than": "a value more than {gt}",
    "greater_than_equal": "a value of at least {ge}",
    "less_than": "a value less than {lt}",
    "less_than_equal": "a value of at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "finite_number": "a finite number",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "string_too_short": "a text of at least {min_length} characters",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "union_tag_invalid": "one of {expected_tags}",
    "none_required": "nothing (null)",
}
_KINDS = {
    "int": ("a whole number", "Write digits, as in 10 or 1e4."),
    "float": ("a number", "Write a number, as in 0.5 or 1e-4."),
    "date": ("a date such as 2021-10-01", "Write the year, the month and the day."),
    "bool": ("true or false", "Write true or false."),
    "string": ("a text", "Put the text in quotes."),
    "list": ("a list", "Write a list in brackets, as in [a, b]."),
    "tuple": ("a list", "Write a list in brackets, as in [a, b]."),
    "set": ("a list", "Write a list in brackets, as in [a, b]."),
    "dict": ("a mapping", "Write `key: value` lines, indented below the key."),
    "mapping": ("a mapping", "Write `key: value` lines, indented below the key."),
    "model": ("a mapping", "Write `key: value` lines, indented below the key."),
}
_OF_KEY = "[key]"
_WANTS_TEXT = ("string_type", "string_sub_type", "literal_error", "enum", "path_type", "url_type")


def wanted_as_text(error: ValidationError, model: type[BaseModel], root: Node) -> list[tuple[Path, str]]:
    """Unquoted scalars that were read as a number or truth value where the schema asks for text: path and spelling."""
    found = []
    for detail in error.errors(include_url=False):
        spot = _follow(model, root, detail["loc"])
        node = spot.node
        wanted = detail["type"] in _WANTS_TEXT and not isinstance(detail["input"], str)
        if wanted and node is not None and node.plain and not node.empty and isinstance(node.value, str):
            found.append((spot.path, node.value))
    return found


def problems(error: ValidationError, model: type[BaseModel], root: Node) -> list[InputError]:
    """Every problem once, in the order of the file; what the members of a union say of one value becomes one."""
    told_of = [detail for detail in error.errors(include_url=False) if not _counts_right_only(detail)]
    found = [(_follow(model, root, detail["loc"]), detail) for detail in told_of]
    deepest: dict[Path, int] = {}
    for spot, _ in found:
        if spot.union is not None:
            deepest[spot.union] = max(deepest.get(spot.union, 0), len(spot.path))
    groups: dict[Path, list[tuple[_Spot, ErrorDetails]]] = {}
    for spot, detail in found:
        # A member of a union that got further into the value tells more than one that refused it whole.
        if spot.union is None or len(spot.path) > len(spot.union) or deepest[spot.union] == len(spot.union):
            groups.setdefault(spot.path, []).append((spot, detail))
    told = [_tell(group) for group in groups.values()]
    return sorted(told, key=lambda problem: (problem.where.get("line", 0), problem.where.get("column", 0)))


def _counts_right_only(detail: ErrorDetails) -> bool:
    """Whether a list is called too short that has entries enough, of which some are wrong, as is told of each."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


@dataclass(frozen=True)
class _Spot:
    """Where an error lies: its path, the node there if any, the nearest node above, and what the schema allows."""

    path: Path
    node: Node | None
    parent: Node
    kinds: Sequence[Any]
    siblings: Sequence[str]
    union: Path | None


def _follow(model: type[BaseModel], root: Node, loc: tuple[str | int, ...]) -> _Spot:
    """Walk pydantic's location through document and schema at once.

    A location also names the member of a union that was tried; such a label is a step in the schema only, unless the
    document spells it as a key that a validator takes in (a short form ``{label: {...}}``).
    """
    path: Path = ()
    node: Node | None = root
    parent = root
    kinds: list[Any] = [model]
    siblings: list[str] = []
    union: Path | None = None
    labelled = False
    for part in loc:
        if part == _OF_KEY:
            break
        members = [member for kind in kinds for member in _members(kind)]
        is_label = not labelled and len(members) > 1
        if is_label:
            union, labelled = path, True
            kinds = [member for member in members if str(part) in _labels(member)] or members
            members = kinds
        child = node.child(part) if node is not None else None
        under = [kind for member in members for kind in _step(member, part, child)]
        if (is_label and (under or child is None)) or (not under and child is None):
            continue
        if not is_label:
            kinds, labelled = under, False
            siblings = [key for member in members for key in _keys(member)]
        path, parent, node = (*path, part), node or parent, child
    return _Spot(path, node, parent, kinds, siblings, union)


def _bare(kind: Any) -> Any:
    """The annotation without metadata, alias names and root models round it."""
    while True:
        if typing.get_origin(kind) is Annotated:
            kind = kind.__origin__
        elif hasattr(kind, "__value__"):
            kind = kind.__value__
        elif isinstance(kind, type) and issubclass(kind, RootModel):
            kind = kind.model_fields["root"].annotation
        else:
            return kind


def _members(kind: Any) -> list[Any]:
    """The members of a union, nested ones included, None left out; of anything else the annotation itself."""
    bare = _bare(kind)
    if typing.get_origin(bare) in (Union, UnionType):
        return [member for part in typing.get_args(bare) if part is not NoneType for member in _members(part)]
    return [kind]


def _step(kind: Any, part: str | int, node: Node | None = None) -> list[Any]:
    """The annotations under a key or an index of one union member; empty where the schema knows none.

    ``node`` is what the document holds there: a field whose metadata has ``chosen`` has its schema by the value.
    """
    bare = _bare(kind)
    if _is_model(bare):
        fields = [f for name, f in bare.model_fields.items() if part in (name, f.alias, f.validation_alias)]
        return [_by_value(field, node) or field.annotation for field in fields]
    origin, arguments = typing.get_origin(bare), typing.get_args(bare)
    if not isinstance(origin, type) or not arguments:
        return []
    if issubclass(origin, Mapping):
        return [arguments[1]] if isinstance(part, str) else []
    if not isinstance(part, int) or not issubclass(origin, Iterable):
        return []
    many = origin is not tuple or arguments[-1] is Ellipsis
    return [arguments[0]] if many else list(arguments[part : part + 1])


def _by_value(field: FieldInfo, node: Node | None) -> Any:
    chosen = next((extra.chosen for extra in field.metadata if hasattr(extra, "chosen")), None)
    return None if chosen is None or node is None else chosen(node.data())


def _is_model(bare: Any) -> bool:
    return isinstance(bare, type) and issubclass(bare, BaseModel)


def _keys(kind: Any) -> list[str]:
    bare = _bare(kind)
    return [field.alias or name for name, field in bare.model_fields.items()] if _is_model(bare) else []


def _tags(kind: Any, discriminator: str | None = None) -> list[str]:
    """The tags of a union's member: those it is marked with, and the values of its literal field ``discriminator``."""
    marks = [extra.tag for extra in getattr(kind, "__metadata__", ()) if isinstance(extra, Tag)]
    literals = [] if discriminator is None else _step(kind, discriminator)
    return marks + [
        str(value) for field in literals if typing.get_origin(field) is Literal for value in typing.get_args(field)
    ]


def _labels(kind: Any) -> list[str]:
    """The names under which pydantic may speak of a union's member: its tags by any field, and its class."""
    tags = [tag for key in (None, *_keys(kind)) for tag in _tags(kind, key)]
    return [*tags, getattr(_bare(kind), "__name__", "")]


def _tell(group: list[tuple[_Spot, ErrorDetails]]) -> InputError:
    """One InputError for what was said about one path."""
    spot, detail = group[0]
    kind = detail["type"]
    if kind == "extra_forbidden":
        return _unknown_key(spot)
    if kind == "missing":
        return _missing_key(spot)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _unknown_member(spot, detail)
    place = (spot.node or spot.parent).place
    value = spot.node.describe() if spot.node is not None else None
    if _OF_KEY in detail["loc"]:
        value = str(spot.path[-1])
        place = spot.parent.keys.get(value, place)
    own_words = kind in ("value_error", "assertion_error")
    if own_words and spot.node is not None and isinstance(spot.node.value, dict):
        value = None  # a validator of a whole section says itself what does not fit together
    expected = " or ".join(dict.fromkeys(expected_of(said) for _, said in group))
    problem = str(detail["ctx"]["error"]) if own_words else f"expected {expected}"
    return place.error(problem, _remedy(detail, value or ""), field=dotted(spot.path) or None, value=value)


def expected_of(detail: ErrorDetails) -> str:
    """What pydantic would have had in a value's place, in a few words."""
    kind = detail["type"]
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**detail.get("ctx", {}))
    family = kind.split("_")[0]
    return _KINDS[family][0] if family in _KINDS else detail["msg"].removeprefix("Input should be ")


def _remedy(detail: ErrorDetails, value: str) -> str:
    """What to do; a validator may say it itself, in a note on its error."""
    kind = detail["type"]
    if notes := getattr(detail.get("ctx", {}).get("error"), "__notes__", None):
        return " ".join(notes)
    if kind in ("literal_error", "enum"):
        choices = detail["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return _choose(value, choices)
    family = kind.split("_")[0]
    return _KINDS[family][1] if kind not in _EXPECTED and family in _KINDS else "Correct this value."


def _choose(word: str, choices: Iterable[str]) -> str:
    near = nearest(word, choices)
    return f"Did you mean `{near}`?" if near else "Choose one of these."


def _unknown_key(spot: _Spot) -> InputError:
    key = str(spot.path[-1])
    place = spot.parent.keys.get(key, spot.parent.place)
    near = nearest(key, spot.siblings)
    known = ", ".join(dict.fromkeys(spot.siblings)) or "none"
    remedy = f"Did you mean `{near}`?" if near else f"Keys known here: {known}."
    return place.error(f"the key `{key}` is not known here", remedy, field=dotted(spot.path))


def _missing_key(spot: _Spot) -> InputError:
    key, above = spot.path[-1], dotted(spot.path[:-1])
    remedy = f"Add `{key}: ...` under `{above}`." if above else f"Add `{key}: ...`."
    return spot.parent.place.error(f"the key `{key}` is required", remedy, field=dotted(spot.path))


def _unknown_member(spot: _Spot, detail: ErrorDetails) -> InputError:
    """A discriminated union that cannot tell which member is meant."""
    context = detail["ctx"]
    discriminator = context["discriminator"].strip("'")
    node = spot.node or spot.parent
    members = [member for kind in spot.kinds for member in _members(kind)]
    chooser = node.child(discriminator)
    if chooser is None and not context["discriminator"].startswith("'"):
        return _unknown_shape(spot, node, members)
    tags = [tag for member in members for tag in _tags(member, discriminator)]
    path = dotted((*spot.path, discriminator))
    listed = ", ".join(dict.fromkeys(tags))
    if chooser is None:
        remedy = f"Add `{discriminator}: ...`, one of: {listed}."
        return node.place.error(f"the key `{discriminator}` is required", remedy, field=path)
    value = chooser.describe()
    return chooser.place.error(f"expected one of: {listed}", _choose(value, tags), field=path, value=value)


def _unknown_shape(spot: _Spot, node: Node, members: Sequence[Any]) -> InputError:
    """A union told apart by a function of the value: its tags are the keys that users may write."""
    tags = list(dict.fromkeys(tag for member in members for tag in _tags(member)))
    written = list(node.value) if isinstance(node.value, dict) else [node.describe()]
    remedy = next((_choose(word, tags) for word in written if nearest(word, tags)), "Choose one of these.")
    problem = f"expected one of: {', '.join(tags)}"
    return node.place.error(problem, remedy, field=dotted(spot.path) or None, value=node.describe())
