"""The seam for models that answer whole files of requests, hours later, and what passes through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from simengine.llm.request import Completion, Request

Line: TypeAlias = Mapping[str, Any]
"""One line of a file of results, as the server wrote it."""

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class Written(msgspec.Struct, frozen=True):
    """A request as it goes into a file.

    ``path`` is the part of the protocol that it is for (all lines of a file are for one), ``sent`` is what a
    completion's ``sent`` will say, and ``version`` is given back to :meth:`OfflineModel.read`.
    """

    path: str
    body: dict[str, Any]
    sent: str
    version: int


class BatchState(msgspec.Struct, frozen=True):
    """What a server says of a batch: its status, its files of results, and ``problem``, why it failed as a whole."""

    id: str
    status: str
    files: tuple[str, ...] = ()
    problem: str = ""
    completed: int = 0
    failed: int = 0

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in ENDED


class BatchService(Protocol):
    """A server's side of batches.

    Each call is one attempt. It raises :class:`~simengine.llm.transient.Transient` for what may pass, and
    :class:`~simengine.errors.RunStopped` for all else.
    """

    async def upload(self, lines: bytes) -> str:
        """Store a file of requests, one JSON object a line; the file's id."""
        ...

    async def create(self, path: str, file: str, label: str) -> BatchState:
        """Begin a batch over a stored file. ``label`` is a text by which it can be found again."""
        ...

    async def find(self, label: str) -> BatchState | None:
        """The batch of this label, if it is among the newest hundred."""
        ...

    async def look(self, batch: str) -> BatchState | None:
        """How a batch stands; ``None`` where the server does not know it (any more)."""
        ...

    async def download(self, file: str) -> dict[str, Line]:
        """The lines of a file of results by their ``custom_id``; none where the server no longer has the file."""
        ...


@runtime_checkable
class OfflineModel(Protocol):
    """A language model whose requests can also go into files."""

    @property
    def batches(self) -> BatchService: ...

    async def complete(self, request: Request) -> Completion: ...

    def write(self, request: Request) -> Written:
        """The request as it is sent, by all that is known of the server now."""
        ...

    def read(self, request: Request, sent: str, version: int, line: Line | None) -> Completion:
        """The completion in a line of results; ``line`` is ``None`` where there was none for this request.

        Raises like ``complete`` does for one attempt, :class:`~simengine.llm.transient.Transient` where the request is
        worth sending again. ``sent`` and ``version`` are those of its :class:`Written` (the version 0 for another
        process's).
        """
        ...
