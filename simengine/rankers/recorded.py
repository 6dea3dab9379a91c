"""Recorded: rankings that somebody made elsewhere, read from a file and measured like any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset
from simengine.errors import InputError


class _Row(msgspec.Struct):
    """One user's ranking; other fields are not looked at."""

    user_id: str
    matched_item_ids: list[str]


class Recorded:
    """Rankings from a JSON-lines file, a user each: ``{"user_id": ..., "matched_item_ids": [best first]}``.

    A list that is one longer than the candidates begins with a heading that was taken for an item: its first entry is
    dropped. Of an item that is named twice the first place counts; candidates that are not named tie behind all others;
    what is named and is no candidate takes no place. A user without a ranking gets NaN, and so does a user's second
    test case, since a ranking is of one case.
    """

    def __init__(self, path: Path, name: str) -> None:
        """Raises :class:`InputError` where there is no such file."""
        if not path.is_file():
            raise InputError("there is no file of recorded rankings", remedy="Name one.", file=str(path))
        self.name = name
        self._path = path
        self._rankings: dict[str, list[str]] | None = None

    def fit(self, dataset: Dataset) -> None:
        """Read the file. Raises :class:`InputError` where it cannot be read, or names a user twice."""
        rankings: dict[str, list[str]] = {}
        for number, line in enumerate(self._lines(), 1):
            try:
                row = msgspec.json.decode(line, type=_Row)
            except msgspec.DecodeError as error:
                raise self._error(f"this is no recorded ranking: {error}", number) from None
            if row.user_id in rankings:
                raise self._error(f"user {row.user_id} is ranked twice", number)
            rankings[row.user_id] = row.matched_item_ids
        self._rankings = rankings

    def score(self, case: Case, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Minus the place of each candidate in the user's ranking."""
        if self._rankings is None:
            raise RuntimeError("recorded rankings are read by fit: call it first")
        named = self._rankings.get(case.user) if case.number == 1 else None
        if named is None:
            return np.full(len(candidates), np.nan)
        if len(named) == len(candidates) + 1:
            named = named[1:]
        ranked = [item for item in dict.fromkeys(named) if item in set(candidates)]
        place = {item: at for at, item in enumerate(ranked)}
        return np.array([-place.get(item, len(candidates)) for item in candidates], np.float64)

    def _lines(self) -> list[bytes]:
        try:
            return self._path.read_bytes().splitlines()
        except OSError as error:
            problem = f"the recorded rankings cannot be read: {error.strerror}"
            raise InputError(problem, remedy="Name a readable file.", file=str(self._path)) from None

    def _error(self, problem: str, line: int) -> InputError:
        remedy = 'Each line is like {"user_id": "1", "matched_item_ids": ["7", "9"]}, one for each user.'
        return InputError(problem, remedy=remedy, file=str(self._path), line=line)
