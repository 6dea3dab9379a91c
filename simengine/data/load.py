"""From settings to a data set: finds the files, reads them, puts the parts together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from simengine.data.assemble import Candidates, Part, Rows, assemble, no_candidates
from simengine.data.atomic import read_table
from simengine.data.dataset import Dataset
from simengine.data.items import make_items
from simengine.data.market import make_market
from simengine.data.negatives import read_recorded
from simengine.data.settings import AtomicSettings, DataSettings, MarketSettings
from simengine.data.splits import read_candidates, read_splits
from simengine.data.whole_log import read_log
from simengine.errors import InputError

_SPLITS = {Part.TRAIN: "*.train.inter", Part.VALIDATION: "*.valid.inter", Part.TEST: "*.test.inter"}


def load(settings: DataSettings) -> Dataset:
    """The data set that the settings describe. Raises :class:`InputError` with file, line and field."""
    if isinstance(settings, MarketSettings):
        return make_market(settings)
    files = _find(settings.path)
    item_table = read_table(files.items, numeric=False)
    items, notes = make_items(item_table, settings.noun)
    positions = {item: position for position, item in enumerate(items)}
    rows, digests = _read_rows(files, positions, settings)
    digests["items"] = item_table.sha256
    if not rows.users:
        raise InputError(
            "no interaction is left", remedy="Check the files and data.min_rating.", file=str(settings.path)
        )
    candidates: Candidates = no_candidates
    if files.random is not None:
        candidates, digests["random"] = read_candidates(files.random, positions)
    if settings.users is not None and len(rows.users) < settings.users:
        notes = (*notes, f"{settings.users} users are asked for, the data have {len(rows.users)}")
    name = settings.path.resolve().name
    dataset = assemble(rows, items, name=name, noun=settings.noun, notes=notes, candidates=candidates)
    if settings.negatives is not None:
        path = settings.path / settings.negatives
        negatives, digests["negatives"], more = read_recorded(path, dataset)
        dataset = replace(dataset, recorded_negatives=negatives, notes=(*dataset.notes, *more))
    return replace(dataset, digest=_digest(digests))


@dataclass(frozen=True)
class _Files:
    """The files of a data set's folder: split files, or one whole log; ``random`` only beside split files."""

    splits: Mapping[Part, Path]
    log: Path | None
    random: Path | None
    items: Path


def _find(folder: Path) -> _Files:
    """The files of a folder. Split files go before a whole log beside them."""
    if not folder.is_dir():
        raise InputError(
            "there is no such folder",
            remedy="data.path names the folder of the .inter and .item files, relative to the working directory "
            f"({Path.cwd()}).",
            file=str(folder),
        )
    found = {part: path for part, pattern in _SPLITS.items() if (path := _single(folder, pattern)) is not None}
    items = _single(folder, "*.item")
    if found:
        log, random = None, _single(folder, "*.random")
        complete = Part.TEST in found
    else:
        log, random = _single(folder, "*.inter"), None
        complete = log is not None
    if items is None or not complete:
        here = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise InputError(
            f"files are missing; here is: {here}",
            remedy="Looked for one *.item, and for one *.test.inter (with *.train.inter, *.valid.inter, *.random), or "
            "for one *.inter with all interactions.",
            file=str(folder),
        )
    return _Files(found, log, random, items)


def _single(folder: Path, pattern: str) -> Path | None:
    """The only file of this pattern, if there is one."""
    paths = sorted(folder.glob(pattern))
    if len(paths) > 1:
        raise InputError(
            f"{len(paths)} files match {pattern}: {', '.join(path.name for path in paths)}",
            remedy="Keep one of them in the folder.",
            file=str(folder),
        )
    return paths[0] if paths else None


def _read_rows(files: _Files, positions: Mapping[str, int], settings: AtomicSettings) -> tuple[Rows, dict[str, str]]:
    """The rows, and the SHA-256 of each file that they come from, by role."""
    if files.log is not None:
        table = read_table(files.log)
        return read_log(table, positions, settings), {"log": table.sha256}
    tables = {part: read_table(path) for part, path in files.splits.items()}
    for field, wanted in (("timestamp", settings.clock == "time"), ("rating", settings.min_rating is not None)):
        if wanted:
            raise InputError(
                f"split files have no {field} for the items of a history, so the field {field} cannot be used",
                remedy="Leave out clock: time and min_rating, or give the whole log as one .inter file.",
                file=next(iter(tables.values())).file,
                line=1,
                field=field,
            )
    rows = read_splits(tables, positions, settings.users)
    if Part.TRAIN not in tables:
        note = "there is no *.train.inter: nothing is re-enacted, all items before validation are given history"
        rows = replace(rows, notes=(*rows.notes, note))
    return rows, {part.name.lower(): table.sha256 for part, table in tables.items()}


def _digest(parts: Mapping[str, str]) -> str:
    """One SHA-256 over the roles and digests of all files."""
    text = "".join(f"{role} {sha256}\n" for role, sha256 in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()
