"""Forking: a new run goes on from another at one of its events, with something changed, and pays for that alone."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from simengine import llm
from simengine.data import Dataset
from simengine.errors import InputError
from simengine.llm import CallStore, LanguageModel
from simengine.llm.backends.refuse import Refuse
from simengine.llm.calls import Entry
from simengine.llm.layers.inherit import Parent
from simengine.runlog import EventLine, Header, Reader, Writer
from simengine.runlog.records import Fork
from simengine.scenario.cast import Cast
from simengine.scenario.drive import Observer
from simengine.scenario.folder import Folder
from simengine.scenario.running import Finished, go_on, portable, provenance
from simengine.scenario.schema import Read, read
from simengine.scenario.setup import Setup
from simengine.scenario.yamlfile import dump


async def fork(
    parent: Path,
    sets: Sequence[str] = (),
    *,
    changed: Read | None = None,
    at: str | None = None,
    retry_failed: bool = False,
    out: Path | None = None,
    data: Dataset | None = None,
    backend: LanguageModel | None = None,
    environ: Mapping[str, str] = os.environ,
    observe: Observer | None = None,
    interruptible: bool = False,
) -> Finished:
    """Run a scenario again from the event ``at`` on (from the start where it is not given), with something changed.

    The change is ``sets``, laid over the parent's scenario, or a scenario ``changed`` in its place.

    What comes before ``at`` is taken over as it is. Behind it every event is executed anew, but a call that the parent
    has made in the same words has its outcome already: only what the change reaches is paid for. ``retry_failed`` asks
    again for calls that failed. The parent may be unfinished. The folder, unless ``out`` names it, is called after the
    parent's: ``<parent>-fork``, with a number if that is taken. Raises :class:`InputError` where there is no such
    event, or the change does not leave the events before it as they are; and :class:`RunStopped` like a run.
    """
    source = Folder.of(parent)
    kept, logged = _before(source, at)
    scenario, plain = read(source.scenario, sets) if changed is None else changed
    setup = Setup.of(scenario, data)
    setup.check()
    if kept and setup.header.data != logged.data:
        raise InputError(
            "the data changed, and the events before the fork are of the former ones",
            field="data",
            remedy="fork from the start (leave --at out), or leave the data as they are",
        )
    _check_pending(setup, kept)
    setup = replace(setup, header=_header(setup.header, logged, len(kept)))
    chosen = backend or llm.make_backend(scenario.llm, environ)
    folder = Folder.new(f"{source.path.resolve().name}-fork", out)
    with folder.held(), ExitStack() as opened:
        inherited = opened.enter_context(CallStore(source.calls, read_only=True))
        folder.scenario.write_text(dump(portable(plain)), encoding="utf-8")
        made = provenance(scenario.llm.limits.concurrency, source.path.resolve(), retry_failed)
        writer = Writer(folder.events, setup.header, made)
        for line in kept:
            writer.copy(line)
        await _copy_calls(inherited, folder, kept)
        history = [line.restored() for line in kept]
        parents = Parent(inherited, retry_failed)
        return await go_on(setup, folder, writer, chosen, history, (), observe, interruptible, parent=parents)


def _before(source: Folder, at: str | None) -> tuple[list[EventLine], Header]:
    """The events before the fork, and the parent's header."""
    with Reader(source.events) as reader:
        if at is None:
            return [], reader.header
        kept: list[EventLine] = []
        for line in reader:
            if line.event == at:
                return kept, reader.header
            kept.append(line)
    near = difflib.get_close_matches(at, [line.event for line in kept], n=3, cutoff=0.5)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise InputError(
        f"this run has no event {at!r}",
        file=str(source.path),
        remedy=f"{meant}`simengine trace RUN` shows the ids of its events",
    )


def _check_pending(setup: Setup, kept: Sequence[EventLine]) -> None:
    """See that what the events before the fork have scheduled can still happen."""
    happened = {line.event for line in kept}
    played = Cast(setup, Refuse()).handlers
    for line in kept:
        for spawned in line.spawns:
            if spawned.id not in happened and spawned.kind not in played:
                raise InputError(
                    f"no stage plays {spawned.id} any more, which the events before the fork have led to",
                    field="stages",
                    remedy=f"leave the stage as it is, or fork from {line.event} or before it",
                )


def _header(mine: Header, parents: Header, kept: int) -> Header:
    """The fork's header: it names what came before where that was made otherwise than what follows."""
    if parents.fork is not None and kept < parents.fork.events:
        raise InputError(
            "the parent is a fork itself, and this event stands before the place where it was forked",
            remedy="fork the run that it came from",
        )
    same = mine.scenario == parents.scenario and mine.prompts == parents.prompts
    if not kept:
        return mine
    if same:
        return msgspec.structs.replace(mine, fork=parents.fork)
    return msgspec.structs.replace(mine, fork=Fork(kept, parents.scenario, parents.prompts))


async def _copy_calls(parent: CallStore, folder: Folder, kept: Sequence[EventLine]) -> None:
    """Take over the calls of the events that are kept, so that the fork can be replayed by itself."""
    events = {line.event for line in kept}
    keys = {stamp.partition(" ")[0] for line in kept for stamp in line.calls.values()}
    if not events:
        return
    with CallStore(folder.calls) as store:
        for row in parent:
            if row.key in keys or row.request.call.partition("#")[0] in events:
                outcome = msgspec.structs.replace(row.outcome, attempts=0)
                await store.put(Entry(row.request, outcome, row.latency))
