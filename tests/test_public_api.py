"""The public API, locked: a name that comes or goes is a decision, not an accident."""

from __future__ import annotations

import asyncio
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import networkx
import pytest

import simengine

NAMES = """
Completion Divergence InputError LanguageModel LogError Request Run RunStopped Scenario Scripted SimengineError Spread
Table __version__ check compare decay fork fork_async from_frame read_scenario replay replay_async resume resume_async
run run_async run_variants run_variants_async
"""

SCENARIO = """
name: small
data: {format: market, users: 3, items: 12, interests: 2, interactions: 4}
method: {kind: agentcf}
stages: [{optimize: {}}, {rank: {}}]
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_the_public_names_are_these() -> None:
    assert sorted(simengine.__all__) == sorted(NAMES.split())


@pytest.mark.parametrize("name", NAMES.split())
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(simengine, name).__doc__


def test_a_run_opens_as_values(scenario: Path) -> None:
    run = simengine.run(scenario, {"seed": 3})
    assert run.scenario.seed == 3
    assert {(row.ranker, row.metric, row.k) for row in run.metrics} >= {
        ("random", "ndcg", 10),
        ("agentcf B", "mrr", None),
    }
    memories = run.memories("user:u1")
    assert [row.version for row in memories if row.slot == "short"] == list(range(1, 1 + len(memories) - 1))
    assert {row.agent for row in memories} == {"user:u1"}
    said = run.messages("user:u1")
    assert {row.kind for row in said} == {"description", "choice", "ranking"}
    assert len(said) < len(run.messages())
    assert simengine.replay(run).hash == run.hash == run.report.hash


def test_the_version_is_that_of_the_package() -> None:
    assert simengine.__version__ == version("simengine")
    assert "__version__" in dir(simengine)


@pytest.mark.parametrize("rows", ["memories", "messages"])
def test_an_agent_that_nobody_knows_is_refused_with_the_nearest(scenario: Path, rows: str) -> None:
    def refuse(request: Any) -> str:
        return "no"

    run = simengine.run(scenario, {"data.items": 40}, model=simengine.Scripted(refuse))
    met = {name for said in run.messages() for name in (said.sender, said.recipient)} | set(run.graph())
    idle = next(name for name in (f"item:i{number}" for number in range(1, 41)) if name not in met)
    assert len(getattr(run, rows)(idle)) == 0  # it is in the data, and nothing came of it
    with pytest.raises(simengine.InputError, match=r"no agent user:zz\n  Nearest: .*user:u"):
        getattr(run, rows)("user:zz")
    (run.path / "scenario.yaml").write_text("name: gone", encoding="utf-8")  # the log is asked where the data are not
    assert bool(getattr(run, rows)("user:u1")) == (rows == "messages")
    with pytest.raises(simengine.InputError, match="no agent user:zz"):
        getattr(run, rows)("user:zz")


async def test_a_run_is_forked_with_something_changed(scenario: Path) -> None:
    run = simengine.run(scenario, {"seed": 3})
    same = simengine.fork(run)
    assert (same.hash, same.report.costs.reused) == (run.hash, sum(run.report.costs.calls.values()))
    at = list(run.events())[2].event
    set = {"method.over_limit": "cut", "method.user_words": 3}
    forked = simengine.fork(run.path, set, at=at, out="cut")
    assert forked.path.name == "cut"
    told, again = ([(event.event, event.memories) for event in one.events()] for one in (run, forked))
    assert told[:2] == again[:2] and told[2][0] == again[2][0] == at
    assert told[2] != again[2]
    assert (await simengine.fork_async(run, set, at=at)).hash == forked.hash
    with pytest.raises(simengine.InputError, match="no event 'interaction/u1'"):
        simengine.fork(run, at="interaction/u1")


def test_two_runs_are_compared(scenario: Path) -> None:
    one, other = simengine.run(scenario, {"seed": 3}), simengine.run(scenario, {"seed": 4})
    assert simengine.compare(one, one).parting is None
    found = simengine.compare(one, str(other.path))
    assert found.names == (one.path.name, other.path.name)
    assert found.changed == ["seed"] and found.parting is not None
    (rows,) = found.rows
    assert (rows.stage, {metric.n for metric in rows.metrics}) == ("rank", {3})
    with pytest.raises(simengine.InputError):
        simengine.compare(one, scenario.parent / "nowhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noun", "text # no comment"),
        ("noun", "a: b"),
        ("noun", "true"),
        ("noun", "Übung 🎷"),
        ("users", 5),
        ("carry", 1e-7),
        ("planted", False),
    ],
)
def test_a_value_laid_over_a_scenario_is_taken_as_it_is(scenario: Path, name: str, value: object) -> None:
    assert getattr(simengine.read_scenario(scenario, {f"data.{name}": value}).data, name) == value


def test_a_mapping_and_nothing_can_be_laid_over_a_scenario(scenario: Path) -> None:
    read = simengine.read_scenario(scenario, {"llm.roles": {"reflect": {"temperature": None}}, "llm.latency": None})
    assert read.llm.sampling_for("reflect.user")[1].temperature is None
    assert read.llm.latency is None


def test_a_run_gives_a_bipartite_graph(scenario: Path) -> None:
    graph = simengine.run(scenario).graph()
    assert networkx.is_bipartite(graph)
    sides = networkx.get_node_attributes(graph, "bipartite")
    assert {name.partition(":")[0]: side for name, side in sides.items()} == {"user": 0, "item": 1}
    kinds = [kind for _, _, kind in graph.edges(data="kind")]
    assert kinds.count("interaction") == kinds.count("exposure") == 3  # one of each in each of three events


def test_a_table_becomes_a_data_frame(scenario: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and to_pandas() needs it")
    frame = simengine.run(scenario).metrics.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns)[:4] == ["stage", "ranker", "metric", "k"]


def test_blocking_calls_work_twice_in_a_thread_and_inside_a_running_loop(scenario: Path) -> None:
    hashes = [simengine.run(scenario).hash, simengine.run(scenario).hash]
    thread = threading.Thread(target=lambda: hashes.append(simengine.run(scenario).hash))
    thread.start()
    thread.join()

    async def inside() -> str:
        return simengine.run(scenario).hash

    hashes.append(asyncio.run(inside()))
    assert len(set(hashes)) == 1


async def test_the_awaitable_twins_do_the_same(scenario: Path) -> None:
    run = await simengine.run_async(scenario)
    assert (await simengine.replay_async(run)).events == 3 * 1 + 3


async def test_a_model_of_ones_own_is_asked(scenario: Path) -> None:
    asked: list[str] = []

    def refuse(request: Any) -> str:
        asked.append(request.task)
        return "no"

    run = await simengine.run_async(scenario, model=simengine.Scripted(refuse))
    assert set(asked) == {"choose", "rank"}
    assert run.report.failures == {"choose: unmatched": 3, "rank: incomplete": 3}
    assert not run.memories()


def test_variants_run_into_folders_of_their_own(scenario: Path) -> None:
    scenario.write_text(SCENARIO + "variants: {one: {}, two: {method: {rounds: 1}}}\n", encoding="utf-8")
    runs = simengine.run_variants(scenario)
    assert {name: run.path.as_posix() for name, run in runs.items()} == {
        "one": "replays/small/one",
        "two": "replays/small/two",
    }
    assert runs["one"].hash != runs["two"].hash
    with pytest.raises(simengine.InputError, match="variants"):
        simengine.run(scenario)


async def test_a_data_frame_is_run_resumed_and_replayed(scenario: Path) -> None:
    frame = {
        "who": [user for user in "abc" for _ in range(4)],
        "what": [f"i{(3 * place + number) % 7}" for place in range(3) for number in range(4)],
        "when": list(range(12)),
    }
    data = simengine.from_frame(frame, columns={"user": "who", "item": "what", "time": "when"})
    sets = {"data": {"format": "frame"}}
    with pytest.raises(simengine.InputError, match="from_frame"):
        simengine.run(scenario, sets)
    run = await simengine.run_async(scenario, sets, data=data)
    assert (await simengine.replay_async(run, data=data)).hash == run.hash
