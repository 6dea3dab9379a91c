"""Repeats of a ranking: with the same candidates, or with others drawn for each; all rankers see the same ones."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.data import Dataset
from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Completion, Request
from simengine.measure.metrics import expected_at, place
from simengine.rankers import RANKERS
from simengine.scenario.check import plan
from simengine.scenario.setup import Setup

TEXT = """
name: fresh
seed: 5
data: {format: market, users: 6, items: 40, interests: 3, interactions: 5, seed: 4}
llm: {temperature: 0.7}  # so that no two calls share an answer
method: {kind: agentcf}
stages:
  - rank: {strategies: [B, LLMRank], repeats: 3, candidates: fresh, rankers: [random, pop, bm25], k: [1, 10]}
"""
GIVEN = "stages[0].rank.candidates=given"


class Watched:
    """The lexical model, of which the titles of every ranking are kept, by the ranking's event."""

    def __init__(self) -> None:
        self.shown: dict[str, frozenset[str]] = {}

    async def __call__(self, request: Request) -> Completion:
        self.shown[request.call.partition("#")[0]] = frozenset(request.slots["titles"])
        return await Lexical().complete(request)


def run(out: Path, *sets: str) -> tuple[Path, Watched]:
    model = Watched()
    return Path(runs.run(out, *sets, text=TEXT, backend=Scripted(model)).path), model


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Watched]:
    return run(tmp_path_factory.mktemp("fresh") / "run")


def setup(*sets: str) -> Setup:
    return Setup.of(scenarios.read("fresh.yaml", sets, TEXT)[0])


def dataset() -> Dataset:
    return setup().dataset


def drawn(folder: Path, strategy: str, stage: str = "rank") -> dict[tuple[str, int], tuple[str, ...]]:
    """The candidates in the log, by user and repeat."""
    return {
        (event["data"]["user"], event["data"]["repeat"]): tuple(event["data"]["candidates"])
        for event in runs.events(folder, "ranking")
        if (event["data"]["strategy"], event["data"]["stage"]) == (strategy, stage)
    }


def test_every_repeat_has_candidates_of_its_own(fresh: tuple[Path, Watched]) -> None:
    """As many as the data give; the target is among them, and nothing else that is known of the user."""
    found, data = drawn(fresh[0], "B"), dataset()
    for case in data.cases:
        mine = [found[case.user, repeat] for repeat in (1, 2, 3)]
        assert len({frozenset(candidates) for candidates in mine}) == 3
        for candidates in mine:
            assert len(set(candidates)) == len(case.candidates or ())
            assert set(candidates) & data.own[case.user] == {case.target}


def test_all_strategies_rank_the_same_ones(fresh: tuple[Path, Watched]) -> None:
    """In the log, and in what the model is shown."""
    folder, model = fresh
    items = dataset().items
    assert drawn(folder, "B") == drawn(folder, "LLMRank")
    for (user, repeat), candidates in drawn(folder, "B").items():
        for strategy in ("B", "LLMRank"):
            shown = model.shown[f"rank/{user}/{strategy}/{repeat}"]
            assert shown == {items[name].title for name in candidates}


def test_other_rankers_are_measured_on_the_same_ones(fresh: tuple[Path, Watched]) -> None:
    """Scored here from the candidates in the log: the mean of each user's three repeats, and then over users."""
    folder, _ = fresh
    data, found = dataset(), drawn(folder, "B")
    ranker = RANKERS["bm25"]()
    ranker.fit(data)
    means = []
    for case in data.cases:
        values = []
        for repeat in (1, 2, 3):
            candidates = found[case.user, repeat]
            at = place(ranker.score(case, candidates), candidates.index(case.target))
            values.append(float(expected_at(at.better, at.tied, [10]).ndcg[10]))
        means.append(sum(values) / 3)
    results = {(r.ranker, r.metric, r.k): r for r in runs.report(folder).results}
    bm25 = results["bm25", "ndcg", 10]
    assert bm25.value == pytest.approx(sum(means) / len(means))
    assert (bm25.n, bm25.repeats) == (6, 3)


def test_agents_are_measured_on_the_order_that_they_gave(fresh: tuple[Path, Watched]) -> None:
    folder, _ = fresh
    targets = {case.user: case.target for case in dataset().cases}
    values: dict[str, list[float]] = {}
    for event in runs.events(folder, "ranking"):
        if event["data"]["strategy"] == "B":
            order = next(said["body"]["order"] for said in event["messages"] if said["kind"] == "ranking")
            user = event["data"]["user"]
            values.setdefault(user, []).append(float(order[0] == targets[user]))
    hit = next(r for r in runs.report(folder).results if (r.ranker, r.metric, r.k) == ("agentcf B", "hit", 1))
    assert hit.value == pytest.approx(sum(sum(each) / 3 for each in values.values()) / 6)
    assert hit.low <= hit.value <= hit.high


