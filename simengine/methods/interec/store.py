"""A file of demonstrations that were generated, one a line: how it is written, and how a scenario reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, PrivateAttr, RootModel, model_serializer

from simengine.data.atomic import read_lines
from simengine.errors import InputError
from simengine.llm.replies import Unreadable
from simengine.llm.replies.lines import one_line
from simengine.methods.interec import reply
from simengine.methods.interec.demonstrations import Pair
from simengine.methods.interec.faults import Fault

_FIELD = "method.store"
_REMEDY = 'Each line is like {"request": "...", "plan": {"thought": "...", "steps": [{"tool": "...", "input": {}}]}}.'


class Store(RootModel[Path]):
    """Pairs from a file that ``simengine export demonstrations`` wrote; its path is relative to the working directory.

    It is read at once. What stands for it as plain data is the SHA-256 of its bytes: scenarios are told apart by their
    demonstrations, and not by where these lie. Raises :class:`InputError` with file, line and field.
    """

    model_config = ConfigDict(frozen=True)

    _pairs: tuple[Pair, ...] = PrivateAttr()
    _sha256: str = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Read the file."""
        file = str(self.root)
        lines, self._sha256 = read_lines(self.root)
        if not lines:
            raise InputError("the file holds no demonstration", remedy=_REMEDY, file=file, field=_FIELD)
        self._pairs = tuple(_pair(line, file, number) for number, line in enumerate(lines, 1))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs in the order of the lines."""
        return self._pairs

    @model_serializer
    def _told(self) -> str:
        return self._sha256


def line(request: str, plan: Mapping[str, Any], **origin: str) -> str:
    """A pair as a line of the file; ``plan`` has the form of a planner's reply, ``origin`` says where it is from."""
    kept = {name: plan[name] for name in ("thought", "steps")}
    return json.dumps({"request": request, "plan": kept, **origin}, ensure_ascii=False)


def _pair(line: str, file: str, number: int) -> Pair:
    """The pair of a line; fields that say where it is from are not looked at."""

    def wrong(problem: str, field: str | None = None) -> InputError:
        return InputError(problem, remedy=_REMEDY, file=file, line=number, field=field)

    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise wrong(f"this is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise wrong("this is no JSON object")
    request, plan = said.get("request"), said.get("plan")
    if not isinstance(request, str) or not request.strip():
        raise wrong("a demonstration has a request, which is a text", "request")
    if not isinstance(plan, dict):
        raise wrong("a demonstration has a plan, which is an object", "plan")
    try:
        # JSON can spell lone surrogates, which no prompt can hold
        return Pair(one_line(request.encode("utf-8", "replace").decode()), reply.read(json.dumps(plan)))
    except (Unreadable, Fault) as error:
        raise wrong(f"this plan is not to be carried out: {error}", "plan") from None
