"""The item table: titles and categories made readable, everything else kept as written."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from simengine.data.atomic import FIRST_LINE, Table
from simengine.data.dataset import Item
from simengine.data.order import natural_key
from simengine.errors import InputError

TITLE_FIELDS = ("title", "movie_title", "name")
CATEGORY_FIELDS = ("category", "categories", "main_category", "class", "genre", "genres")

_BREAK_TAG = re.compile(r"</?(?:br|div|img|p)\b[^<>]*(?:>|$)", re.IGNORECASE)
_INLINE_TAG = re.compile(r"</?(?:a|b|em|font|i|span|strong|sub|sup|u)\b[^<>]*(?:>|$)", re.IGNORECASE)
_ATTRIBUTE_END = re.compile(r'"\s*/>\s*$')
_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200e\u200f\ufeff"))


def readable(text: str) -> str:
    """Text as a person would read it.

    1. HTML tags of common names are removed, one that never ends with all that follows it; one that breaks the line
       becomes a blank. The ``" />`` that a torn attribute leaves at the end is removed.
    2. Entities that end in a semicolon are decoded, so that ``R&B`` and a written-out ``&lt;b&gt;`` survive.
    3. Marks without width are removed, and white space becomes single blanks.
    """
    text = _INLINE_TAG.sub("", _BREAK_TAG.sub(" ", text))
    text = _ENTITY.sub(lambda match: html.unescape(match[0]), _ATTRIBUTE_END.sub("", text))
    return " ".join(text.translate(_INVISIBLE).split())


def make_items(table: Table, noun: str) -> tuple[Mapping[str, Item], tuple[str, ...]]:
    """Items by id in natural order of ids, and notes. ``table`` was read with ``numeric=False``.

    The title is the first of ``TITLE_FIELDS`` that the table has, the category the first of ``CATEGORY_FIELDS``, if
    any. An item whose title leaves nothing readable is called ``Untitled <noun> <id>``, which a note counts.
    """
    title_field = _first(table, TITLE_FIELDS) or TITLE_FIELDS[0]
    table.texts(title_field)  # where there is none, this names the field and those that are there
    category_field = _first(table, CATEGORY_FIELDS)
    items: dict[str, Item] = {}
    untitled = 0
    for line, row in enumerate(_rows(table), FIRST_LINE):
        item_id = row.pop("item_id")
        raw_title = row.pop(title_field)
        title = readable(raw_title)
        untitled += not title
        if item_id in items:
            raise InputError(
                f"item {item_id} is listed twice", remedy="Keep one line an item.", file=table.file, line=line
            )
        category = readable(row.pop(category_field)) if category_field else ""
        title = title or f"Untitled {noun} {item_id}"
        items[item_id] = Item(item_id, title, category, raw_title, MappingProxyType(row))
    notes = (f"{untitled} items have no readable title; they are called 'Untitled {noun} <id>'",) if untitled else ()
    return MappingProxyType({key: items[key] for key in sorted(items, key=natural_key)}), notes


def _first(table: Table, fields: tuple[str, ...]) -> str | None:
    return next((field for field in fields if field in table), None)


def _rows(table: Table) -> Iterator[dict[str, str]]:
    table.ids("item_id")
    names = list(table.columns)
    for values in zip(*(table.texts(name) for name in names), strict=True):
        yield dict(zip(names, values, strict=True))
