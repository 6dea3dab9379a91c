"""Logs whose columns have names of the user's own: CSV and Parquet files, and data frames from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from simengine.data.assemble import assemble
from simengine.data.csvfile import read_csv
from simengine.data.dataset import Dataset
from simengine.data.frames import read_frame, read_parquet
from simengine.data.items import items_of_log, make_items, of_domains
from simengine.data.settings import (
    CsvSettings,
    FrameSettings,
    ItemColumns,
    LogColumns,
    MappedSettings,
    ParquetSettings,
)
from simengine.data.table import Table, Wanted, digest, nearest
from simengine.data.whole_log import read_log
from simengine.errors import InputError

Notes: TypeAlias = tuple[str, ...]


def load_mapped(settings: CsvSettings | ParquetSettings) -> Dataset:
    """The data set of a log in a file, and of its item table if it has one. Raises :class:`InputError`."""
    log, notes = _read_file(settings, settings.path, _log_columns(settings.columns, "data.columns."))
    items = None
    if settings.items is not None:
        path = settings.path.parent / settings.items.path
        items, more = _read_file(settings, path, _item_columns(settings.items, "data.items."))
        notes = (*notes, *more)
    return _dataset(log, items, settings, settings.items, settings.path.stem, notes)


def from_frame(
    frame: Any,
    *,
    columns: Mapping[str, str],
    items: Any = None,
    item_columns: Mapping[str, str] | None = None,
    name: str = "frame",
    noun: str = "item",
    clock: Literal["step", "time"] | None = None,
    users: int | None = None,
    domains: tuple[str, ...] | None = None,
    min_rating: float | None = None,
    core: int | None = None,
    min_interactions: int = 1,
    split: Literal["leave_one_out"] | Mapping[str, Any] | None = None,
) -> Dataset:
    """A data set from a data frame with one row an interaction.

    A frame is anything of pandas, polars or pyarrow, or a mapping of column names to lists. ``columns`` names its
    columns by role: ``user``, ``item``, and where there are such ``rating`` and ``time`` (dates, or seconds or
    milliseconds since 1970). ``items`` is the frame of the item table, ``item_columns`` names its ``id``, ``title`` and
    perhaps ``category`` and ``domain``; what other columns hold is kept as text. The rest is as under ``data`` in a
    scenario. Neither frame is changed or kept.

    Raises :class:`InputError` with row (the first is row 0) and column.
    """
    settings = _checked(
        columns=columns,
        item_columns=item_columns,
        noun=noun,
        clock=clock,
        users=users,
        domains=domains,
        min_rating=min_rating,
        core=core,
        min_interactions=min_interactions,
        split=split,
    )
    if (items is None) != (settings.item_columns is None):
        raise InputError(
            "items and item_columns belong together",
            remedy="Give the frame of the item table as items, and item_columns={'id': ..., 'title': ...}.",
        )
    log = read_frame(frame, name, _log_columns(settings.columns, "columns."))
    item_table = None
    if settings.item_columns is not None:
        item_table = read_frame(items, f"items of {name}", _item_columns(settings.item_columns, "item_columns."))
    return _dataset(log, item_table, settings, settings.item_columns, name)


def _dataset(
    log: Table,
    item_table: Table | None,
    settings: MappedSettings,
    columns: ItemColumns | None,
    name: str,
    notes: Notes = (),
) -> Dataset:
    digests = {"log": log.sha256}
    if item_table is None or columns is None:
        items, more = items_of_log(log.ids(settings.columns.item))
    else:
        digests["items"] = item_table.sha256
        items, more = make_items(item_table, columns, settings.noun)
    kept, said = of_domains(items, settings.domains, log.file if item_table is None else item_table.file)
    positions = {item: position for position, item in enumerate(kept)}
    rows = read_log(log, settings.columns, positions, settings, (item for item in items if item not in kept))
    return assemble(rows, kept, name=name, noun=settings.noun, digest=digest(digests), notes=(*notes, *more, *said))


def _read_file(settings: CsvSettings | ParquetSettings, path: Path, wanted: Wanted) -> tuple[Table, Notes]:
    if isinstance(settings, CsvSettings):
        return read_csv(path, wanted, settings.separator, settings.encoding)
    return read_parquet(path, wanted), ()


def _log_columns(columns: LogColumns, setting: str) -> Wanted:
    named = columns.named()
    numeric = frozenset(named[role] for role in ("time", "rating") if role in named)
    return Wanted({setting + role: name for role, name in named.items()}, numeric)


def _item_columns(columns: ItemColumns, setting: str) -> Wanted:
    named = {"id": columns.id, "title": columns.title, "category": columns.category, "domain": columns.domain}
    return Wanted({setting + role: name for role, name in named.items() if name is not None}, others=True)


def _checked(**arguments: Any) -> FrameSettings:
    """The arguments of :func:`from_frame` as settings; the first one that is wrong is told."""
    try:
        return FrameSettings.model_validate(arguments)
    except ValidationError as error:
        # A key that is not known explains one that is missing, and a rule of our own what a union's members say.
        telling = ("value_error", "extra_forbidden")
        detail = max(error.errors(include_url=False), key=lambda one: one["type"] in telling)
    argument, *keys = detail["loc"] or ("",)
    field = ".".join(map(str, (argument, *keys))) if argument in ("columns", "item_columns") else str(argument)
    problem, remedy = detail["msg"].removeprefix("Value error, "), "Correct this argument of from_frame."
    if detail["type"] == "extra_forbidden":
        near = nearest(str(keys[-1]), (LogColumns if argument == "columns" else ItemColumns).model_fields)
        problem, remedy = "the key is not known here", f"Did you mean `{near}`?" if near else "Leave it out."
    elif detail["type"] == "missing":
        problem, remedy = "the key is required", f"Add it, as in {{{keys[-1]!r}: COLUMN}}."
    raise InputError(problem, remedy=remedy, field=field or None)