def test_repeats_of_given_candidates_show_the_same_ones(tmp_path: Path) -> None:
    """Rankers that do not draw are scored once for all repeats; the log need not name the candidates."""
    folder, model = run(tmp_path / "run", GIVEN)
    for user in {event["data"]["user"] for event in runs.events(folder)}:
        assert (
            len({model.shown[f"rank/{user}/{strategy}/{at}"] for strategy in ("B", "LLMRank") for at in (1, 2, 3)}) == 1
        )
    assert not [event for event in runs.events(folder) if "candidates" in event["data"]]
    repeats = {result.ranker: result.repeats for result in runs.report(folder).results}
    assert repeats == {"random": 1, "pop": 1, "bm25": 1, "agentcf B": 3, "LLMRank": 3}


def test_draws_depend_on_seed_stage_user_and_repeat_alone(fresh: tuple[Path, Watched], tmp_path: Path) -> None:
    before = "stages=[{optimize: {}}, {rank: {candidates: fresh, repeats: 3}}]"
    same, _ = run(tmp_path / "same", before, "llm.limits.concurrency=1")
    assert drawn(same, "B") == drawn(fresh[0], "B")
    other, _ = run(tmp_path / "other", "seed=6")
    assert drawn(other, "B") != drawn(fresh[0], "B")
    twice, _ = run(tmp_path / "twice", "stages=[{rank: {}}, {rank: {candidates: fresh, repeats: 3}}]")
    assert drawn(twice, "B", "rank-2") != drawn(fresh[0], "B")


def test_every_item_has_its_chance() -> None:
    """9 of u's 35 other items a draw: over 400 repeats 103 on average, with a standard deviation of 8.7."""
    found = setup("stages[0].rank.repeats=400").trials(setup().stages()[0])
    user = found[0].case.user
    counts = Counter(item for trial in found if trial.case.user == user for item in trial.case.candidates or ())
    others = len(dataset().items) - len(dataset().own[user])
    counts.pop(next(trial.case.target for trial in found if trial.case.user == user))
    share = 9 / others
    assert len(counts) == others
    deviation = (400 * share * (1 - share)) ** 0.5
    assert max(abs(count - 400 * share) for count in counts.values()) < 4.5 * deviation


def test_a_run_with_fresh_candidates_replays_and_resumes(fresh: tuple[Path, Watched], tmp_path: Path) -> None:
    folder, _ = fresh
    assert runs.replay(folder).hash == runs.report(folder).hash
    half = runs.cut(folder, tmp_path / "half", runs.ends(folder)[8])
    runs.resume(half, backend=runs.no_model())
    assert runs.history(half) == runs.history(folder)


def test_where_there_are_fewer_to_draw_all_that_there_are_are_shown(tmp_path: Path) -> None:
    """Of twelve items a user knows five, so that seven negatives are left for the nine that would be drawn."""
    sets = ("data.items=12", "stages[0].rank.rankers=[random]")
    folder, _ = run(tmp_path / "run", *sets)
    data = setup(*sets).dataset
    for (user, _), candidates in drawn(folder, "B").items():
        case = next(case for case in data.cases if case.user == user)
        assert len(candidates) == min(len(case.candidates or ()), 12 - len(data.own[user]) + 1)
    assert {result.n for result in runs.report(folder).results} == {6}


# -- a library that is not there ---------------------------------------------------------------------------------------


@pytest.fixture
def without_cornac(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def spec(name: str, package: str | None = None) -> Any:
        return None if name == "cornac" else find(name, package)

    monkeypatch.setattr("simengine.rankers.optional.find_spec", spec)


MISSING = ("stages=[{optimize: {}}, {rank: {rankers: [pop, itemknn, bpr]}}]",)


@pytest.mark.usefixtures("without_cornac")
def test_a_ranker_whose_library_is_missing_stops_a_run_before_a_call_is_paid(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs cornac, which is not installed") as caught:
        runs.run(tmp_path / "run", *MISSING, text=TEXT, backend=runs.no_model())
    assert "pip install cornac" in str(caught.value)
    assert not (tmp_path / "run").exists()
    scenario, _ = scenarios.read("s.yaml", MISSING, TEXT)
    with pytest.raises(InputError, match="needs cornac"):
        plan(scenario)


def test_a_run_can_be_read_and_replayed_where_the_library_is_missing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Only measuring needs it; an unfinished run says so before it goes on."""
    folder = Path(runs.run(tmp_path / "run", text=runs.SMALL).path)
    text = (folder / "scenario.yaml").read_text(encoding="utf-8")
    (folder / "scenario.yaml").write_text(text.replace("rank: {}", "rank: {rankers: [bpr]}"), encoding="utf-8")
    request.getfixturevalue("without_cornac")
    assert runs.replay(folder).finished
    half = runs.cut(folder, tmp_path / "half", runs.ends(folder)[5])
    with pytest.raises(InputError, match="the ranker bpr needs cornac"):
        runs.resume(half, backend=runs.no_model())
