"""Follows interest groups through a log: who was in a group when, how it was formed anew, what it showed to whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from simengine.errors import InputError
from simengine.runlog.records import EventLine
from simengine.runlog.trace import Trace

_GROUPING, _SLOT, _DRAFT = "grouping:", "groups", "grouping:draft"


class Formed(msgspec.Struct, frozen=True):
    """A group as one grouping has it, in force from an event on; ``version`` is the grouping's memory version."""

    id: str
    name: str
    tags: tuple[str, ...]
    members: tuple[str, ...]
    version: str = ""
    event: str = ""
    time: int | float = 0


class Shown(msgspec.Struct, frozen=True):
    """What a group showed to a user in an event: titles, the newest first."""

    event: str
    time: int | float
    user: str
    titles: tuple[str, ...]


class Stage(msgspec.Struct, frozen=True):
    """A group between two formings: who joined since the one before and who left, and what it showed."""

    formed: Formed
    joined: tuple[str, ...]
    left: tuple[str, ...]
    shown: tuple[Shown, ...]


def find_group(traced: Trace, name: str) -> list[Stage]:
    """A group's stages, oldest first. ``name`` is the id of one grouping's group, or a name, whose case is ignored.

    A group that is formed anew under the same name is the same group. Raises :class:`InputError` for one that is not
    there, with the names of those that are.
    """
    groupings = [formed for line in traced for formed in _formed(line)]
    wanted = {formed.name.casefold() for formed in groupings if formed.id == name} or {name.casefold()}
    found = [formed for formed in groupings if formed.name.casefold() in wanted]
    if not found:
        there = ", ".join(dict.fromkeys(formed.name for formed in groupings))
        raise InputError(
            "there is no such group in this run",
            remedy=f"its groups are {there}" if there else "no groups were formed in it",
            value=name,
        )
    shown: dict[str, list[Shown]] = {formed.id: [] for formed in found}
    for line in traced:
        for group, seen in _views(line):
            if group in shown:
                shown[group].append(seen)
    former: Sequence[str] = ()
    stages = []
    for formed in found:
        joined = tuple(member for member in formed.members if member not in former)
        left = tuple(member for member in former if member not in formed.members)
        stages.append(Stage(formed, joined, left, tuple(shown[formed.id])))
        former = formed.members
    return stages


def _formed(line: EventLine) -> Iterator[Formed]:
    """The groups that an event puts in force."""
    for memory in line.memories:
        if memory.agent.startswith(_GROUPING) and memory.agent != _DRAFT and memory.slot == _SLOT:
            for group in msgspec.convert(memory.value, list[Formed]):
                yield msgspec.structs.replace(group, version=memory.ref, event=line.event, time=line.time)


def _views(line: EventLine) -> Iterator[tuple[str, Shown]]:
    """What groups show in an event."""
    for message in line.messages:
        if message.kind == "view":
            titles = tuple(str(entry["title"]) for entry in message.body)
            yield message.sender, Shown(line.event, line.time, message.recipient, titles)
