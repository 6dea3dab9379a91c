"""Runs with plantings and their controls: which belong together, and what is found of them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest
import runs

import simengine
from simengine import scenario as scenarios
from simengine.errors import InputError, SimengineError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request
from simengine.scenario.following import follow
from simengine.scenario.loading import open_trace
from simengine.scenario.propagation import Pair, measure_spread, pairs
from simengine.scenario.spread import Spread

ONE = "plant={statements: [{preference: I like harpsichord lullabies., seeds: {users: [u3]}}]}"
TEXT = runs.SMALL.replace("  - rank: {}\n", "  - probe: {at: [start, end]}\n") + (
    "plant:\n  statements:\n"
    "    - {preference: I like harpsichord lullabies., seeds: {users: [u3]}}\n"
    "    - {preference: I like theremin duets., seeds: {users: [u5, u3]}}\n"
)
VARIANTS = TEXT + "variants:\n  treatment: {}\n  control: {fork: treatment, plant: {enabled: false}}\n"
MANY = TEXT + (
    "variants:\n"
    "  without: {plant: {enabled: false}}\n"
    "  wordy: {fork: without}\n"
    "  short: {method: {user_words: 20}}\n"
    "  short-control: {fork: short, method: {user_words: 20}, plant: {enabled: false}}\n"
)


def made(out: Path, text: str) -> Path:
    """The folder of a scenario's variants."""
    path = out.with_suffix(".yaml")
    path.write_text(text, encoding="utf-8")
    return asyncio.run(scenarios.run_many(scenarios.read_all(path), out=out))[0]


def measured(*found: Pair) -> Spread:
    return asyncio.run(measure_spread(found))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A treatment and its control."""
    return made(tmp_path_factory.mktemp("propagation") / "pair", VARIANTS)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two treatments, each with a control."""
    return made(tmp_path_factory.mktemp("propagation") / "many", MANY)


def test_a_run_belongs_to_the_control_that_one_was_forked_from(folder: Path, many: Path) -> None:
    assert pairs([folder]) == [Pair("treatment", folder / "treatment", folder / "control")]
    assert pairs([many]) == [
        Pair("wordy", many / "wordy", many / "without"),
        Pair("short", many / "short", many / "short-control"),
    ]
    assert pairs([many / "short", many / "without", many / "short-control"]) == pairs([many])[1:]


def test_another_control_is_taken_where_none_was_forked(folder: Path, tmp_path: Path) -> None:
    treatment, control = folder / "treatment", folder / "control"
    assert pairs([treatment]) == [Pair("treatment", treatment, None)]
    assert pairs([treatment], control) == [Pair("treatment", treatment, control)]
    stranger = runs.run(tmp_path / "stranger", "plant.enabled=false", text=TEXT).path
    assert pairs([treatment, stranger])[0].control == stranger  # it is the only one there is


