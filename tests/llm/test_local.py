"""Local computations are recorded as calls are, and what a parent has recorded is not computed or asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from simengine import llm
from simengine.errors import CallFailed, ReplayMiss
from simengine.llm import CallStore, Message, Request, Sampling
from simengine.llm.backends.scripted import Scripted
from simengine.llm.layers.inherit import Parent
from simengine.llm.layers.local import LOCAL, Tool
from simengine.llm.settings import LLMSettings

NEAR = Request(
    "nearest", f"{LOCAL}embed", (), Sampling(temperature=0.0), {"query": "a", "pool": ("b", "c")}, "e#nearest"
)
DRAWN = Request("choose", "m", (Message("user", "which?"),), Sampling(temperature=1.0), {}, "e#choose")


class Counting:
    """A tool that counts how often it is used."""

    def __init__(self) -> None:
        self.used = 0

    def tools(self, _: llm.Stack) -> Mapping[str, Tool]:
        async def near(request: Request) -> str:
            self.used += 1
            return "[1, 0]"

        return {"nearest": near}


def ask(path: Path, request: Request, **more: object) -> str:
    async def main() -> str:
        with CallStore(path) as store:
            stack = llm.build(LLMSettings(), store, **more)  # type: ignore[arg-type]
            async with stack:
                return (await stack.complete(request)).text

    return asyncio.run(main())


def not_asked(request: Request) -> str:
    raise AssertionError(f"asked for {request.task}")


def test_it_is_computed_once_and_replayed_from_the_journal(tmp_path: Path) -> None:
    counting, model = Counting(), Scripted(not_asked)
    path = tmp_path / "calls.sqlite"
    for _ in range(2):
        assert ask(path, NEAR, tools=counting.tools, backend=model) == "[1, 0]"
    assert counting.used == 1

    async def replayed() -> str:
        with CallStore(path, read_only=True) as store:
            return (await llm.stack.replay(store).complete(NEAR)).text

    assert asyncio.run(replayed()) == "[1, 0]"


def test_a_replay_that_lacks_it_says_so(tmp_path: Path) -> None:
    with CallStore(tmp_path / "calls.sqlite") as store, pytest.raises(ReplayMiss):
        asyncio.run(llm.stack.replay(store).complete(NEAR))


def test_it_costs_nothing(tmp_path: Path) -> None:
    ask(tmp_path / "calls.sqlite", NEAR, tools=Counting().tools, backend=Scripted(not_asked))
    with CallStore(tmp_path / "calls.sqlite", read_only=True) as store:
        assert [row.outcome.attempts for row in store] == [0]


def test_a_fork_inherits_draws_and_computations(tmp_path: Path) -> None:
    parent, child = tmp_path / "parent.sqlite", tmp_path / "child.sqlite"
    ask(parent, DRAWN, backend=Scripted(lambda _: "this one"))
    ask(parent, NEAR, tools=Counting().tools, backend=Scripted(not_asked))
    counting = Counting()
    with CallStore(parent, read_only=True) as journal:
        inherited = Parent(journal)
        assert ask(child, DRAWN, backend=Scripted(not_asked), parent=inherited) == "this one"
        assert ask(child, NEAR, tools=counting.tools, backend=Scripted(not_asked), parent=inherited) == "[1, 0]"
    assert counting.used == 0


def test_failures_are_inherited_unless_they_are_to_be_retried(tmp_path: Path) -> None:
    def fail(request: Request) -> str:
        raise CallFailed("filtered", reason="content_filter", remedy="", attempts=2)

    parent = tmp_path / "parent.sqlite"
    with pytest.raises(CallFailed):
        ask(parent, DRAWN, backend=Scripted(fail))
    with CallStore(parent, read_only=True) as journal:
        with pytest.raises(CallFailed, match="filtered"):
            ask(tmp_path / "same.sqlite", DRAWN, backend=Scripted(not_asked), parent=Parent(journal))
        again = ask(
            tmp_path / "again.sqlite",
            DRAWN,
            backend=Scripted(lambda _: "now"),
            parent=Parent(journal, retry_failed=True),
        )
    assert again == "now"
