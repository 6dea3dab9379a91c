"""A folder of atomic files to a data set: finds the files, reads them, puts the parts together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from simengine.data.assemble import Candidates, Part, Rows, assemble, no_candidates
from simengine.data.atomic import read_table
from simengine.data.dataset import Dataset, Item
from simengine.data.items import DOMAIN_FIELD, make_items, of_domains, usual_columns, with_domains_of
from simengine.data.negatives import read_recorded
from simengine.data.settings import AtomicSettings, LogColumns
from simengine.data.splits import read_candidates, read_splits
from simengine.data.table import Table, digest
from simengine.data.whole_log import read_log
from simengine.errors import InputError

_SPLITS = {Part.TRAIN: "*.train.inter", Part.VALIDATION: "*.valid.inter", Part.TEST: "*.test.inter"}


def load_folder(settings: AtomicSettings) -> Dataset:
    """The data set that lies in a folder of atomic files. Raises :class:`InputError` with file, line and field."""
    files = _find(settings.path)
    item_table = read_table(files.items, numeric=False)
    log = read_table(files.log) if files.log is not None else None
    items, left_out, notes = _read_items(item_table, log, settings)
    positions = {item: position for position, item in enumerate(items)}
    if log is not None:
        rows, digests = _read_log(log, positions, left_out, settings), {"log": log.sha256}
    else:
        rows, digests = _read_splits(files.splits, positions, settings)
    digests["items"] = item_table.sha256
    candidates: Candidates = no_candidates
    if files.random is not None:
        candidates, digests["random"] = read_candidates(files.random, positions)
    name = settings.path.resolve().name
    dataset = assemble(rows, items, name=name, noun=settings.noun, notes=notes, candidates=candidates)
    if settings.negatives is not None:
        path = settings.path / settings.negatives
        negatives, digests["negatives"], more = read_recorded(path, dataset)
        dataset = replace(dataset, recorded_negatives=negatives, notes=(*dataset.notes, *more))
    return replace(dataset, digest=digest(digests))


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


def _read_items(
    table: Table, log: Table | None, settings: AtomicSettings
) -> tuple[Mapping[str, Item], tuple[str, ...], tuple[str, ...]]:
    """The items that are kept, the ids of those of other domains, and notes.

    A domain that the item table does not tell is taken from the log; where both do, the item table counts.
    """
    field = settings.domain or DOMAIN_FIELD
    by_log = log is not None and field in log and field not in table
    items, notes = make_items(table, usual_columns(table, None if by_log else settings.domain), settings.noun)
    if log is not None and field in log:
        items, more = with_domains_of(log, field, items, fill=by_log)
        notes = (*notes, *more)
    kept, more = of_domains(items, settings.domains, table.file)
    return kept, tuple(item for item in items if item not in kept), (*notes, *more)


def _read_log(log: Table, positions: Mapping[str, int], left_out: tuple[str, ...], settings: AtomicSettings) -> Rows:
    columns = LogColumns(
        user="user_id",
        item="item_id",
        time="timestamp" if settings.needs_time or "timestamp" in log else None,
        rating="rating" if settings.min_rating is not None or "rating" in log else None,
    )
    return read_log(log, columns, positions, settings, left_out)


def _read_splits(
    files: Mapping[Part, Path], positions: Mapping[str, int], settings: AtomicSettings
) -> tuple[Rows, dict[str, str]]:
    """The rows, and the SHA-256 of each file that they come from, by role."""
    tables = {part: read_table(path) for part, path in files.items()}
    _check_settings(settings, next(iter(tables.values())))
    rows = read_splits(tables, positions, settings.users)
    if not rows.users:
        raise InputError("no interaction is left", remedy="The split files have no rows.", file=str(settings.path))
    if Part.TRAIN not in tables:
        note = "there is no *.train.inter: nothing is re-enacted, all items before validation are given history"
        rows = replace(rows, notes=(*rows.notes, note))
    return rows, {part.name.lower(): table.sha256 for part, table in tables.items()}


def _check_settings(settings: AtomicSettings, table: Table) -> None:
    """Refuse what cannot be done with split files."""
    for field, wanted in (("timestamp", settings.clock == "time"), ("rating", settings.min_rating is not None)):
        if wanted:
            raise table.error(
                f"split files have no {field} for the items of a history, so the field {field} cannot be used",
                "Leave out clock: time and min_rating, or give the whole log as one .inter file.",
                line=1,
                field=field,
            )
    for setting, wanted in (
        ("split", settings.split is not None),
        ("core", settings.core is not None),
        ("min_interactions", settings.min_interactions > 1),
        ("domains", settings.domains is not None),
    ):
        if wanted:
            raise table.error(
                f"split files are used as given, so data.{setting} cannot be",
                f"Leave out {setting}, or give the whole log as one .inter file.",
            )
