"""Files that commands export: one JSON object a line, in UTF-8, whole or not at all, and never over another file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simengine.errors import InputError


def refuse_existing(out: Path) -> None:
    """Raise :class:`InputError` where a file of this name is there."""
    if out.exists():
        raise InputError("this exists already, and nothing is overwritten", remedy="Name another file.", file=str(out))


def write_lines(out: Path, lines: Sequence[str]) -> None:
    """Write a new file. Raises :class:`InputError` where that cannot be done, or the file is there."""
    refuse_existing(out)
    part = out.with_name(f"{out.name}.part")
    try:
        part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        part.replace(out)
    except OSError as error:
        remedy = "Name a file in a folder that is there and where you may write."
        raise InputError(f"the file cannot be written: {error.strerror}", remedy=remedy, file=str(out)) from error
