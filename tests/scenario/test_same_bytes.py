"""One scenario has one history, to the byte: whatever the concurrency, the latencies, the window and the process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import runs

from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request

MODES = {
    "latest": [],
    "published": ["engine.visibility.items=every 2 steps"],
    "published by rows": ["engine.visibility.items=every 5 events", "engine.visibility.users=every 3 events"],
    "batch": ["engine.schedule={batch: 5}"],
}
# Concurrency, window, and the seed of delays that vary over two orders of magnitude (None: none).
SHAPES = [(1, 4096, None), (8, 4096, 1), (64, 4096, 2), (64, 1, 3), (3, 4, 4)]
every_mode = pytest.mark.parametrize("mode", MODES)


def _shape(concurrency: int, window: int, seed: int | None) -> list[str]:
    sets = [f"llm.limits.concurrency={concurrency}", f"engine.window={window}"]
    return sets if seed is None else [*sets, f"llm.latency={{median: 0.0005, sigma: 1.5, seed: {seed}}}"]


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each mode run with one call and one event at a time."""
    folder = tmp_path_factory.mktemp("serial")
    return {mode: runs.run(folder / mode, *sets, *_shape(1, 1, None)).path for mode, sets in MODES.items()}


@every_mode
def test_concurrency_latency_and_window_change_nothing(mode: str, serial: dict[str, Path], tmp_path: Path) -> None:
    for number, shape in enumerate(SHAPES):
        found = runs.run(tmp_path / str(number), *MODES[mode], *_shape(*shape))
        assert runs.history(found.path) == runs.history(serial[mode]), shape
        assert found.report.hash == json.loads(runs.history(serial[mode])[-1])["sum"]


def test_the_modes_differ_so_that_each_is_really_in_force(serial: dict[str, Path]) -> None:
    assert len({json.dumps(runs.events(path)) for path in serial.values()}) == len(MODES)


def test_calls_do_run_side_by_side(tmp_path: Path) -> None:
    """Otherwise nothing here would be tested: of the small market's calls, several are in flight at one time."""

    class Counting(Lexical):
        now = greatest = 0

        async def complete(self, request: Request) -> Completion:
            self.now += 1
            self.greatest = max(self.greatest, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            return await super().complete(request)

    counting = Counting()
    runs.run(tmp_path / "run", backend=counting)
    assert counting.greatest >= 3


@every_mode
def test_a_resumed_run_has_the_same_history(mode: str, serial: dict[str, Path], tmp_path: Path) -> None:
    """Wherever the log is cut, between two records or inside one, and with answers in the journal for all the rest."""
    whole = serial[mode]
    ends = runs.ends(whole)
    cuts = [ends[0], ends[1], ends[len(ends) // 2], ends[len(ends) // 2] + 17, ends[-4], ends[-2], ends[-1] - 5]
    for size in cuts:
        copy = runs.cut(whole, tmp_path / str(size), size)
        found = runs.resume(copy, backend=runs.no_model())
        assert runs.history(copy) == runs.history(whole)
        assert (whole / "report.json").read_bytes() == (copy / "report.json").read_bytes()
        assert found.report.events == 32


def test_a_run_resumed_without_its_journal_asks_for_the_rest_only(serial: dict[str, Path], tmp_path: Path) -> None:
    whole = serial["latest"]
    ends = runs.ends(whole)
    copy = runs.cut(whole, tmp_path / "copy", ends[20])
    (copy / "calls.sqlite").unlink()
    lexical = Lexical()
    model = Scripted(lexical.complete)
    runs.resume(copy, backend=model)
    assert runs.history(copy) == runs.history(whole)
    late = [json.loads(line) for line in runs.history(whole)[21:-1]]
    assert model.calls == sum(len(event["calls"]) for event in late) > 0


TIMED = "data={format: market, users: 8, items: 14, interests: 3, interactions: 7, seed: 4, clock: time}"


def test_another_stage_leaves_the_interactions_as_they_are(tmp_path: Path) -> None:
    """A live ranking stands amid the interactions, a second ranking behind them: neither changes a record of theirs."""
    stages = {
        "alone": "[{optimize: {}}]",
        "after": "[{optimize: {}}, {rank: {}}]",
        "live": "[{optimize: {}}, {rank: {when: live, repeats: 2}}]",
        "both": "[{optimize: {}}, {rank: {when: live}}, {rank: {k: [3]}}]",
        "twice": "[{optimize: {}}, {rank: {when: live}}, {rank: {when: live}}]",
    }
    found = {name: runs.run(tmp_path / name, TIMED, f"stages={text}").path for name, text in stages.items()}
    interactions = {name: runs.events(path, "interaction") for name, path in found.items()}
    assert len(interactions["alone"]) == 32
    for name in stages:
        assert interactions[name] == interactions["alone"], name
    kinds = [event["kind"] for event in runs.events(found["live"])]
    assert "ranking" in kinds[: len(kinds) // 2], "live rankings are to stand amid the interactions"


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart, run by the program in a process of its own."""
    folder = tmp_path_factory.mktemp("quickstart")
    process = runs.start("run", runs.QUICKSTART, "--out", "run", cwd=folder, PYTHONHASHSEED="3")
    _, err = process.communicate()
    assert process.returncode == 0, err
    return folder / "run"


def test_the_quickstart_has_one_history_in_two_processes(quickstart: Path, tmp_path: Path) -> None:
    found = runs.run(tmp_path / "run", *_shape(1, 4096, None), text=runs.QUICKSTART.read_text("utf-8"))
    assert runs.history(found.path) == runs.history(quickstart)


def test_the_hashes_of_texts_do_not_matter(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(runs.SMALL, encoding="utf-8")
    delays = "llm.latency={median: 0.001, sigma: 1.5}"
    started = [
        runs.start("run", scenario, "--out", f"run-{seed}", "--set", delays, cwd=tmp_path, PYTHONHASHSEED=seed)
        for seed in ("1", "2")
    ]
    for process in started:
        _, err = process.communicate()
        assert process.returncode == 0, err
    assert runs.history(tmp_path / "run-1") == runs.history(tmp_path / "run-2")


def test_real_interactions_have_one_history(real_data: Path, tmp_path: Path) -> None:
    """Twenty users of AgentCF's own CDs, strictly serial and with 64 calls at a time."""
    text = (runs.ROOT / "scenarios" / "agentcf-cds.yaml").read_text(encoding="utf-8")
    sets = [f"data.path={real_data / 'agentcf-cds-dense'}", "data.users=20"]
    one, many = (
        runs.run(tmp_path / str(shape[0]), *sets, *_shape(*shape), text=text) for shape in ((1, 1, None), (64, 4096, 1))
    )
    assert runs.history(one.path) == runs.history(many.path)
    assert (one.report.events, one.report.hash) == (120, many.report.hash)
