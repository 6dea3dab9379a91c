"""The folder of a run: its files by name, and the rule that no run overwrites another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from simengine.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where two processes on one folder are the user's to avoid
    fcntl = None  # type: ignore[assignment]

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
            with suppress(FileExistsError):
                return cls(_made(out))
            raise InputError(
                "this exists already, and a run never overwrites another",
                file=str(out),
                remedy="choose another --out, or go on with `simengine run --resume` if it is an unfinished run",
            )
        number = 1
        while True:
            with suppress(FileExistsError):
                return cls(_made(DEFAULT / (name if number == 1 else f"{name}-{number}")))
            number += 1

    @classmethod
    def of(cls, path: Path) -> Folder:
        """The folder of a run that was made before. Raises :class:`InputError` where this is none."""
        folder = cls(path)
        if not folder.scenario.is_file() or not folder.events.is_file():
            variants = sorted(each.parent.name for each in path.glob("*/events.jsonl"))
            if variants:
                raise InputError(
                    f"this folder holds several runs: {', '.join(variants)}",
                    file=str(path),
                    remedy=f"name one of them, such as {path / variants[0]}",
                )
            lacking = "it has no scenario.yaml and events.jsonl" if path.is_dir() else "there is no such folder"
            raise InputError(
                f"this is not the folder of a run: {lacking}",
                file=str(path),
                remedy="name a folder that `simengine run` made, such as replays/quickstart",
            )
        return folder

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from running in this folder. The hold ends with the process, however that ends."""
        if fcntl is None:
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    "this run is under way in another process",
                    file=str(self.path),
                    remedy="wait until it has ended, or stop it",
                ) from None
            yield
        finally:
            os.close(handle)


def _made(path: Path) -> Path:
    """A new folder. Raises ``FileExistsError`` where the name is taken."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise
    except OSError as error:
        raise InputError(
            f"the folder of the run cannot be made: {error.strerror}",
            file=str(path),
            remedy="choose a place where you may write, with --out",
        ) from error
    return path
