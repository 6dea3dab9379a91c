"""A source as atomic files, in bounded memory: what the atomic loader makes of them is what the source gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simengine.data.sources.atomic_files import InterWriter, new_folder, write_items
from simengine.data.sources.gather import gather
from simengine.data.sources.lines import Watch
from simengine.data.sources.source import SourceSettings, found_in, open_source


@dataclass(frozen=True)
class Converted:
    """What was written: counts, the files' folder, and what the user should be told."""

    users: int
    items: int
    interactions: int
    folder: Path
    notes: tuple[str, ...]


def convert(settings: SourceSettings, out: Path, watch: Watch = lambda _: None) -> Converted:
    """Write the source's logs and item table as ``<folder>/<name>.inter`` and ``.item``, named after the folder.

    Rows stand in order of users, then time. Of the settings only format, path and domains count. Raises
    :class:`InputError`, and then leaves no file.
    """
    source = open_source(settings)
    with new_folder(out) as new, gather(source.logs, watch) as gathered:
        name = out.resolve().name
        inter = InterWriter(new(f"{name}.inter"), gathered)
        for rows in gathered.in_order():
            inter.write(rows)
        catalogue = source.catalogue(found_in(gathered), watch)
        write_items(new(f"{name}.item"), catalogue)
        notes = (gathered.time_note(), *gathered.rating_notes(), *gathered.repeat_notes(), *catalogue.notes())
    items = len(catalogue) + sum(item not in catalogue.rows for item in gathered.items.names)
    return Converted(len(gathered.users.names), items, gathered.rows - gathered.repeats, out, notes)
