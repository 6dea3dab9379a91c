"""What a source is, which settings open which, and a source as a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Protocol, TypeAlias

import numpy as np
from pydantic import Field

from simengine.data.assemble import assemble
from simengine.data.columns import Column, whole
from simengine.data.dataset import Dataset
from simengine.data.items import make_items, of_domains, usual_columns
from simengine.data.settings import AmazonSettings, LogColumns, MovieLensSettings, SteamSettings
from simengine.data.sources.amazon import Amazon
from simengine.data.sources.catalogue import Catalogue, Found
from simengine.data.sources.gather import Gathered, LogFile, gather
from simengine.data.sources.lines import Watch
from simengine.data.sources.movielens import MovieLens
from simengine.data.sources.steam import Steam
from simengine.data.table import Table, digest
from simengine.data.whole_log import read_log
from simengine.errors import InputError

SourceSettings: TypeAlias = Annotated[AmazonSettings | MovieLensSettings | SteamSettings, Field(discriminator="format")]


class Source(Protocol):
    """Some logs, and the item table that belongs to them."""

    @property
    def logs(self) -> Sequence[LogFile]:
        """The files of reviews."""
        ...

    def catalogue(self, found: Found, watch: Watch) -> Catalogue:
        """The item table, made when all logs are read."""
        ...


def open_source(settings: SourceSettings) -> Source:
    """The source that the settings name. Raises :class:`InputError` where files are missing."""
    if not settings.path.is_dir():
        raise InputError(
            "there is no such folder",
            remedy=f"data.path names the folder of the files, relative to the working directory ({Path.cwd()}).",
            file=str(settings.path),
        )
    if isinstance(settings, AmazonSettings):
        return Amazon(settings.path, settings.domains)
    return MovieLens(settings.path) if isinstance(settings, MovieLensSettings) else Steam(settings.path)


def found_in(gathered: Gathered) -> Found:
    """The items of the logs, all of them wanted, with their domains."""
    every = dict(zip(gathered.items.names, gathered.domains, strict=True))
    return Found(every, every)


def load_source(settings: SourceSettings, watch: Watch) -> Dataset:
    """The data set of a source: the same that its atomic files give. Raises :class:`InputError`."""
    source = open_source(settings)
    with gather(source.logs, watch) as gathered:
        log = _log(gathered, str(settings.path))
        catalogue = source.catalogue(found_in(gathered), watch)
    table = as_table(catalogue, str(settings.path))
    items, notes = make_items(table, usual_columns(table), settings.noun)
    kept, more = of_domains(items, settings.domains, str(settings.path))
    rated = settings.min_rating is not None or "rating" in log
    columns = LogColumns(user="user_id", item="item_id", time="timestamp", rating="rating" if rated else None)
    left_out = (item for item in items if item not in kept)
    rows = read_log(log, columns, {item: place for place, item in enumerate(kept)}, settings, left_out)
    return assemble(
        rows,
        kept,
        name=settings.path.resolve().name,
        noun=settings.noun,
        digest=digest({**gathered.digests, **catalogue.digests}),
        notes=(*gathered.repeat_notes(), *catalogue.notes(), *notes, *more),
    )


def _log(gathered: Gathered, file: str) -> Table:
    """All rows as a table."""
    rows = np.concatenate(list(gathered.in_order()))
    users, items = gathered.users.names, gathered.items.names
    columns: dict[str, Column] = {
        "user_id": [users[number] for number in rows["user"].tolist()],
        "item_id": [items[number] for number in rows["item"].tolist()],
        "timestamp": whole(rows["time"]),
    }
    if gathered.rated:
        columns["rating"] = whole(rows["rating"])
    return Table(file, columns, "", rows["line"])


def as_table(catalogue: Catalogue, file: str) -> Table:
    """The item table as all readers give it."""
    columns: Mapping[str, Column] = {
        name: list(texts) for name, texts in zip(catalogue.columns, catalogue.completed(), strict=True)
    }
    return Table(file, columns, "")
