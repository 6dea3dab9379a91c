"""What is written beside a data set that was constructed: how it was done, and a scenario's part that loads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simengine.data.settings import Ratio


@dataclass(frozen=True)
class Kept:
    """What was left after a step."""

    step: str
    users: int
    items: int
    interactions: int


def readme(
    name: str, options: Mapping[str, Any], steps: Sequence[Kept], notes: Sequence[str], digests: Mapping[str, str]
) -> str:
    """The account of a construction, in Markdown."""
    return "\n".join(_readme(name, options, steps, notes, digests)) + "\n"


def _readme(
    name: str, options: Mapping[str, Any], steps: Sequence[Kept], notes: Sequence[str], digests: Mapping[str, str]
) -> Iterator[str]:
    yield from (f"# {name}", "", "A cross-domain data set, made by `simengine data cross-domain`.", "")
    yield from ("| kept | users | items | interactions |", "|---|---|---|---|")
    yield from (f"| {one.step} | {one.users} | {one.items} | {one.interactions} |" for one in steps)
    yield from ("", *(f"- {note}" for note in notes))
    yield from ("", f"Options: `{' '.join(_as_typed(options))}`")
    yield from ("", "SHA-256 of the sources:", "", *(f"- {role}: {digest}" for role, digest in digests.items()))


def _as_typed(options: Mapping[str, Any]) -> Iterator[str]:
    """The options as one writes them for the command; what is left out (all domains) is not said."""
    split = options["split"]
    flat = {
        **options,
        "split": None,
        "ratio": ":".join(f"{share:g}" for share in split["ratio"]),
        "split_by": split["by"],
    }
    for name, value in flat.items():
        if value is not None:
            text = ",".join(value) if isinstance(value, list) else f"{value:g}" if isinstance(value, float) else value
            yield f"--{name.replace('_', '-')} {text}"


def scenario_part(folder: Path, split: Ratio) -> str:
    """The ``data`` of a scenario that uses the data set, for ``extends``."""
    ratio = ", ".join(map(repr, split.ratio))
    return (
        "# Extend this, or copy it into a scenario. The path is relative to the working directory.\n"
        "data:\n"
        "  format: atomic\n"
        f"  path: {folder}\n"
        "  clock: time\n"
        f"  split: {{ratio: [{ratio}], by: {split.by}}}\n"
    )
