"""A finished or unfinished run as Python values: its report, its messages, its memories, read from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from simengine.errors import InputError
from simengine.kernel import Version
from simengine.measure import Result
from simengine.measure.chain import Chain
from simengine.runlog import EventLine, MessageLine, Reader
from simengine.runlog.trace import Trace
from simengine.scenario.folder import Folder
from simengine.scenario.following import follow
from simengine.scenario.loading import load_run, open_trace
from simengine.scenario.report import Report, read_report
from simengine.scenario.schema import Scenario, read
from simengine.world import Graph, item, user

if TYPE_CHECKING:
    import networkx

Row = TypeVar("Row", bound=msgspec.Struct)


class Table(Sequence[Row], Generic[Row]):
    """Rows of one kind: a sequence of plain values, and a pandas DataFrame where pandas is installed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Table[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Table[Row]:
        return Table(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        kind = type(self._rows[0]).__name__ if self._rows else "row"
        return f"<Table of {len(self)} x {kind}>"

    def to_pandas(self) -> Any:
        """The rows as a DataFrame, one column per field. Raises :class:`InputError` where pandas is missing."""
        try:
            import pandas
        except ImportError:
            raise InputError("pandas is not installed", remedy="pip install pandas") from None
        return pandas.DataFrame([msgspec.structs.asdict(row) for row in self._rows])


class SaidMessage(MessageLine):
    """A message, with the event in which it was sent and its simulated time."""

    event: str = ""
    time: int | float = 0


class MemoryVersion(msgspec.Struct, frozen=True):
    """A memory version, with the event that made it and its simulated time. ``because`` names its causes."""

    agent: str
    slot: str
    version: int
    value: Any
    unit: str
    because: tuple[str, ...]
    append: bool
    event: str
    time: int | float


class Run:
    """The folder of a run, opened. Nothing is kept but the path; every question reads the log anew, as a stream."""

    def __init__(self, path: str | Path) -> None:
        self._folder = Folder.of(Path(path))

    def __repr__(self) -> str:
        return f"<Run {self.path}>"

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._folder.path

    @property
    def scenario(self) -> Scenario:
        """The scenario as it was run."""
        return read(self._folder.scenario)[0]

    @property
    def report(self) -> Report:
        """The report. Raises :class:`InputError` where the run is not finished."""
        return read_report(self.path)

    @property
    def metrics(self) -> Table[Result]:
        """The results: a row for each stage, ranker, metric and k, with its interval."""
        return Table(self.report.results)

    @property
    def hash(self) -> str:
        """The hash of the semantic records, as far as the log goes."""
        with Reader(self._folder.events) as reader:
            for _ in reader:
                pass
        return reader.sum

    def events(self) -> Iterator[EventLine]:
        """The log's events in commit order, as a stream."""
        return iter(Reader(self._folder.events))

    def messages(self, agent: str | None = None) -> Table[SaidMessage]:
        """The messages (that an agent sent or received), in the order of the log.

        Raises :class:`InputError` for an agent that neither the log nor the run's data know.
        """
        _check_name(agent)
        found = Table(
            SaidMessage(**msgspec.structs.asdict(message), event=line.event, time=line.time)
            for line in self.events()
            for message in line.messages
            if agent in (None, message.sender, message.recipient)
        )
        if agent is not None and not found:
            self._check_known(agent)
        return found

    def graph(self) -> networkx.MultiGraph[str]:
        """The bipartite graph of what the run has re-enacted: users (``bipartite`` 0) and items (1).

        Edges have a ``kind`` (``interaction``, ``exposure``) and a simulated ``time``. What is given as history and
        not re-enacted is not in the log.
        """
        graph = Graph()
        for place, line in enumerate(self.events()):
            for edge in line.edges:
                graph.add(edge, (place,))
        return graph.to_networkx()

    def chain(self, preference: str, agent: str) -> Chain:
        """How a preference came to an agent (``user:12``) that held it: from its planting, from memory to memory.

        ``str()`` of it is the text that ``simengine trace`` prints, ``to_networkx()`` its graph. Raises
        :class:`InputError` where the agent never held it, and where the run's data are not here.
        """
        _check_name(agent)
        return follow(self.path, open_trace(self.path)[0], preference).chain(agent)

    def memories(self, agent: str | None = None) -> Table[MemoryVersion]:
        """The memory versions that were written (of an agent such as ``user:12``), in the order of the log.

        What an agent began with, its version 0, is no part of the log; ``simengine trace`` shows it. Raises
        :class:`InputError` for an agent that neither the log nor the run's data know.
        """
        _check_name(agent)
        found = Table(
            _memory(version, line)
            for line in self.events()
            for version in line.memories
            if agent in (None, version.agent)
        )
        if agent is not None and not found:
            self._check_known(agent)
        return found

    def _check_known(self, agent: str) -> None:
        """Refuse an agent that neither the log nor the data know, with the nearest of those in the log."""
        try:
            Trace(self._folder.events).begun(agent)
        except InputError:
            setup = load_run(self.path).setup
            if setup is None or agent not in {*map(user, setup.dataset.users), *map(item, setup.dataset.items)}:
                raise


def _check_name(agent: str | None) -> None:
    if agent is not None and ":" not in agent:
        remedy = f"write user:{agent} or item:{agent}"
        raise InputError("the name of an agent says what it is", remedy=remedy, agent=agent)


def _memory(version: Version, line: EventLine) -> MemoryVersion:
    fields = msgspec.structs.asdict(version)
    fields["because"] = tuple(map(str, version.because))
    return MemoryVersion(**fields, event=line.event, time=line.time)
