"""Writing atomic files: tab-separated text under a header of ``name:type``, which the atomic loader reads back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from simengine.data.sources.catalogue import Catalogue
from simengine.data.sources.gather import Gathered, Rows
from simengine.errors import InputError

VARIANT_FIELD = "variant_id"
_TYPES = {"item_id": "token", "price": "float", "release_year": "token", "domain": "token"}
_BATCH = 8_192  # rows that are text at once


@contextmanager
def new_folder(folder: Path) -> Iterator[Callable[[str], TextIO]]:
    """A folder that is made for the files opened in it; they have their names only when all went well.

    Raises :class:`InputError` where there is something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "this exists already, and nothing is overwritten", remedy="Name another folder.", file=str(folder)
        )
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    opened: dict[Path, TextIO] = {}

    def new(name: str) -> TextIO:
        path = folder / name
        opened[path] = path.with_name(f"{name}.partial").open("w", encoding="utf-8", newline="\n")
        return opened[path]

    try:
        yield new
        for path, file in opened.items():
            file.close()
            Path(file.name).replace(path)
    finally:
        for file in opened.values():
            file.close()
            Path(file.name).unlink(missing_ok=True)
        if made and not any(folder.iterdir()):
            folder.rmdir()


class InterWriter:
    """Writes rows of the spool as an ``.inter`` file, with columns for what the source has."""

    def __init__(self, file: TextIO, gathered: Gathered) -> None:
        self._file, self._gathered = file, gathered
        self._variants = any(gathered.variants.names)
        self._domains = any(gathered.domains)
        header = ["user_id:token", "item_id:token"]
        header += ["rating:float"] * gathered.rated + ["timestamp:float"]
        header += [f"{VARIANT_FIELD}:token"] * self._variants + ["domain:token"] * self._domains
        file.write("\t".join(header) + "\n")

    def write(self, rows: Rows) -> None:
        """Append some rows."""
        for start in range(0, len(rows), _BATCH):
            self._file.write("".join(map("\t".join, zip(*self._columns(rows[start : start + _BATCH]), strict=True))))

    def _columns(self, rows: Rows) -> Iterator[Iterator[str]]:
        found = self._gathered
        items = rows["item"].tolist()
        columns = [map(found.users.names.__getitem__, rows["user"].tolist()), map(found.items.names.__getitem__, items)]
        if found.rated:
            columns.append(map("{:.15g}".format, rows["rating"].tolist()))
        columns.append(map("{:.17g}".format, rows["time"].tolist()))
        if self._variants:
            columns.append(map(found.variants.names.__getitem__, rows["variant"].tolist()))
        if self._domains:
            columns.append(map(found.domains.__getitem__, items))
        yield from columns[:-1]
        yield (f"{text}\n" for text in columns[-1])


def write_items(file: TextIO, catalogue: Catalogue) -> None:
    """Write an ``.item`` file."""
    file.write("\t".join(f"{name}:{_TYPES.get(name, 'token_seq')}" for name in catalogue.columns) + "\n")
    for row in zip(*catalogue.completed(), strict=True):
        file.write("\t".join(row) + "\n")
