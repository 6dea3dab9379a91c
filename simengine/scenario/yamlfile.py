"""A YAML file into a pydantic model and back: ``--set`` entries laid over it, ``${VAR}`` left for the place of use."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from simengine.errors import InputError
from simengine.scenario.explain import problems, wanted_as_text
from simengine.scenario.yamltree import TAG, Node, Path, Place, dotted, parse, scalar, together

Model = TypeVar("Model", bound=BaseModel)

_NAME = r"[^.\[\]=\s]+(?:\[[0-9]+\])*"
_TARGET = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_PART = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


def load(
    path: str | PathLike[str], model: type[Model], sets: Sequence[str] = (), text: str | None = None
) -> tuple[Model, dict[str, Any]]:
    """Read a YAML 1.2 file into ``model``; the second value is the plain data, ``sets`` included, as ``dump`` takes it.

    ``sets`` are entries ``a.b[0].c=VALUE``, laid over the file in their order. ``text`` stands for the file's content
    where it is at hand already; ``path`` then only names it. An unquoted scalar is read by the core schema of YAML 1.2,
    but gives its very spelling where the schema asks for text (``0123``, ``1.10``, ``true``).

    Raises one InputError that tells all that is wrong, each problem by file, line, column, field, value and remedy.
    """
    return validate(with_sets(tree(path, text), sets), model)


def tree(path: str | PathLike[str], text: str | None = None) -> Node:
    """The mapping that a YAML file holds, as nodes that know their place. Raises InputError."""
    file = str(path)
    root = parse(_read(FilePath(path)) if text is None else text, Place(file))
    if root is None:
        raise InputError("the file is empty", remedy="Write at least one `key: value` line.", file=file)
    if not isinstance(root.value, dict):
        remedy = "Start with `key: value` lines."
        raise root.place.error("expected a mapping at the top", remedy, value=root.describe())
    return root


def with_sets(root: Node, sets: Sequence[str]) -> Node:
    """The tree with ``--set`` entries laid over it, in their order. Raises InputError that names the entry."""
    for entry in sets:
        root = _with_entry(root, entry)
    return root


def validate(root: Node, model: type[Model]) -> tuple[Model, dict[str, Any]]:
    """The model that a tree describes, and its plain data. Raises one InputError for all that is wrong."""
    file = root.place.file
    data = root.data()
    while True:
        try:
            # A validator may change what it is given; the data must stay what the file says.
            return model.model_validate(copy.deepcopy(data)), data
        except ValidationError as error:
            respelled = wanted_as_text(error, model, root)
            if not respelled:
                raise together(problems(error, model, root), file) from None
        for where, spelling in respelled:
            _put_text(data, where, spelling)


def dump(data: Mapping[str, Any]) -> str:
    """Plain data with text keys as YAML 1.2 in lines; ``load`` reads the same data back from it."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 1_000_000_000
    stream = StringIO()
    yaml.dump(dict(data), stream)
    return stream.getvalue()


class _Representer(SafeRepresenter):
    """Keeps the order of keys, writes shared parts in full, quotes every text that would be read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_dict(self, data: dict[str, Any]) -> MappingNode:
        # Given as pairs, a mapping is not sorted.
        return self.represent_mapping(f"{TAG}map", list(data.items()))

    def represent_str(self, data: str) -> ScalarNode:
        # Single quotes would fold some line breaks of Unicode; double quotes escape what is not printable.
        style = '"' if not data.isprintable() else None if scalar(data) is data else "'"
        return self.represent_scalar(f"{TAG}str", data, style=style)


_Representer.add_representer(dict, _Representer.represent_dict)
_Representer.add_representer(str, _Representer.represent_str)


def _read(path: FilePath) -> str:
    file = str(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", remedy="Check the path.", file=file) from None
    except IsADirectoryError:
        raise InputError("this is a folder, not a file", remedy="Name the YAML file itself.", file=file) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", remedy="Check its permissions.", file=file) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8 text", remedy="Save the file as UTF-8.", file=file, line=line) from None


def _with_entry(root: Node, entry: str) -> Node:
    """The tree with one ``--set`` entry laid over it. What is wrong with it is told by its target alone."""
    target, separator, value = entry.partition("=")
    target = target.strip()
    origin = Place("--set", entry=target or "without a name")
    if not separator or not _TARGET.fullmatch(target):
        remedy = "Write NAME=VALUE, as in llm.temperature=0 or stages[1].rank.repeats=3."
        raise origin.error("not an assignment to a field", remedy)
    node = parse(value, origin) or Node("", origin, plain=True)
    if node.block:
        remedy = "Put quotes round a text that holds ': ' or '- '; write a collection in {} or []."
        raise origin.error("the value must be a scalar, {...} or [...]", remedy)
    path = tuple(int(index) if index else name for index, name in _PART.findall(target))
    return _put(root, path, 0, node)


def _put(node: Node | None, path: Path, depth: int, new: Node) -> Node:
    """``new`` under ``path`` below ``node``. Nodes may be shared by aliases, so those on the way are made anew."""
    if depth == len(path):
        return new
    part, above = path[depth], dotted(path[:depth])
    if node is None or node.empty:
        node = Node({}, new.place)
    if isinstance(part, str) and isinstance(node.value, dict):
        child = _put(node.value.get(part), path, depth + 1, new)
        return replace(node, value={**node.value, part: child}, keys={part: new.place, **node.keys})
    if isinstance(part, int) and isinstance(node.value, list) and part < len(node.value):
        items = list(node.value)
        items[part] = _put(items[part], path, depth + 1, new)
        return replace(node, value=items)
    wanted = f"entry [{part}]" if isinstance(part, int) else f"key `{part}`"
    remedy = "Check the field's path."
    if isinstance(node.value, list) and node.value:
        remedy = f"An entry of a list is named by its place, the first one as `{above}[0]`."
    raise new.place.error(f"`{above}` has no {wanted}: it is {node.describe()}", remedy)


def _put_text(data: Any, path: Path, text: str) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = text
