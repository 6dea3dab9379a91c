"""A whole log in atomic files as a source, for what is built from sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from simengine.data.atomic import parse_header, read_table
from simengine.data.items import DOMAIN_FIELD
from simengine.data.sources.atomic_files import VARIANT_FIELD
from simengine.data.sources.catalogue import Catalogue, Found
from simengine.data.sources.gather import LogFile, Raw
from simengine.data.sources.lines import Lines, Watch
from simengine.data.table import Table
from simengine.errors import InputError


class AtomicFiles:
    """A folder with one ``.inter`` and one ``.item`` file, whose items have domains."""

    def __init__(self, folder: Path) -> None:
        (inter,), (items,) = (sorted(folder.glob(pattern)) for pattern in ("*.inter", "*.item"))
        self._table: Table = read_table(items, numeric=False)
        self._ids = self._table.ids("item_id")
        self._domains = dict(zip(self._ids, self._table.texts(DOMAIN_FIELD), strict=True))
        self.logs = [LogFile(inter, _rows, self._domain)]

    def _domain(self, item: str) -> str:
        if item not in self._domains:
            remedy = "Add it to the item table, or leave its lines out."
            raise InputError(f"item {item!r} is not in the item table", remedy=remedy, file=self._table.file)
        return self._domains[item]

    def catalogue(self, found: Found, watch: Watch) -> Catalogue:
        """The rows of the items that occur, as they are."""
        columns = ("item_id", *(name for name in self._table.columns if name != "item_id"))
        catalogue = Catalogue(columns, found, digests={"items": self._table.sha256})
        for row in zip(*(self._table.texts(name) for name in columns), strict=True):
            if catalogue.wants(row[0]):
                catalogue.add(row[0], (row, True))
        return catalogue


def _rows(lines: Lines) -> Iterator[Raw]:
    """User, item, time and, where there are such, rating and variant of each line."""
    places: dict[str, int] = {}
    width = 0
    for number, line in lines:
        if number == 1:
            names = list(parse_header(line, lines.file))
            places, width = {name: place for place, name in enumerate(names)}, len(names)
            for name in ("user_id", "item_id", "timestamp"):
                if name not in places:
                    remedy = f"Add the field {name}; the fields are {', '.join(names)}."
                    raise InputError(f"there is no field {name}", remedy=remedy, file=lines.file, line=1, field=name)
            continue
        try:
            fields = line.decode().split("\t")
            if len(fields) != width:
                raise ValueError(f"{len(fields)} fields where the header names {width}")
            rating = float(fields[places["rating"]] or "nan") if "rating" in places else math.nan
            time = float(fields[places["timestamp"]])
            variant = fields[places[VARIANT_FIELD]] if VARIANT_FIELD in places else ""
            yield number, fields[places["user_id"]], fields[places["item_id"]], variant, rating, time
        except ValueError as error:
            raise InputError(
                f"this line cannot be read: {error}",
                remedy="Fields are separated by single tabs; rating and timestamp are numbers.",
                file=lines.file,
                line=number,
            ) from None
