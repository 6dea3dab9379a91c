"""A fork goes on from another run with something changed, and pays only for what the change reaches."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.errors import CallFailed, InputError, RunStopped
from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request


def fork(parent: Path, out: Path, *sets: str, **more: Any) -> Any:
    return asyncio.run(scenarios.fork(parent, sets, out=out, **more))


class Sampled:
    """Rules whose every answer is another one, as a model's is that draws: no two calls are alike."""

    def __init__(self) -> None:
        self._rules = Lexical()
        self._numbers = itertools.count()
        self.asked: list[str] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.call)
        answer = await self._rules.complete(request)
        return Completion(text=answer.text.replace("Explanation: ", f"Explanation: {next(self._numbers)}. "))


class Refusing:
    """A model that fails at one task."""

    def __init__(self, task: str) -> None:
        self._rules = Lexical()
        self._task = task

    async def complete(self, request: Request) -> Completion:
        if request.task == self._task:
            raise CallFailed("filtered", reason="content_filter", remedy="", attempts=1)
        return await self._rules.complete(request)


def test_a_fork_that_changes_nothing_pays_for_nothing_and_is_the_same_run(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run", "llm.temperature=1", backend=Sampled())
    for number, at in enumerate([None, runs.events(tmp_path / "run")[9]["event"]]):
        forked = fork(whole.path, tmp_path / f"fork-{number}", at=at, backend=runs.no_model())
        assert forked.report.hash == whole.report.hash
        costs = forked.report.costs
        assert (costs.reused, costs.attempts) == (sum(costs.calls.values()), 0)
        assert runs.replay(forked.path).hash == whole.report.hash


def test_only_what_the_change_reaches_is_asked_again(tmp_path: Path) -> None:
    """Ranking twice asks for the second ranking of each user, and for nothing else."""
    whole = runs.run(tmp_path / "run", "llm.temperature=1", backend=Sampled())
    model = Sampled()
    forked = fork(whole.path, tmp_path / "fork", "stages[1].rank.repeats=2", backend=model)
    assert sorted(model.asked) == sorted(f"rank/{event['data']['user']}/B/2#rank" for event in _second(forked.path))
    assert forked.report.costs.attempts == len(model.asked) == 8


def _second(folder: Path) -> list[dict[str, Any]]:
    return [event for event in runs.events(folder, "ranking") if event["data"]["repeat"] == 2]


def test_what_comes_before_the_fork_is_kept_as_it_is(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run")
    before = runs.events(whole.path)
    at = before[12]["event"]
    forked = fork(whole.path, tmp_path / "fork", "method.user_words=20", at=at)
    after = runs.events(forked.path)
    assert after[:12] == before[:12]
    assert after[12:] != before[12:]
    header = json.loads(runs.history(forked.path)[0])["header"]
    assert header["fork"]["events"] == 12
    assert runs.replay(forked.path).hash == forked.report.hash
    everywhere = fork(whole.path, tmp_path / "everywhere", "method.user_words=20")
    assert runs.events(everywhere.path)[:12] != before[:12]


def test_a_stopped_fork_is_resumed_from_its_parents_journal(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run", "llm.temperature=1", backend=Sampled())
    with pytest.raises(RunStopped):
        fork(whole.path, tmp_path / "fork", "stages[1].rank.repeats=2", "llm.budget.calls=3", backend=Sampled())
    model = Sampled()
    finished = asyncio.run(scenarios.resume(tmp_path / "fork", ["llm.budget.calls=100"], backend=model))
    assert len(model.asked) == 8 - 3
    assert finished.report.costs.attempts == 8
    assert runs.replay(finished.path).hash == finished.report.hash


def test_failed_calls_fail_again_unless_they_are_retried(tmp_path: Path) -> None:
    failed = runs.run(tmp_path / "run", backend=Refusing("rank"))
    assert failed.report.failures == {"rank: content_filter": 8}
    same = fork(failed.path, tmp_path / "same", backend=runs.no_model())
    assert same.report.hash == failed.report.hash
    retried = fork(failed.path, tmp_path / "retried", retry_failed=True)
    assert retried.report.failures == {}
    assert retried.report.costs.attempts == 8
    assert retried.report.hash == runs.run(tmp_path / "never", backend=Lexical()).report.hash


def test_a_fork_of_an_unfinished_run_goes_to_the_end(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run")
    part = runs.cut(whole.path, tmp_path / "part", runs.ends(whole.path)[10])
    assert fork(part, tmp_path / "fork", backend=runs.no_model()).report.hash == whole.report.hash


def test_a_fork_stands_by_itself_once_it_is_finished(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run")
    at = runs.events(whole.path)[12]["event"]
    forked = fork(whole.path, tmp_path / "fork", at=at)
    shutil.rmtree(whole.path)
    assert runs.replay(forked.path).hash == whole.report.hash


def test_an_event_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run")
    event = runs.events(whole.path)[3]["event"]
    with pytest.raises(InputError, match="this run has no event") as caught:
        fork(whole.path, tmp_path / "fork", at=event + "0")
    assert event in str(caught.value)
    assert not (tmp_path / "fork").exists()


def test_other_data_cannot_follow_on_events_of_former_ones(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "run")
    at = runs.events(whole.path)[3]["event"]
    with pytest.raises(InputError, match="the data changed"):
        fork(whole.path, tmp_path / "fork", "data.seed=9", at=at)


def test_a_variant_can_be_forked_from_one_before_it(tmp_path: Path) -> None:
    text = runs.SMALL + "variants:\n  once: {}\n  twice: {fork: once, stages: [{optimize: {}}, {rank: {repeats: 2}}]}\n"
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")
    _, report = asyncio.run(scenarios.run_many(scenarios.read_all(path), out=tmp_path / "runs"))
    assert report.variants["twice"].costs.reused == sum(report.variants["once"].costs.calls.values())
    path.write_text(text.replace("fork: once", "fork: later"), encoding="utf-8")
    with pytest.raises(InputError, match="stands before it"):
        asyncio.run(scenarios.run_many(scenarios.read_all(path), out=tmp_path / "more"))


def test_a_fork_is_called_after_its_parents_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = runs.run(tmp_path / "elsewhere" / "mine")
    names = [str(asyncio.run(scenarios.fork(whole.path, ["seed=5"])).path) for _ in range(2)]
    assert names == ["replays/mine-fork", "replays/mine-fork-2"]
    monkeypatch.chdir(whole.path)
    assert asyncio.run(scenarios.fork(Path("."), [])).path == Path("replays/mine-fork")


def test_a_folder_of_variants_is_told_from_a_run(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "runs" / "first")
    with pytest.raises(InputError, match="holds several runs: first") as caught:
        fork(whole.path.parent, tmp_path / "fork")
    assert str(whole.path) in str(caught.value)
