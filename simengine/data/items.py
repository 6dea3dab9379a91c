"""The item table: titles and categories made readable, everything else kept as written."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from simengine.data.dataset import Item
from simengine.data.order import natural_key
from simengine.data.settings import ItemColumns
from simengine.data.table import Table, nearest
from simengine.errors import InputError

TITLE_FIELDS = ("title", "movie_title", "name")
DOMAIN_FIELD = "domain"
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


def make_items(table: Table, columns: ItemColumns, noun: str) -> tuple[Mapping[str, Item], tuple[str, ...]]:
    """Items by id in natural order of ids, and notes. The columns of ``table`` are texts.

    A category of several, written with bars, has them joined by ``; ``. Other columns become ``extra``. An item whose
    title leaves nothing readable is called ``Untitled <noun> <id>``, which a note counts.
    """
    ids, raw_titles = table.ids(columns.id), table.texts(columns.title)
    categories, domains = (
        table.texts(name) if name else [""] * len(table) for name in (columns.category, columns.domain)
    )
    others = [name for name in table.columns if name not in set(columns.model_dump().values())]
    extras = [table.texts(name) for name in others]
    items: dict[str, Item] = {}
    untitled = 0
    for row, (item, raw_title, category, domain) in enumerate(zip(ids, raw_titles, categories, domains, strict=True)):
        if item in items:
            remedy = f"Keep one {table.counted} an item."
            raise table.error(f"item {item} is listed twice", remedy, row=row)
        title = readable(raw_title)
        untitled += not title
        items[item] = Item(
            item,
            title or f"Untitled {noun} {item}",
            readable(category.replace("|", "; ")),
            raw_title,
            MappingProxyType({name: values[row] for name, values in zip(others, extras, strict=True)}),
            domain,
        )
    notes = (f"{untitled} items have no readable title; they are called 'Untitled {noun} <id>'",) if untitled else ()
    return _ordered(items), notes


def items_of_log(ids: list[str]) -> tuple[Mapping[str, Item], tuple[str, ...]]:
    """The items of a log that has no item table: each has its id for a title."""
    return _ordered({item: Item(item, item, raw_title=item) for item in ids}), (
        "there is no item table: the title of an item is its id",
    )


def usual_columns(table: Table, domain: str | None = None) -> ItemColumns:
    """The columns of an atomic item table: the first title field that is there, and the first category field if any.

    ``domain`` is the field of the domain; by default that of this name, if there is one.
    """
    title, category = (
        next((field for field in fields if field in table), None) for fields in (TITLE_FIELDS, CATEGORY_FIELDS)
    )
    usual = DOMAIN_FIELD if DOMAIN_FIELD in table else None
    return ItemColumns(id="item_id", title=title or TITLE_FIELDS[0], category=category, domain=domain or usual)


def with_domains_of(
    log: Table, field: str, items: Mapping[str, Item], fill: bool
) -> tuple[Mapping[str, Item], tuple[str, ...]]:
    """The items, with the domains that the rows of a log tell if ``fill``; and a note of rows that tell another."""
    ids, told = log.ids("item_id"), log.texts(field)
    if not fill:
        others = sum(domain != items[item].domain for item, domain in zip(ids, told, strict=True) if item in items)
        note = f"{others} interactions name another {field} than the item table, which counts"
        return items, (note,) if others else ()
    domains: dict[str, str] = {}
    for row, (item, domain) in enumerate(zip(ids, told, strict=True)):
        if domains.setdefault(item, domain) != domain:
            raise log.error(
                f"item {item} is of the domain {domain!r} here, and of {domains[item]!r} before",
                f"An item has one domain: give the items two ids, or name the domain in the item table as {field}.",
                row=row,
                field=field,
            )
    filled = {key: msgspec.structs.replace(item, domain=domains.get(key, "")) for key, item in items.items()}
    return MappingProxyType(filled), ()


def of_domains(
    items: Mapping[str, Item], domains: tuple[str, ...] | None, file: str
) -> tuple[Mapping[str, Item], tuple[str, ...]]:
    """The items of these domains, and notes; all where none are named. A domain that no item has is an error."""
    known = sorted({item.domain for item in items.values()} - {""})
    if domains is None:
        return items, (f"{len(known)} domains: {', '.join(known)}",) if len(known) > 1 else ()
    for domain in domains:
        if domain not in known:
            near = nearest(domain, known)
            raise InputError(
                f"there is no item of the domain {domain}; the domains are {', '.join(known) or 'not told'}",
                remedy=(f"Did you mean {near}? " if near else "") + "The names are given by data.domains.",
                file=file,
                field="data.domains",
            )
    kept = MappingProxyType({key: item for key, item in items.items() if item.domain in domains})
    return kept, (f"{len(kept)} of {len(items)} items are of the domains {', '.join(domains)}",)


def _ordered(items: Mapping[str, Item]) -> Mapping[str, Item]:
    return MappingProxyType({key: items[key] for key in sorted(items, key=natural_key)})
