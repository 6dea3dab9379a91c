"""Scenarios made of scenarios: ``extends`` lays a file over another, ``variants`` lays named changes over the file.

A top-level key that begins with ``x-`` is a shelf for anchors that the file uses elsewhere, and is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from simengine.scenario.yamlfile import tree
from simengine.scenario.yamltree import Node

EXTENDS, VARIANTS = "extends", "variants"


def composed(path: Path, text: str | None = None, above: tuple[Path, ...] = ()) -> Node:
    """The tree of a file laid over those that it extends; a base's path is relative to the file that names it."""
    root = _without_shelves(tree(path, text))
    here = path.resolve()
    named = root.child(EXTENDS)
    if named is None:
        return root
    if not isinstance(named.value, str) or named.empty:
        raise named.place.error("`extends` names one file", "Write extends: base.yaml.", field=EXTENDS)
    base = (path.parent / named.value).resolve()
    if base in (*above, here):
        raise named.place.error("these files extend one another", "Let one of them stand alone.", field=EXTENDS)
    if not base.is_file():
        remedy = "The path is relative to the file that says `extends`."
        raise named.place.error(f"there is no file {base}", remedy, field=EXTENDS, value=named.value)
    return laid_over(composed(base, None, (*above, here)), without(root, EXTENDS))


def variants(root: Node) -> Iterator[tuple[str, Node]]:
    """Each variant's name and tree. A scenario without variants, or with an empty mapping, has one without a name."""
    node = root.child(VARIANTS)
    common = without(root, VARIANTS)
    if node is None or node.empty or node.value == {}:
        yield "", common
        return
    if not isinstance(node.value, dict):
        raise node.place.error("`variants` maps names to changes", "Write variants: {name: {...}}.", field=VARIANTS)
    for name, changes in node.value.items():
        if not changes.empty and not isinstance(changes.value, dict):
            raise changes.place.error("a variant is a mapping", "Write {} for no change.", field=f"{VARIANTS}.{name}")
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
            raise changes.place.error("not a name for a folder", "Use letters, digits, - and _.", field=VARIANTS)
        yield name, common if changes.empty else laid_over(common, changes)


def laid_over(base: Node, over: Node) -> Node:
    """``over`` on ``base``: mappings are joined key by key, everything else is replaced."""
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    value = dict(base.value)
    for key, node in over.value.items():
        value[key] = laid_over(value[key], node) if key in value else node
    return Node(value, over.place, block=over.block, keys={**base.keys, **over.keys})


def _without_shelves(root: Node) -> Node:
    for key in root.keys:
        if key.startswith("x-"):
            root = without(root, key)
    return root


def without(root: Node, key: str) -> Node:
    """A mapping without one of its keys."""
    assert isinstance(root.value, dict)
    return replace(root, value={name: node for name, node in root.value.items() if name != key})
