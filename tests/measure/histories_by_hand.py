"""Writes a log whose events are stated by hand: what was said and what was remembered in each, and because of what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from simengine.kernel import Committed, Event, Note, Version
from simengine.runlog import SCHEMA, Header, Provenance, Writer
from simengine.world import Message

Says = tuple[str, str, str, Any, list[str]]
"""A message: sender, recipient, kind, body, causes."""
Keeps = tuple[str, str, int, Any, list[str]]
"""A memory version: agent, slot, number, value, causes."""


def write_story(path: Path, story: Iterable[tuple[str, Sequence[Says], Sequence[Keeps]]]) -> Path:
    """Write events by their names; the time of each is its place, its messages are ``<event>#.0``, ``#.1`` ..."""
    header = Header(schema=SCHEMA, seed=1, scenario="s", data="d", prompts={})
    writer = Writer(path, header, Provenance(date="2024-05-01", packages={}, concurrency=1))
    for place, (name, says, keeps) in enumerate(story):
        event = Event(id=name, kind="event", order=(place,), time=place)
        notes = [Note(f"{name}#.{at}", Message(*said[:4]), said[4]) for at, said in enumerate(says)]
        versions = [Version(*kept[:4], "unit", kept[4]) for kept in keeps]
        writer.commit(Committed(event, versions, notes, [], [], []))
    writer.end()
    writer.close()
    return path
