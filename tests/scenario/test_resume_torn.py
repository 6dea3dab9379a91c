"""A log whose end is torn, garbled or missing is cut and gone on with, while the journal knows all answers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import runs

from simengine.errors import InputError, LogError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("whole") / "run").path


def _goes_on(whole: Path, copy: Path) -> None:
    """Resumed, the copy becomes the whole, and no answer is asked for again."""
    runs.resume(copy, backend=runs.no_model())
    assert runs.history(copy) == runs.history(whole)
    assert runs.replay(copy).finished


def test_cut_at_any_byte(whole: Path, tmp_path: Path) -> None:
    ends = runs.ends(whole)
    draw = random.Random(1)
    places = {"in the second event": draw.randrange(ends[1] + 1, ends[2]), "before its newline": ends[9] - 1}
    places |= {f"in event {at}": draw.randrange(ends[at - 1] + 1, ends[at]) for at in (5, 12, 20, 28, 31)}
    places |= {"in the end line": ends[-1] - 3}
    for name, size in places.items():
        _goes_on(whole, runs.cut(whole, tmp_path / name, size))


@pytest.mark.parametrize(
    "tail",
    [
        b'{"event":"interaction/u1',
        b"\n",
        b"\0" * 4096,
        b'{"event":"x","kind":"x","time":1,"sum":"00000000000000000000000000000000"}\n',
        b"\xff\xfe not UTF-8",
    ],
    ids=["half a record", "a blank line", "zeros", "a wrong checksum", "no text"],
)
def test_garbage_behind_the_last_record(whole: Path, tail: bytes, tmp_path: Path) -> None:
    _goes_on(whole, runs.cut(whole, tmp_path / "copy", runs.ends(whole)[17], tail))


def test_a_changed_last_record_is_done_again(whole: Path, tmp_path: Path) -> None:
    ends = runs.ends(whole)
    line = (whole / "events.jsonl").read_bytes()[ends[16] : ends[17]]
    _goes_on(whole, runs.cut(whole, tmp_path / "copy", ends[16], line.replace(b'"time":', b'"time": ', 1)))


def test_killed_before_the_report_was_written(whole: Path, tmp_path: Path) -> None:
    """The log has its end already; what is missing is made, and the run counts as finished from then on."""
    copy = runs.cut(whole, tmp_path / "copy", runs.ends(whole)[-1])
    _goes_on(whole, copy)
    assert runs.report(copy) == runs.report(whole)
    with pytest.raises(InputError, match="finished"):
        runs.resume(copy)


def test_a_log_that_lacks_nothing_but_its_last_newline_is_finished(whole: Path, tmp_path: Path) -> None:
    copy = runs.cut(whole, tmp_path / "copy", runs.ends(whole)[-1] - 1)
    assert runs.replay(copy).finished
    assert runs.resume(copy, backend=runs.no_model()).report == runs.report(whole)


def test_a_finished_run_is_not_gone_on_with(whole: Path) -> None:
    before = (whole / "events.jsonl").read_bytes()
    with pytest.raises(InputError, match="finished"):
        runs.resume(whole)
    assert (whole / "events.jsonl").read_bytes() == before


def test_a_record_changed_in_the_middle_is_damage(whole: Path, tmp_path: Path) -> None:
    ends = runs.ends(whole)
    log = (whole / "events.jsonl").read_bytes()
    rest = log[ends[8] :].replace(b'"time":', b'"time": ', 1)
    copy = runs.cut(whole, tmp_path / "copy", ends[8], rest)
    with pytest.raises(LogError, match="checksum") as caught:
        runs.resume(copy)
    assert caught.value.where["line"] == 11  # provenance, header and eight events stand before it
    assert (copy / "events.jsonl").read_bytes() == log[: ends[8]] + rest, "nothing is cut away from a damaged log"


@pytest.mark.parametrize("size", [0, 40, 700])
def test_a_log_without_a_whole_header_says_to_start_anew(whole: Path, size: int, tmp_path: Path) -> None:
    copy = runs.cut(whole, tmp_path / "copy", size)
    with pytest.raises(LogError, match="start anew"):
        runs.resume(copy)


def test_a_run_can_be_stopped_and_gone_on_with_again_and_again(whole: Path, tmp_path: Path) -> None:
    """Each stage of the journey adds to the log that the one before has left."""
    ends = runs.ends(whole)
    copy = runs.cut(whole, tmp_path / "0", ends[3])
    for number, at in enumerate((9, 17, 26), start=1):
        runs.resume(copy)
        copy = runs.cut(copy, tmp_path / str(number), runs.ends(copy)[at])
    _goes_on(whole, copy)


CHANGES = {
    "seed=6": "the seed",
    "method.rounds=1": "the scenario",
    "data.users=7": "the scenario, the data",
    "llm.temperature=0.5": "the scenario",
    "engine.schedule={batch: 2}": "the scenario",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_scenario_is_refused_by_name(whole: Path, change: str, tmp_path: Path) -> None:
    copy = runs.cut(whole, tmp_path / "copy", runs.ends(whole)[5])
    for act in (runs.resume, runs.replay):
        with pytest.raises(LogError, match=f"^[^:]*: {CHANGES[change]} changed since"):
            act(copy, change)
    assert runs.history(copy) == runs.history(whole)[:6]


@pytest.mark.parametrize(
    "change",
    [
        "llm.limits.concurrency=2",
        "llm.timeout=3",
        "llm.retry.budget=1",
        "engine.window=2",
        "engine.on_error=stop",
        "llm.latency={median: 0.001}",
        "llm.prices={m: {input: 1, output: 2}}",
        "llm.merge_roles=true",
        "llm.trust_env=true",
        "llm.batch.size=2",
        "llm.offline.poll=3",
        "llm.roles={rank: {mode: online}}",
        "name=other",
        "stages[1].rank={k: [1], rankers: [pop]}",
    ],
)
def test_what_cannot_change_the_outcome_may_change(whole: Path, change: str, tmp_path: Path) -> None:
    copy = runs.cut(whole, tmp_path / "copy", runs.ends(whole)[5])
    runs.resume(copy, change)
    assert runs.history(copy) == runs.history(whole)
