"""Split files as AgentCF's authors publish them: each row a user's history so far and the next item, used as given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from simengine.data.assemble import Candidates, Part, Rows, users_note
from simengine.data.atomic import read_lines
from simengine.data.table import FIRST_LINE, Table
from simengine.errors import InputError

NEGATIVES = 9
"""Candidates beside the target, as in AgentCF's evaluation (section 3.1.2): the first nine of the ``.random`` list."""


@dataclass
class _Sequence:
    """One user's items so far, with the part and source line of each."""

    items: list[str]
    parts: list[Part]
    lines: list[int]


@dataclass
class _Sequences:
    positions: Mapping[str, int]
    limit: int | None
    by_user: dict[str, _Sequence] = field(default_factory=dict)

    def add(self, table: Table, part: Part) -> None:
        """Append a split file's targets, after a check that each row's history is what came before."""
        columns = (table.ids("user_id"), table.texts("item_id_list"), table.ids("item_id"))
        for line, (user, listed, target) in enumerate(zip(*columns, strict=True), FIRST_LINE):
            history = listed.split(" ") if listed else []
            for item in (*history, target):
                if item not in self.positions:
                    raise _missing_item(item, table.file, line)
            sequence = self.by_user.get(user)
            if sequence is None:
                if len(self.by_user) == self.limit:
                    continue
                given = len(history)
                sequence = self.by_user[user] = _Sequence(history, [Part.GIVEN] * given, [line] * given)
            elif sequence.items != history:
                raise InputError(
                    f"the history of user {user} is not what the rows before it say: it lists {len(history)} items, "
                    f"while {len(sequence.items)} are known by then",
                    remedy="Rows of a user stand in order of time, each history being the last one with its target.",
                    file=table.file,
                    line=line,
                    field="item_id_list",
                )
            sequence.items.append(target)
            sequence.parts.append(part)
            sequence.lines.append(line)


def read_splits(tables: Mapping[Part, Table], positions: Mapping[str, int], limit: int | None) -> Rows:
    """The rows of split files. The k-th item of a user has time k; users stand in order of first appearance.

    ``positions`` gives each item's position, ``limit`` the number of users to keep.
    """
    sequences = _Sequences(positions, limit)
    for part in (Part.TRAIN, Part.VALIDATION, Part.TEST):
        if part in tables:
            sequences.add(tables[part], part)
    found = sequences.by_user
    lengths = [len(sequence.items) for sequence in found.values()]
    return Rows(
        users=tuple(found),
        user=np.repeat(np.arange(len(found), dtype=np.int32), lengths),
        item=np.array([positions[item] for sequence in found.values() for item in sequence.items], np.int32),
        time=np.array([step for length in lengths for step in range(1, length + 1)], np.int64),
        line=np.array([line for sequence in found.values() for line in sequence.lines], np.int64),
        part=np.array([part for sequence in found.values() for part in sequence.parts], np.int8),
        unit="step",
        notes=users_note(limit, len(found)),
    )


def read_candidates(path: Path, positions: Mapping[str, int]) -> tuple[Candidates, str]:
    """Candidates from a ``.random`` file (``user_id<TAB>ids``, no header), and the SHA-256 of its bytes.

    They are the first nine different ids that are not the target, and the target, in natural order of ids.
    """
    lines, sha256 = read_lines(path)
    lists: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(lines, 1):
        user, tab, listed = line.partition("\t")
        if not (user and tab and listed) or "\t" in listed:
            raise InputError(
                f"this is no user id, tab, list of item ids: {line[:80]!r}",
                remedy="Write user_id<TAB>item ids separated by blanks; the file has no header.",
                file=str(path),
                line=number,
            )
        if user in lists:
            raise InputError(f"user {user} is listed twice", remedy="Keep one.", file=str(path), line=number)
        lists[user] = number, listed.split(" ")

    def candidates(user: str, target: str) -> tuple[str, ...]:
        if user not in lists:
            raise InputError(
                f"user {user} has a test case, but no line here",
                remedy="Add the line.",
                file=str(path),
                field="user_id",
            )
        number, listed = lists[user]
        chosen = [item for item in dict.fromkeys(listed) if item != target][:NEGATIVES]
        for item in chosen:
            if item not in positions:
                raise _missing_item(item, str(path), number)
        return tuple(sorted((*chosen, target), key=positions.__getitem__))

    return candidates, sha256


def _missing_item(item: str, file: str, line: int) -> InputError:
    return InputError(
        f"item {item!r} is not in the item table",
        remedy="Add it to the .item file, or leave the line out.",
        file=file,
        line=line,
        field="item_id",
    )