def test_runs_of_one_name_are_told_apart_by_their_folders(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert [pair.name for pair in pairs([folder, copy])] == [str(folder / "treatment"), str(copy / "treatment")]


def test_a_variant_that_has_not_been_run_yet_is_passed_over(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(copy / "control")
    assert pairs([copy]) == [Pair("treatment", copy / "treatment", None)]


def test_without_a_planting_there_is_nothing_to_measure(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no preference was planted"):
        pairs([folder / "control"])
    with pytest.raises(SimengineError):
        pairs([tmp_path])


def test_what_was_planted_is_found_and_nothing_else_differs(folder: Path) -> None:
    spread = measured(*pairs([folder]))
    (run,) = spread.runs
    assert (run.run, run.folder, run.control) == ("treatment", str(folder / "treatment"), str(folder / "control"))
    assert spread.decay == run.decay
    assert spread.decay is not None and spread.decay.plantings == 2
    seeds = spread.decay.hops[0]
    assert (seeds.agents, seeds.holders, seeds.control.value) == (3, 3, 0)  # u3; u5 and u3
    assert spread.decay.transmission[0].successes > 0
    assert spread.decay.spontaneous.successes == 0
    assert spread.outside == () == spread.false_positives
    at_start = {row.preference: row for row in spread.probes if row.at == "start"}
    assert {text: (row.users, row.answers, row.words, row.unread, row.control) for text, row in at_start.items()} == {
        "I like harpsichord lullabies.": (8, 1, 1, 0, 0),
        "I like theremin duets.": (8, 2, 2, 0, 0),
    }
    assert [(way.first, way.second, way.n) for way in spread.agreement] == [
        ("answers", "words", 32),
        ("answers", "similarity", 32),
        ("words", "similarity", 32),
    ]


def test_without_a_control_nobody_is_compared_with(folder: Path) -> None:
    spread = measured(Pair("alone", folder / "treatment", None))
    assert spread.runs[0].control is None and not spread.controlled
    assert {(row.similar, row.control) for row in spread.probes} == {(None, None)}
    assert [(way.first, way.second) for way in spread.agreement] == [("answers", "words")]
    with_control = measured(*pairs([folder])).decay
    assert spread.decay is not None and with_control is not None
    assert spread.decay.transmission == with_control.transmission


def test_runs_that_differ_by_their_seed_are_taken_together(folder: Path, tmp_path: Path) -> None:
    other = runs.run(tmp_path / "other", "seed=6", text=TEXT).path
    spread = measured(*pairs([folder / "treatment", other]))
    assert [run.decay.plantings for run in spread.runs] == [2, 2]
    assert spread.decay is not None and spread.decay.plantings == 4
    trials = [run.decay.transmission[0].trials for run in spread.runs]
    assert spread.decay.transmission[0].trials == sum(trials)
    assert {row.run for row in spread.probes} == {"treatment", "other"}


def test_a_run_counts_once(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(InputError, match=r"the same history as .*treatment: taken together"):
        measured(*pairs([folder, copy]))


def test_a_run_that_is_not_finished_is_told(folder: Path, tmp_path: Path) -> None:
    cut = runs.cut(folder / "treatment", tmp_path / "cut", runs.ends(folder / "treatment")[-3])
    (note,) = (note for note in measured(Pair("cut", cut, None)).runs[0].decay.notes if "not finished" in note)
    assert note.startswith("cut is not finished")
    notes = measured(Pair("whole", folder / "treatment", cut)).runs[0].decay.notes
    assert [note for note in notes if "not finished" in note] == [note]
    assert not any("not finished" in note for note in measured(*pairs([folder])).runs[0].decay.notes)


def test_preferences_of_the_same_words_are_told(tmp_path: Path) -> None:
    run = runs.run(
        tmp_path / "run", "plant.statements[1].preference=I love slow harpsichord lullabies.", text=TEXT
    ).path
    notes = measured(*pairs([run])).runs[0].decay.notes
    assert sum("are told by the same words in run" in note for note in notes) == 1


def test_what_items_start_with_is_no_spontaneous_holding(tmp_path: Path) -> None:
    """Items of the market are filed under what is planted here, which is how users come by it without any seed."""
    run = runs.run(
        tmp_path / "run",
        "data={format: market, users: 16, items: 48, interests: 4, interactions: 5, seed: 4}",
        "plant.statements=[{preference: I like wooden flutes., seeds: {users: [u3]}}]",
        "stages=[{optimize: {}}]",
        text=TEXT,
    ).path
    first = open_trace(run)[0]
    assert any("wooden flutes" in first.begun(agent).get("memory", "") for agent in first.agents)
    decay = measured(*pairs([run])).decay
    assert decay is not None and decay.spontaneous.successes == 0
    assert decay.loss.spells == len(follow(run, first, "I like wooden flutes.").holdings.spells)


def test_other_runs_stand_beside_one_another(many: Path) -> None:
    spread = measured(*pairs([many]))
    assert spread.decay is None
    alone = [measured(pair) for pair in pairs([many])]
    found = [msgspec.json.encode(run.decay) for run in spread.runs]  # in JSON, as unknown numbers equal no other
    assert found == [msgspec.json.encode(one.decay) for one in alone]
    assert [run.run for run in spread.runs] == ["wordy", "short"]
    assert spread.outside == ()


def test_the_comparison_of_limits_keeps_asks_again_and_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.ROOT)
    reads = scenarios.read_all("scenarios/propagation-limits.yaml", ["data.users=20", "data.items=40"])
    path, report = asyncio.run(scenarios.run_many(reads, out=tmp_path / "limits"))
    found = {pair.name: pair.control for pair in pairs([path])}
    assert found == {name: path / f"{name}-control" for name in ("keep", "reask", "cut")}
    longer = {name: sum(one.over_limit.values()) for name, one in report.variants.items()}
    assert longer["keep"] > 50
    assert longer["reask"] == longer["cut"] == 0  # these rules keep to a limit once they are told
    calls = {name: sum(one.costs.calls.values()) for name, one in report.variants.items()}
    assert calls["reask"] > calls["cut"] + 50
    costs = {name: one.costs for name, one in report.variants.items()}
    for name in found:
        assert 0 < costs[f"{name}-control"].reused < calls[f"{name}-control"]
    spread = measured(*pairs([path]))
    assert spread.outside == ()
    kept, _, cut = (run.decay.times[-1].net.value for run in spread.runs)
    assert kept is not None and cut is not None and kept > cut  # a cut drops what stands last


class Boasting:
    """Rules that say yes to every probe of one user."""

    def __init__(self, user: str) -> None:
        self._rules = Lexical()
        self._call = f"/{user}/"

    async def complete(self, request: Request) -> Completion:
        if request.task == "probe" and self._call in request.call:
            return Completion(text="Decision: yes\nExplanation: Why not?")
        return await self._rules.complete(request)


def test_who_says_yes_without_a_way_to_it_is_a_false_positive(tmp_path: Path) -> None:
    sampled = "llm.temperature=1"  # or else one answer would stand for all who say the same of themselves
    for user, times in (("u1", ["start", "end"]), ("u4", ["start"])):  # by the end it may have come to u4
        path = runs.run(tmp_path / user, ONE, sampled, text=TEXT, backend=Boasting(user)).path
        found = measured(*pairs([path])).false_positives
        assert [(positive.run, positive.user, positive.at) for positive in found] == [(user, user, at) for at in times]


def test_an_answer_that_cannot_be_read_is_counted_as_such(tmp_path: Path) -> None:
    class Mumbling(Boasting):
        async def complete(self, request: Request) -> Completion:
            asked = request.task == "probe" and self._call in request.call
            return Completion(text="mm") if asked else await self._rules.complete(request)

    path = runs.run(tmp_path / "run", ONE, text=TEXT, backend=Mumbling("u3")).path
    spread = measured(*pairs([path]))
    assert [(row.at, row.unread, row.words >= 1) for row in spread.probes] == [("start", 1, True), ("end", 1, True)]
    assert spread.agreement[0].n == 2 * 7


def test_an_agent_that_differs_without_a_way_to_it_is_found(folder: Path, tmp_path: Path) -> None:
    """Two runs that differ by more than the planting: the limit of words changes everybody's memory."""
    stranger = runs.run(tmp_path / "stranger", "plant.enabled=false", "method.user_words=15", text=TEXT).path
    strays = measured(Pair("run", folder / "treatment", stranger)).outside
    assert strays and all(stray.agent.partition(":")[0] in ("user", "item") for stray in strays)


def test_the_python_face_gives_numbers_a_data_frame_and_figures(many: Path, tmp_path: Path) -> None:
    spread = simengine.decay(many)
    assert isinstance(spread, simengine.Spread)
    numbers = spread.numbers()
    assert {row.run for row in numbers} == {"wordy", "short"}
    rates = {row.run: row.value for row in numbers if (row.what, row.at) == ("rate per contact", "all")}
    assert rates == {run.run: run.decay.transmission[0].rate.value for run in spread.runs}
    for over in ("hops", "time"):
        figure = spread.plot(tmp_path / "figure.png", over=over)  # type: ignore[arg-type]
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["wordy", "short"]
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "figure.png").unlink()


def test_one_run_is_opened_with_its_control(folder: Path) -> None:
    spread = simengine.decay(simengine.Run(folder / "treatment"), simengine.Run(folder / "control"))
    assert {row.run for row in spread.numbers()} == {""}
    assert [text.get_text() for text in spread.plot().legends[0].get_texts()] == [
        "treatment", "control", "net of control", "fitted",
    ]  # fmt: skip
    alone = simengine.decay(folder / "treatment")
    assert [text.get_text() for text in alone.plot(over="time").legends[0].get_texts()] == ["treatment"]


def test_the_numbers_become_a_data_frame(folder: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and to_pandas() needs it")
    spread = simengine.decay(folder)
    frame = spread.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["run", "what", "at", "value", "low", "high", "n"]
    assert len(frame) == len(spread.numbers())
    kept = frame[frame.what == "kept per hop"].iloc[0]
    assert spread.decay is not None
    assert kept.value == spread.decay.fit.kept.value


async def test_it_is_measured_inside_a_running_loop(folder: Path) -> None:
    assert simengine.decay(folder).decay is not None


def test_runs_of_a_data_frame_are_measured_with_it(tmp_path: Path) -> None:
    frame = {
        "who": [user for user in "abcd" for _ in range(5)],
        "what": [f"i{(3 * place + number) % 8}" for place in range(4) for number in range(5)],
        "when": list(range(20)),
    }
    data = simengine.from_frame(frame, columns={"user": "who", "item": "what", "time": "when"})
    entries = ["data={format: frame}", "plant={statements: [{preference: I like yodels., seeds: {users: [a]}}]}"]
    path = runs.run(tmp_path / "run", *entries, text=runs.SMALL.replace("seed: 4}", "seed: 4}"), data=data).path
    with pytest.raises(InputError, match="from_frame"):
        simengine.decay(path)
    spread = simengine.decay(path, data=data)
    assert spread.decay is not None and spread.decay.hops[0].holders == 1


def test_what_is_written_can_be_read_back(folder: Path) -> None:
    spread = measured(*pairs([folder]))
    text = msgspec.json.encode(spread)
    assert msgspec.json.encode(msgspec.json.decode(text, type=Spread)) == text
