"""The journal as a cache across runs: what another run has paid for is not asked again, where that is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from simengine.errors import CallFailed, InputError
from simengine.llm import CallStore
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request


def test_the_same_run_pays_for_nothing_and_has_the_same_history(tmp_path: Path) -> None:
    first = runs.run(tmp_path / "first")
    again = runs.run(tmp_path / "again", backend=runs.no_model(), reuse=[first.path])
    assert runs.history(again.path) == runs.history(first.path)
    assert again.report.costs.reused == sum(first.report.costs.calls.values())
    assert again.report.costs.attempts == 0
    assert runs.replay(again.path).finished, "what was reused is in the run's own journal"


def test_a_changed_run_pays_for_the_change_only(tmp_path: Path) -> None:
    first = runs.run(tmp_path / "first")
    asked: list[str] = []

    class Counting(Lexical):
        async def complete(self, request: Request) -> Completion:
            asked.append(request.task)
            return await super().complete(request)

    changed = runs.run(tmp_path / "changed", "method.item_words=20", backend=Counting(), reuse=[first.path])
    alone = runs.run(tmp_path / "alone", "method.item_words=20")
    assert runs.history(changed.path) == runs.history(alone.path)
    assert 0 < len(asked) < sum(alone.report.costs.calls.values())
    assert len(asked) + changed.report.costs.reused == sum(alone.report.costs.calls.values())


def test_a_draw_at_a_temperature_belongs_to_its_call(tmp_path: Path) -> None:
    first = runs.run(tmp_path / "first", "llm.temperature=0.7")
    again = runs.run(tmp_path / "again", "llm.temperature=0.7", reuse=[first.path])
    assert again.report.costs.reused == 0


def test_errors_are_not_reused(tmp_path: Path) -> None:
    def refuse(request: Request) -> str:
        raise CallFailed("refused", reason="filtered")

    first = runs.run(tmp_path / "first", backend=Scripted(refuse))
    again = runs.run(tmp_path / "again", reuse=[first.path])
    assert first.report.failures and not again.report.failures
    assert again.report.costs.reused == 0


def test_the_journal_of_the_other_run_stays_as_it_was(tmp_path: Path) -> None:
    first = runs.run(tmp_path / "first")
    before = (first.path / "calls.sqlite").read_bytes()
    runs.run(tmp_path / "again", reuse=[first.path])
    assert (first.path / "calls.sqlite").read_bytes() == before
    with CallStore(tmp_path / "again" / "calls.sqlite", read_only=True) as store:
        assert {row.outcome.attempts for row in store} == {0}


def test_a_folder_that_is_no_run_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the folder of a run"):
        runs.run(tmp_path / "again", reuse=[tmp_path])
    assert not (tmp_path / "again").exists()
