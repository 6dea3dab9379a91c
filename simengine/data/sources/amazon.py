"""Amazon Reviews of 2018 and of 2023: JSON lines of reviews and of item metadata, in files named after domains."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from simengine.data.sources.catalogue import Catalogue, Found
from simengine.data.sources.gather import LogFile, Raw
from simengine.data.sources.lines import Lines, Watch, first_line
from simengine.data.sources.text import flat, price, prose
from simengine.data.table import nearest
from simengine.errors import InputError

COLUMNS = ("item_id", "title", "category", "main_category", "price", "brand", "description", "features", "domain")

_NAME = re.compile(r"(?P<meta>meta_)?(?P<domain>.+?)(?:_\d+)?\.jsonl?(?:\.gz)?")
_SCRIPT = "getTime"  # pages of 2018 that were not read in whole left a piece of their script for a title


class _Review2018(msgspec.Struct, rename={"user": "reviewerID", "item": "asin", "rating": "overall",
                                          "time": "unixReviewTime"}, gc=False):  # fmt: skip
    user: str
    item: str
    time: int | float
    rating: float = math.nan
    variant: str = ""


class _Review2023(msgspec.Struct, rename={"user": "user_id", "item": "parent_asin", "variant": "asin",
                                          "time": "timestamp"}, gc=False):  # fmt: skip
    user: str
    item: str
    time: int | float
    rating: float = math.nan
    variant: str = ""


_Review: TypeAlias = _Review2018 | _Review2023


class _Meta(msgspec.Struct):
    """What is looked at of an item; names of 2018 and of 2023, values as they come."""

    parent_asin: str = ""
    asin: str = ""
    title: Any = None
    categories: Any = None
    category: Any = None
    main_category: Any = None
    main_cat: Any = None
    price: Any = None
    store: Any = None
    brand: Any = None
    description: Any = None
    features: Any = None
    feature: Any = None


class Amazon:
    """The files below a folder. Reviews and metadata are joined by ``parent_asin`` (2023) or ``asin`` (2018)."""

    def __init__(self, folder: Path, domains: Sequence[str] | None) -> None:
        self._reviews, self._meta = _find(folder, domains)
        self.logs = [LogFile(path, _rows, partial(_domain, domain)) for domain, path in self._reviews.items()]

    def catalogue(self, found: Found, watch: Watch) -> Catalogue:
        """The metadata of the items that occur, of repeated lines the first."""
        catalogue = Catalogue(COLUMNS, found)
        for domain, path in self._meta.items():
            catalogue.seen.clear()
            catalogue.joined = False
            lines = Lines(path)
            for number, meta in _decoded(lines, msgspec.json.Decoder(_Meta)):
                item = meta.parent_asin or meta.asin
                if catalogue.wants(item):
                    catalogue.add(item, _row(item, meta, found.domain(item)))
                catalogue.tell(watch, lines, number)
            catalogue.digests[f"items {path.name}"] = lines.sha256
            if not catalogue.joined:
                raise catalogue.no_overlap(path, domain)
        return catalogue


def _domain(domain: str, _: str) -> str:
    """All items of a file are of the domain that it is named after."""
    return domain


def _row(item: str, meta: _Meta, domain: str) -> tuple[tuple[str, ...], bool]:
    """An item's texts by column, and whether its price could be read."""
    title, main = flat(meta.title), prose(meta.main_category or meta.main_cat)
    amount, read = price(meta.price)
    return (
        item,
        "" if _SCRIPT in title else title,
        flat(meta.categories or meta.category) or main,
        main,
        amount,
        prose(meta.store or meta.brand),
        prose(meta.description),
        prose(flat(meta.features or meta.feature)),
        domain,
    ), read


def _rows(lines: Lines) -> Iterator[Raw]:
    """The reviews of a file, which is of 2023 if its first has a ``parent_asin``."""
    kind: type[_Review] = _Review2023 if b'"parent_asin"' in first_line(Path(lines.file)) else _Review2018
    for number, review in _decoded(lines, msgspec.json.Decoder(kind)):
        yield number, review.user, review.item, review.variant, review.rating, review.time


def _decoded(lines: Lines, decoder: msgspec.json.Decoder[Any]) -> Iterator[tuple[int, Any]]:
    decode = decoder.decode
    for number, line in lines:
        try:
            yield number, decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not line.strip():
                continue
            raise InputError(
                f"this is no line of Amazon reviews or metadata: {error}",
                remedy="Each line is a JSON object: of 2023 with user_id, parent_asin, timestamp, of 2018 with "
                "reviewerID, asin, unixReviewTime.",
                file=lines.file,
                line=number,
            ) from None


def _find(folder: Path, domains: Sequence[str] | None) -> tuple[dict[str, Path], dict[str, Path]]:
    """The files of reviews and of metadata, by domain."""
    reviews: dict[str, list[Path]] = {}
    meta: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.json*")):
        if match := _NAME.fullmatch(path.name):
            (meta if match["meta"] else reviews).setdefault(match["domain"], []).append(path)
    if not reviews:
        remedy = "Looked for files as Books.jsonl and meta_Books.jsonl (or .json, with .gz or without), in all folders."
        raise InputError("there are no files of Amazon reviews", remedy=remedy, file=str(folder))
    chosen = tuple(reviews) if domains is None else tuple(domains)
    return {domain: _single(reviews, domain, "", folder) for domain in chosen}, {
        domain: _single(meta, domain, "meta_", folder) for domain in chosen
    }


def _single(files: dict[str, list[Path]], domain: str, prefix: str, folder: Path) -> Path:
    """The one file of a domain."""
    paths = files.get(domain, [])
    if len(paths) == 1:
        return paths[0]
    if paths:
        here = ", ".join(str(path.relative_to(folder)) for path in paths)
        raise InputError(f"several files are of {domain}: {here}", remedy="Keep one.", file=str(folder))
    near = nearest(domain, files)
    raise InputError(
        f"there is no file {prefix}{domain}.jsonl or {prefix}{domain}.json, with .gz or without",
        remedy=f"Did you mean {near}?"
        if near and near != domain
        else "Put it there, or name the domains to be read "
        f"under data.domains; there are {', '.join(prefix + name for name in files) or 'none'}.",
        file=str(folder),
    )
