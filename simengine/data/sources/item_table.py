"""An item table without a log: of atomic files, or of Steam."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from simengine.data.atomic import read_table
from simengine.data.dataset import Item
from simengine.data.items import make_items, usual_columns
from simengine.data.settings import GivenItems
from simengine.data.sources.catalogue import Found
from simengine.data.sources.lines import Watch
from simengine.data.sources.source import as_table
from simengine.data.sources.steam import games, single
from simengine.data.table import digest
from simengine.errors import InputError


def read_items(settings: GivenItems, noun: str, watch: Watch) -> tuple[Mapping[str, Item], str, tuple[str, ...]]:
    """The items by id in natural order of ids, the digest of the file, and notes. Raises :class:`InputError`."""
    if not settings.path.is_dir():
        raise InputError(
            "there is no such folder",
            remedy=f"data.items.path names the folder of the item table, relative to the working directory "
            f"({Path.cwd()}).",
            file=str(settings.path),
        )
    notes: tuple[str, ...] = ()
    if settings.format == "atomic":
        table = read_table(single(settings.path, ".item"), numeric=False)
        sha256 = digest({"items": table.sha256})
    else:
        file = single(settings.path, "games")
        catalogue = games(file, Found({}, {}), watch)
        table, sha256, notes = as_table(catalogue, str(file)), digest(catalogue.digests), tuple(catalogue.notes())
    items, said = make_items(table, usual_columns(table), noun)
    return items, sha256, (*notes, *said)
