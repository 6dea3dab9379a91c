"""The command compare sets two runs side by side, and says what it cannot tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
import runs
from typer.testing import CliRunner

from simengine.cli.main import app
from simengine.runlog.records import Chain, EventLine, Line
from simengine.scenario.comparison import compare


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The small scenario, and the same with self-introductions of twelve words at most, which forget much."""
    path = tmp_path_factory.mktemp("runs")
    runs.run(path / "long")
    runs.run(path / "brief", "method.user_words=12")
    return path / "long", path / "brief"


def output(first: Path, second: Path) -> str:
    done = CliRunner().invoke(app, ["compare", str(first), str(second)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def copied(folder: Path, to: Path, old: str, new: str) -> Path:
    shutil.copytree(folder, to)
    scenario = to / "scenario.yaml"
    text = scenario.read_text()
    assert old in text
    scenario.write_text(text.replace(old, new))
    return to


def test_differences_are_paired_over_users(folders: tuple[Path, Path]) -> None:
    found = compare(*folders)
    [rows] = found.rows
    assert (rows.stage, rows.first, rows.second) == ("rank", "agentcf B", "agentcf B")
    reports = [{(r.metric, r.k): r.value for r in runs.report(f).results if r.ranker == rows.first} for f in folders]
    for row in rows.metrics:
        assert row.n == 8
        assert row.first == pytest.approx(reports[0][row.metric, row.k])
        assert row.second == pytest.approx(reports[1][row.metric, row.k])
        assert row.difference == pytest.approx(row.second - row.first)
        assert row.low <= row.difference <= row.high
    assert any(row.difference for row in rows.metrics)


def test_results_stand_side_by_side_and_what_both_found_alike_once(folders: tuple[Path, Path]) -> None:
    found = compare(*folders)
    assert list(dict.fromkeys(result.ranker for result in found.results)) == [
        "random",
        "pop",
        "long: agentcf B",
        "brief: agentcf B",
    ]
    assert found.changed == ["scenario"]
    assert found.notes == []


def test_the_first_difference_is_where_the_first_memory_was_shortened(folders: tuple[Path, Path]) -> None:
    parting = compare(*folders).parting
    assert parting is not None
    long, brief = (runs.events(folder) for folder in folders)
    assert long[: parting.after] == brief[: parting.after]
    assert long[parting.after] != brief[parting.after]
    assert parting.event == long[parting.after]["event"]
    user = f"user:{long[parting.after]['data']['user']}"
    # Messages stand before memories in a line: it shows first in what the user says of its shortened memory.
    assert parting.difference.agent == user
    assert "I like" in parting.difference.expected
    told = output(*folders)
    assert f"the logs part after {parting.after} equal events, at {parting.event}\n  record messages[" in told


def test_a_run_and_its_copy_have_no_difference(folders: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "long"
    shutil.copytree(folders[0], copy)
    found = compare(folders[0], copy)
    assert found.names == (str(folders[0]), str(copy)), "folders of one name are told apart by their paths"
    assert found.changed == []
    assert found.parting is None
    assert all((row.difference, row.low, row.high) == (0, 0, 0) for row in found.rows[0].metrics)
    told = output(folders[0], copy)
    assert "made with the same settings\n" in told
    assert "the logs hold the same events\n" in told


def test_without_the_data_there_are_results_but_no_intervals(folders: tuple[Path, Path], tmp_path: Path) -> None:
    other = copied(folders[1], tmp_path / "other", "seed: 4", "seed: 5")
    gone = copied(folders[1], tmp_path / "gone", "format: market", "format: nothing")
    for folder, problem in ((other, "the data changed since the run was made"), (gone, "expected one of")):
        found = compare(folders[0], folder)
        assert found.rows == []
        assert f"{folder.name}: agentcf B" in {result.ranker for result in found.results}
        [note] = found.notes
        assert note.startswith(f"{folder.name}: no intervals of differences, since they need its data: ")
        assert problem in note


def test_an_unfinished_run_is_compared_as_far_as_it_goes(folders: tuple[Path, Path], tmp_path: Path) -> None:
    cut = runs.cut(folders[0], tmp_path / "cut", runs.ends(folders[0])[-4])  # two rankings and the end are missing
    found = compare(folders[0], cut)
    assert [row.n for row in found.rows[0].metrics] == [6] * len(found.rows[0].metrics)
    assert found.parting is not None
    assert found.parting.after == len(runs.events(folders[0])) - 2
    assert found.parting.difference.record == "event"
    assert found.notes == ["cut: this run has no report, so it is not finished"]


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        (slice(0, 3), slice(3, 6), "no differences, as no user has a test case that both runs have ranked"),
        (slice(0, 3), slice(2, 6), "no interval of a difference, as only one user has a test case that both"),
    ],
)
def test_runs_with_hardly_a_user_in_common_say_so(
    folders: tuple[Path, Path], tmp_path: Path, first: slice, second: slice, note: str
) -> None:
    """Of the eight rankings each log holds some, as after a failure: the log is written anew without the others."""
    logs = [ranked_only(folders[0], tmp_path / str(number), part) for number, part in enumerate((first, second))]
    told = output(*logs)
    assert f"note: stage rank, strategy B: {note}" in told
    assert ("Stage rank, agentcf B: second less first" in told) == ("no interval" in note)


def ranked_only(folder: Path, to: Path, part: slice) -> Path:
    """A copy of a run with only these of its rankings in the log, and no report."""
    shutil.copytree(folder, to)
    (to / "report.json").unlink()
    first, header, *lines = (to / "events.jsonl").read_bytes().splitlines()
    rankings = [line for line in lines if b'"kind":"ranking"' in line]
    kept = [line for line in lines if line.startswith(b'{"event"') and line not in rankings] + rankings[part]
    chain = Chain()
    forged = [chain.close(_unsummed(msgspec.json.decode(header, type=Line)))]
    forged += [chain.close(_unsummed(msgspec.json.decode(line, type=EventLine))) for line in kept]
    (to / "events.jsonl").write_bytes(b"".join([first + b"\n", *forged]))
    return to


def _unsummed(line: Line | EventLine) -> Line | EventLine:
    line.sum = ""
    return line


def test_a_stage_that_one_run_lacks_is_named(folders: tuple[Path, Path], tmp_path: Path) -> None:
    runs.run(tmp_path / "none", "stages=[{optimize: {}}]")
    assert compare(folders[0], tmp_path / "none").notes == ["stage rank, strategy B: only the first run ranks by it"]


def test_runs_on_other_data_are_compared_with_a_warning(folders: tuple[Path, Path], tmp_path: Path) -> None:
    runs.run(tmp_path / "elsewhere", "data.seed=9")
    found = compare(folders[0], tmp_path / "elsewhere")
    assert found.changed == ["scenario", "data"]
    [note] = found.notes
    assert note.endswith(" test cases the second run has another target or other candidates than the first")
