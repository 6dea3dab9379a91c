"""Plantings in the members of an interest group: who they are is known only in the run, and by its records alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request
from simengine.measure.contacts import read_contacts
from simengine.measure.reachability import reach
from simengine.runlog import Reader
from simengine.scenario.check import plan
from simengine.scenario.following import follow
from simengine.scenario.loading import open_trace
from simengine.scenario.propagation import measure_spread, pairs
from simengine.testing import MethodContract

PREFERENCE = "I like theremin duets."
TEXT = f"""
name: planted-groups
seed: 5
data: {{format: market, users: 12, items: 40, domains: 2, interests: 3, interactions: 8, seed: 4}}
method: {{kind: agentcfpp, every: 12, item_words: 60}}
plant: {{statements: [{{preference: {PREFERENCE}, seeds: {{in_group: largest}}, at: 3}}]}}
stages: [{{optimize: {{}}}}, {{probe: {{at: [start, 3, end]}}}}]
"""
SEEDS = "plant.statements[0].seeds"


def planted(folder: Path) -> list[str]:
    """The users whom the planting has given the preference to, as they come."""
    return [event["data"]["user"] for event in runs.events(folder, "plant")]


def groups(folder: Path, time: int) -> list[dict[str, Any]]:
    """The groups in force before the interactions of a time, the largest first."""
    found = [
        memory["value"]
        for event in runs.events(folder)
        for memory in event.get("memories", ())
        if (memory["agent"], memory["slot"]) == ("grouping:current", "groups") and event["time"] < time
    ]
    return found[-1]


@pytest.fixture(scope="module")
def treatment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = runs.run(tmp_path_factory.mktemp("groups") / "treatment", text=TEXT).path
    return path


def test_all_members_of_the_largest_group_are_seeds_as_it_is_then(treatment: Path) -> None:
    now, later = groups(treatment, 3)[0], groups(treatment, 5)[0]
    assert planted(treatment) == now["members"] != later["members"]
    assert {event["data"]["group"] for event in runs.events(treatment, "plant")} == {now["id"]}
    holding = {
        event["data"]["user"]
        for event in runs.events(treatment, "probe.ask")
        if event["data"]["at"] == 3 and event["messages"][0]["body"]["holds"]
    }
    assert holding >= set(planted(treatment))


def test_only_the_seeds_get_a_version(treatment: Path) -> None:
    drawn, *given = [event for event in runs.events(treatment) if event["kind"].startswith("plant")]
    assert "memories" not in drawn and "edges" not in drawn
    for event in given:
        assert {memory["agent"] for memory in event["memories"]} == {f"user:{event['data']['user']}"}
        assert all(memory["value"].startswith(PREFERENCE) for memory in event["memories"])


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_group_is_known_by_its_name_in_any_case_or_by_its_id(by: str, treatment: Path, tmp_path: Path) -> None:
    group = groups(treatment, 3)[3]
    named = group["id"] if by == "id" else group["name"].upper()
    path = runs.run(tmp_path / "run", f'{SEEDS}={{in_group: "{named}"}}', text=TEXT).path
    assert planted(path) == group["members"] != planted(treatment)


def test_some_members_are_drawn_by_the_seed(tmp_path: Path) -> None:
    drawn = {
        seed: planted(runs.run(tmp_path / f"{seed}", f"{SEEDS}.count=2", f"seed={seed}", text=TEXT).path)
        for seed in range(5)
    }
    for seed, names in drawn.items():
        assert len(set(names)) == 2 and set(names) < set(groups(tmp_path / f"{seed}", 3)[0]["members"])
    assert len({frozenset(names) for names in drawn.values()}) > 1


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (f"{SEEDS}={{in_group: jazz}}", "no such group"),
        (f"{SEEDS}.count=12", "group too small"),
    ],
)
def test_what_cannot_be_planted_is_a_recorded_failure(
    entry: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = "{preference: I like whistled yodels., seeds: {users: [u3]}}"
    both = f"plant.statements=[{{preference: {PREFERENCE}, seeds: {{in_group: largest}}, at: 3}}, {second}]"
    finished = runs.run(tmp_path / "run", both, entry, text=TEXT)
    assert finished.report.failures == {f"plant.draw: {reason}": 1}
    assert "nobody was planted" in capsys.readouterr().out
    assert planted(finished.path) == ["u3"]
    assert runs.replay(finished.path).hash == finished.report.hash
    spread = asyncio.run(measure_spread(pairs([finished.path])))
    assert spread.decay is not None and spread.decay.plantings == 1 and spread.decay.hops[0].agents == 1
    assert [note for note in spread.decay.notes if PREFERENCE in note and "planted in nobody" in note]
    alone = runs.run(tmp_path / "alone", entry, text=TEXT).path
    with pytest.raises(InputError, match="none of the preferences was planted"):
        asyncio.run(measure_spread(pairs([alone])))


class Untagged(Lexical):
    """Rules that name no tags, so that no group is ever formed."""

    async def complete(self, request: Request) -> Completion:
        return Completion(text="?") if request.task == "group.tags" else await super().complete(request)


def test_where_no_group_could_be_formed_that_is_told(tmp_path: Path) -> None:
    finished = runs.run(tmp_path / "run", text=TEXT, backend=Untagged())
    assert finished.report.failures["plant.draw: no groups"] == 1
    assert planted(finished.path) == []


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["method={kind: agentcf}"], "agentcf as it is set forms no groups"),
        (["method={kind: agentcfpp, shared: false}"], "agentcfpp as it is set forms no groups"),
        (["method.every=61"], "forms no groups in 60 interactions"),
        (["stages=[{rank: {}}]"], "forms no groups in 0 interactions"),
        (["plant.statements[0].at=start"], "there are no groups yet"),
        (["plant.statements[0].at=2"], "there are no groups yet"),
        (["method.lag=60"], "there are no groups yet"),
        ([f"{SEEDS}.count=13"], "more seeds are asked for"),
        ([f"{SEEDS}={{in_group: largest, random: 1}}"], "say one of"),
        ([f"{SEEDS}={{random: 2, count: 1}}"], "goes with `in_group`"),
    ],
)
def test_what_can_be_told_beforehand_is_refused_by_the_check(entries: list[str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem):
        plan(scenarios.read("planted.yaml", entries, TEXT)[0])
    with pytest.raises(InputError, match=problem):
        runs.run(tmp_path / "run", *entries, text=TEXT)
    assert not (tmp_path / "run").exists()


def test_the_earliest_time_that_is_not_refused_finds_groups(tmp_path: Path) -> None:
    """The first groups are in force behind interactions of time 2, so that they are there at any time after it."""
    for lag, at in ((0, 2.001), (15, 4.001), (60, 6.001)):
        finished = runs.run(tmp_path / f"{at}", f"method.lag={lag}", f"plant.statements[0].at={at}", text=TEXT)
        assert planted(finished.path) and not finished.report.failures


def test_a_control_needs_no_groups(tmp_path: Path) -> None:
    finished = runs.run(tmp_path / "run", "plant.enabled=false", "method={kind: agentcf}", text=TEXT)
    assert not runs.events(finished.path, "plant.draw")


def test_a_time_is_one_of_the_interactions_wherever_their_stage_stands(tmp_path: Path) -> None:
    text = TEXT.replace("stages: [", "stages: [{rank: {}}, ")
    path = runs.run(tmp_path / "run", text=text).path
    names = [event["event"] for event in runs.events(path)]
    assert planted(path) == groups(path, 3)[0]["members"]
    assert names.index("plant/0") > names.index("grouping.form/1")


def test_treatment_and_control_differ_by_what_the_seeds_may_reach(treatment: Path, tmp_path: Path) -> None:
    control = asyncio.run(scenarios.fork(treatment, ["plant.enabled=false"], out=tmp_path / "control"))
    assert runs.replay(control.path).hash == control.report.hash
    assert runs.replay(treatment).hash == runs.report(treatment).hash
    before = [event for event in runs.events(treatment) if event["time"] < 3]
    assert before and before == [event for event in runs.events(control.path) if event["time"] < 3]
    spread = asyncio.run(measure_spread(pairs([treatment], control.path)))
    assert spread.outside == () == spread.false_positives
    decay = spread.decay
    assert decay is not None and decay.plantings == 1
    seeds = decay.hops[0]
    assert (seeds.agents, seeds.holders, seeds.control.value) == (3, 3, 0)
    assert decay.transmission[0].successes > 0
    assert decay.spontaneous.successes == 0  # the seeds have it from nobody, and not from one another
    contacts = {row.kind: row.contacts for row in decay.met}
    assert contacts["group"] > 0 and contacts["interaction"] > 0
    # the grouping was reached too, but is nobody who could hold it, or fail to
    assert {row.kind for row in decay.transmission} <= {"all", "interaction", "exposure"}
    assert sum(share.agents for share in decay.hops) == sum(row.reached for row in decay.apart) - 1


def test_the_way_through_groups_is_counted_apart(treatment: Path) -> None:
    lines = list(Reader(treatment / "events.jsonl"))
    positions = {f"user:{line.data['user']}": at for at, line in enumerate(lines) if line.kind == "plant"}
    contacts = read_contacts(lines)
    drawn = set(positions.values())
    assert not drawn & set(contacts.position.tolist())  # a planting is no contact
    reached = reach(contacts, positions)
    grouped = reached.contacts[:, reached.kinds.index("group")]
    by_group = {agent for agent, count in zip(reached.agents, grouped.tolist(), strict=True) if count}
    assert {agent.partition(":")[0] for agent in by_group} == {"user", "item"}
    assert grouped.sum() < reached.contacts.sum()
    hops = dict(zip(reached.agents, reached.hops.tolist(), strict=True))
    assert [agent for agent, hop in hops.items() if hop == 0] == sorted(positions, key=reached.agents.index)
    assert hops["grouping:current"] == 1  # it reads what the seeds like


def test_a_preference_is_followed_back_to_a_seed(treatment: Path) -> None:
    followed = follow(treatment, open_trace(treatment)[0], PREFERENCE)
    assert set(followed.seeds) == {f"user:{name}" for name in planted(treatment)}
    others = [agent for agent in followed.first if agent not in followed.seeds and agent.startswith("user:")]
    assert others
    for agent in others:
        chain = followed.chain(agent)
        assert chain.planted and chain.links[0].record.agent in followed.seeds


@pytest.mark.parametrize("more", [[], ["engine.schedule={batch: 5}"], ["engine.visibility.users=every 5 events"]])
def test_concurrency_and_latency_change_nothing(more: list[str], tmp_path: Path) -> None:
    alone, many = (
        runs.run(
            tmp_path / f"{concurrency}",
            *more,
            f"{SEEDS}.count=2",
            f"llm.limits.concurrency={concurrency}",
            f"llm.latency={{median: 0.0005, sigma: 1.5, seed: {concurrency}}}",
            text=TEXT,
        )
        for concurrency in (1, 64)
    )
    assert len(planted(alone.path)) == 2
    assert runs.history(alone.path) == runs.history(many.path)


class TestPlantingInGroupsKeepsTheContract(MethodContract):
    scenario = """
name: planted-groups
seed: 5
data: {format: market, users: 5, items: 20, domains: 2, interests: 2, interactions: 6, seed: 4}
method: {kind: agentcfpp, every: 5}
plant: {statements: [{preference: I like theremin duets., seeds: {in_group: largest, count: 1}, at: 3}]}
stages: [{optimize: {}}, {probe: {}}]
"""
