"""Replaying: a run is executed again from its journal, with no model, and every event is compared with its log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import msgspec

from simengine import llm
from simengine.data import Dataset
from simengine.errors import LogError
from simengine.kernel import Restored
from simengine.llm import CallStore
from simengine.runlog import Comparer, Reader
from simengine.runlog.diff import EndOfLog
from simengine.scenario.drive import Observer, drive
from simengine.scenario.folder import Folder
from simengine.scenario.running import same
from simengine.scenario.schema import read
from simengine.scenario.setup import Setup


@dataclass(frozen=True)
class Replayed:
    """A replay that found no difference. ``finished`` tells whether the log goes to the run's end."""

    path: Path
    events: int
    calls: int
    finished: bool
    hash: str


async def replay(
    path: Path, sets: Sequence[str] = (), *, data: Dataset | None = None, observe: Observer | None = None
) -> Replayed:
    """Execute a run again from its journal, with no model call, and compare each event with its log.

    What a forked run has taken over from its parent is verified by checksum, and what follows is executed. Raises
    :class:`~simengine.errors.Divergence` at the first difference, :class:`~simengine.errors.ReplayMiss` where an answer
    is missing, :class:`LogError` where the log is damaged or belongs to other data or prompts.
    """
    folder = Folder.of(path)
    finished, logged = _extent(folder)
    calls = 0
    with Reader(folder.events) as reader, CallStore(folder.calls, read_only=True) as store:
        scenario, _ = read(folder.scenario, sets)
        setup = Setup.of(scenario, data)
        same(reader.header, setup, folder)
        # The log says where the run ends. It may go past a failure, for a resume may skip what a run stopped at.
        setup = replace(setup, rules=msgspec.structs.replace(setup.rules, stop_on_error=False))
        history = _taken_over(reader)
        comparer = Comparer(reader)
        # Behind the end of an unfinished log there are events whose answers may never have come.
        only = None if finished else logged
        with suppress(EndOfLog):
            driven = await drive(setup, llm.replay(store), comparer, history=history, only=only, observe=observe)
            calls = driven.calls.asked
        comparer.finish()
    return Replayed(path, comparer.events, calls, finished, comparer.sum)


def _extent(folder: Folder) -> tuple[bool, frozenset[str]]:
    """Whether a log goes to the run's end, and the ids of its events if it does not."""
    with Reader(folder.events) as reader:
        logged = [line.event for line in reader]
    return reader.end is not None, frozenset(() if reader.end is not None else logged)


def _taken_over(reader: Reader) -> list[Restored]:
    """The events that a forked log has from its parent, read off its beginning; none of any other log."""
    count = 0 if reader.header.fork is None else reader.header.fork.events
    history = [line.restored() for line in islice(iter(reader), count)]
    if len(history) < count:
        raise LogError("the log ends before the place where it was forked", remedy="fork the parent again")
    return history
