"""Opens runs that were made before for those who read them: the log, and the data that it rests on if they are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simengine.data import Dataset
from simengine.errors import InputError
from simengine.llm.backends.refuse import Refuse
from simengine.runlog import Header, Reader
from simengine.runlog.trace import Initial, Trace
from simengine.scenario.cast import Cast
from simengine.scenario.folder import Folder
from simengine.scenario.schema import read
from simengine.scenario.setup import Setup


@dataclass(frozen=True)
class LoadedRun:
    """A run's folder and header, and its setup; ``setup`` is missing where ``problem`` says why it cannot be rebuilt.

    A setup is only taken where the data are those of the run, by their hash.
    """

    folder: Folder
    header: Header
    setup: Setup | None
    problem: str = ""


def load_run(path: Path) -> LoadedRun:
    """Open a run, finished or not. Raises :class:`~simengine.errors.InputError` where this is not the folder of one."""
    folder = Folder.of(path)
    with Reader(folder.events) as reader:
        header = reader.header
    try:
        setup = Setup.of(read(folder.scenario)[0])
    except InputError as error:
        return LoadedRun(folder, header, None, str(error))
    if header.data != setup.header.data:
        return LoadedRun(folder, header, None, "the data changed since the run was made")
    return LoadedRun(folder, header, setup)


@dataclass(frozen=True)
class Known:
    """How the agents of a run are known to one another.

    ``slots`` are, for each kind of agent, the slot by which others know it; ``initial`` gives what an agent starts
    with, which is nothing where ``problem`` says why that is not known.
    """

    slots: Mapping[str, str]
    initial: Initial
    problem: str = ""


def known_by(path: Path, data: Dataset | None = None) -> Known:
    """How the agents of a run are known, as its method says.

    ``data`` are those of a run whose data were handed over in Python. Raises :class:`InputError` where they are not
    here.
    """
    folder = Folder.of(path)
    setup = Setup.of(read(folder.scenario)[0], data)
    slots = Cast(setup, Refuse()).method.known_by
    with Reader(folder.events) as reader:
        header = reader.header
    for changed, what in (
        (header.data != setup.header.data, "data"),
        (header.prompts != setup.header.prompts, "prompts"),
    ):
        if changed:
            return Known(slots, lambda _: {}, f"the {what} changed since the run was made")
    return Known(slots, _initial(setup))


def open_trace(path: Path) -> tuple[Trace, str]:
    """An index over a run's log; and why first memories are not known, or an empty text where they are.

    They are written from prompts, so they are only told where no prompt has changed since.
    """
    run = load_run(path)
    if run.setup is None:
        return Trace(run.folder.events), run.problem
    if run.header.prompts != run.setup.header.prompts:
        return Trace(run.folder.events), "the prompts changed since the run was made"
    return Trace(run.folder.events, _initial(run.setup)), ""


def _initial(setup: Setup) -> Initial:
    """What agents start with: their method says so, and knows users and items; a venue remembers nothing."""
    method = Cast(setup, Refuse()).method

    def initial(agent: str) -> Mapping[str, Any]:
        try:
            return method.initial(agent)
        except KeyError:
            return {}

    return initial
