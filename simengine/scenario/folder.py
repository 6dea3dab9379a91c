"""The folder of a run: its files by name, and the rule that no run overwrites another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simengine.errors import InputError, LogError

DEFAULT = Path("replays")


@dataclass(frozen=True)
class Folder:
    """The files of one run."""

    path: Path

    @property
    def scenario(self) -> Path:
        """The scenario as resolved, secrets left as ``${VAR}``."""
        return self.path / "scenario.yaml"

    @property
    def events(self) -> Path:
        """The history."""
        return self.path / "events.jsonl"

    @property
    def calls(self) -> Path:
        """The journal of model calls."""
        return self.path / "calls.sqlite"

    @property
    def report(self) -> Path:
        """Results, costs and failures of a finished run."""
        return self.path / "report.json"

    @classmethod
    def new(cls, name: str, out: Path | None) -> Folder:
        """Make a folder: ``out``, which must not exist, or ``replays/<name>``, with a number if that is taken."""
        if out is not None:
            try:
                out.mkdir(parents=True)
            except FileExistsError:
                raise InputError(
                    "this folder exists already, and a run never overwrites another",
                    file=str(out),
                    remedy="choose another --out, or go on with `simengine run --resume` if it is an unfinished run",
                ) from None
            return cls(out)
        number = 1
        while True:
            path = DEFAULT / (name if number == 1 else f"{name}-{number}")
            try:
                path.mkdir(parents=True)
                return cls(path)
            except FileExistsError:
                number += 1

    @classmethod
    def of(cls, path: Path) -> Folder:
        """The folder of a run that was made before."""
        folder = cls(path)
        if not folder.scenario.is_file() or not folder.events.is_file():
            raise LogError(
                "this is not the folder of a run: it has no scenario.yaml and events.jsonl",
                file=str(path),
                remedy="name a folder that `simengine run` made, such as replays/quickstart",
            )
        return folder
