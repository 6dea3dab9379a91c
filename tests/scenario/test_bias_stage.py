"""Studies of bias: who is shown where, among whom, and what is said of each ranker's sensitivity to it."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.data import by_popularity
from simengine.errors import InputError
from simengine.llm.backends.scripted import Scripted
from simengine.llm.request import Request
from simengine.measure.metrics import expected_at, place
from simengine.rankers import RANKERS
from simengine.scenario.comparison import compare
from simengine.scenario.estimate import estimate
from simengine.scenario.setup import Setup

TEXT = """
name: bias
seed: 5
data: {format: market, users: 6, items: 60, interests: 3, interactions: 5, seed: 4}
method: {kind: agentcf}
stages:
  - bias: {by: position, strategies: [B, LLMRank], rankers: [pop]}
  - bias: {by: popularity, rankers: [pop]}
"""
GAIN = {at: 1 / math.log2(at + 1) for at in range(1, 11)}


class Watched:
    """Ranks candidates as they are listed: nothing but the place counts. Keeps what it was shown, by event."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[str, ...]] = {}

    def __call__(self, request: Request) -> str:
        titles = request.slots["titles"]
        assert isinstance(titles, tuple)
        self.shown[request.call.partition("#")[0]] = titles
        return "\n".join(["Rank:", *titles])


def setup(*sets: str) -> Setup:
    return Setup.of(scenarios.read("bias.yaml", sets, TEXT)[0])


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, watched: Watched) -> Path:
    return Path(runs.run(tmp_path_factory.mktemp("bias") / "run", text=TEXT, backend=Scripted(watched)).path)


def ranking_events(folder: Path, stage: str) -> list[dict[str, Any]]:
    return [event for event in runs.events(folder, "ranking") if event["data"]["stage"] == stage]


def results(folder: Path, stage: str, metric: str) -> dict[str, dict[str, Any]]:
    """By ranker and condition."""
    found: dict[str, dict[str, Any]] = {}
    for result in runs.report(folder).results:
        if (result.stage, result.metric) == (stage, metric):
            found.setdefault(result.ranker, {})[result.group] = result
    return found


# -- by position -------------------------------------------------------------------------------------------------------


def test_the_target_is_shown_at_each_place_once(folder: Path, watched: Watched) -> None:
    items, cases = setup().dataset.items, {case.user: case for case in setup().dataset.cases}
    places: Counter[tuple[str, str, int]] = Counter()
    for event in ranking_events(folder, "bias"):
        data, shown = event["data"], watched.shown[event["event"]]
        case = cases[data["user"]]
        assert set(shown) == {items[name].title for name in case.candidates or ()}
        at = shown.index(items[case.target].title)
        assert data["group"] == f"position {at + 1}"
        places[data["user"], data["strategy"], at] += 1
    assert places == {(user, strategy, at): 1 for user in cases for strategy in ("B", "LLMRank") for at in range(10)}


def test_the_others_stand_around_it_in_any_order(folder: Path, watched: Watched) -> None:
    """Else each place would be compared in one constellation alone."""
    items, case = setup().dataset.items, setup().dataset.cases[0]
    target = items[case.target].title
    orders = {
        tuple(title for title in watched.shown[f"bias/{case.user}/B/position {at}/1"] if title != target)
        for at in range(1, 11)
    }
    assert len(orders) == 10


def test_who_goes_by_the_place_alone_is_as_sensitive_as_can_be(folder: Path) -> None:
    """NDCG@10 is then that of the place itself; whoever does not see the order has none at all."""
    ndcg = results(folder, "bias", "ndcg")
    for ranker in ("agentcf B", "LLMRank"):
        assert [result.value for result in ndcg[ranker].values()] == pytest.approx([GAIN[at] for at in range(1, 11)])
        assert list(ndcg[ranker]) == [f"position {at}" for at in range(1, 11)]
    found = {
        ranker: by_group["first less last half"] for ranker, by_group in results(folder, "bias", "sensitivity").items()
    }
    most = sum(GAIN[at] for at in range(1, 6)) / 5 - sum(GAIN[at] for at in range(6, 11)) / 5
    assert list(found) == ["pop", "agentcf B", "LLMRank"]
    for ranker, value in (("pop", 0.0), ("agentcf B", most), ("LLMRank", most)):
        row = found[ranker]
        assert (row.value, row.low, row.high) == pytest.approx((value, value, value))
        assert (row.n, row.k) == (6, 10)


def test_a_user_with_fewer_candidates_has_fewer_places_and_no_part_in_the_contrast(tmp_path: Path) -> None:
    """u has three candidates and v four: at the fourth place v stands alone."""
    header = "user_id:token|item_id_list:token_seq|item_id:token\n"
    files = {
        "x.train.inter": header + "u|a|b\nv|b|c\n",
        "x.test.inter": header + "u|a b|d\nv|b c|d\n",
        "x.item": "item_id:token|title:token_seq|category:token_seq\n"
        + "".join(f"{i}|Title {i}|Folk\n" for i in "abcdefg"),
        "x.random": "u|e f\nv|e f g\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content.replace("|", "\t"), encoding="utf-8")
    sets = (f"data={{format: atomic, path: {tmp_path}, clock: step}}", "stages=[{bias: {by: position}}]")
    folder = Path(runs.run(tmp_path / "run", *sets, text=TEXT, backend=Scripted(Watched())).path)
    report = runs.report(folder)
    counts = {group: result.n for group, result in results(folder, "bias", "ndcg")["agentcf B"].items()}
    assert counts == {"position 1": 2, "position 2": 2, "position 3": 2, "position 4": 1}
    assert report.skipped == {"bias": {"too few candidates for every condition": 1}}
    assert results(folder, "bias", "sensitivity")["agentcf B"]["first less last half"].n == 1


# -- by popularity -----------------------------------------------------------------------------------------------------


def test_negatives_come_from_the_third_that_is_named(folder: Path) -> None:
    data = setup().dataset
    ranked = by_popularity(data)
    thirds = {"rare": ranked[:20], "middle": ranked[20:40], "popular": ranked[40:]}
    cases = {case.user: case for case in data.cases}
    seen: Counter[str] = Counter()
    for event in ranking_events(folder, "bias-2"):
        case, candidates = cases[event["data"]["user"]], event["data"]["candidates"]
        negatives = [name for name in candidates if name != case.target]
        assert len(candidates) == len(set(candidates)) == len(case.candidates or ()) == len(negatives) + 1
        assert set(negatives) <= set(thirds[event["data"]["group"]])
        assert not set(negatives) & data.own[case.user]
        seen[event["data"]["group"]] += 1
    assert seen == {"rare": 6, "middle": 6, "popular": 6}


def test_what_is_rare_is_told_by_training_interactions_and_ties_by_id() -> None:
    data = setup().dataset
    counts = Counter(row.item for row in data.training_part)
    ordered = by_popularity(data)
    assert [counts[item] for item in ordered] == sorted(counts[item] for item in data.items)
    unseen = [item for item in ordered if not counts[item]]
    assert unseen == [item for item in data.items if not counts[item]]


def test_popularity_is_sensitive_to_popularity(folder: Path) -> None:
    """Scored here from the candidates in the log, user by user."""
    data = setup().dataset
    ranker = RANKERS["pop"]()
    ranker.fit(data)
    cases = {case.user: case for case in data.cases}
    values: dict[tuple[str, str], float] = {}
    for event in ranking_events(folder, "bias-2"):
        case, candidates = cases[event["data"]["user"]], event["data"]["candidates"]
        at = place(ranker.score(case, candidates), candidates.index(case.target))
        values[case.user, event["data"]["group"]] = float(expected_at(at.better, at.tied, [10]).ndcg[10])
    ndcg = results(folder, "bias-2", "ndcg")["pop"]
    for third in ("rare", "middle", "popular"):
        assert ndcg[third].value == pytest.approx(sum(values[user, third] for user in cases) / 6)
    row = results(folder, "bias-2", "sensitivity")["pop"]["rare less popular"]
    assert row.value == pytest.approx(ndcg["rare"].value - ndcg["popular"].value)
    assert 0 < row.low < row.value < row.high


def test_a_user_who_leaves_a_third_too_few_is_skipped_and_counted(tmp_path: Path) -> None:
    """Of 36 items each third has twelve: whoever knows more than three of one of them has no nine left there."""
    sets = ("data.items=36", "stages=[{bias: {by: popularity}}]")
    data = setup(*sets).dataset
    ranked = by_popularity(data)
    thirds = [ranked[:12], ranked[12:24], ranked[24:]]
    short = {
        case.user
        for case in data.cases
        if any(len(set(third) - data.own[case.user]) < len(case.candidates or ()) - 1 for third in thirds)
    }
    assert 0 < len(short) < len(data.cases), "the example has users of both kinds"
    folder = Path(runs.run(tmp_path / "run", *sets, text=TEXT, backend=Scripted(Watched())).path)
    assert {event["data"]["user"] for event in runs.events(folder)} == set(data.users) - short
    assert runs.report(folder).skipped == {"bias": {"too few candidates for every condition": len(short)}}
    assert {result.n for result in runs.report(folder).results} == {len(data.cases) - len(short)}


def test_too_few_items_for_anybody_are_refused_before_a_call(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no user is left to whom each third of the items has enough") as caught:
        runs.run(tmp_path / "run", "data.items=12", text=TEXT, backend=runs.no_model())
    assert caught.value.where == {"stage": "bias-2", "items": 12}
    assert not (tmp_path / "run").exists()


# -- the stage as a whole ----------------------------------------------------------------------------------------------


def test_each_study_has_its_figure(folder: Path) -> None:
    for name in ("bias", "bias-2"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_failed_ranking_is_left_out_of_its_condition_for_all(tmp_path: Path) -> None:
    """And its user out of the contrast, so that rankers are compared on the same users."""

    class Failing(Watched):
        def __call__(self, request: Request) -> str:
            lost = request.call.startswith("bias/u3/LLMRank/position 2/")
            return "Blue skies." if lost else super().__call__(request)

    folder = Path(runs.run(tmp_path / "run", "stages[1]={rank: {}}", text=TEXT, backend=Scripted(Failing())).path)
    ndcg = results(folder, "bias", "ndcg")
    assert {ranker: rows["position 2"].n for ranker, rows in ndcg.items()} == {"pop": 5, "agentcf B": 5, "LLMRank": 5}
    assert {ranker: rows["position 3"].n for ranker, rows in ndcg.items()} == {"pop": 6, "agentcf B": 6, "LLMRank": 6}
    contrast = results(folder, "bias", "sensitivity")
    assert {row.n for rows in contrast.values() for row in rows.values()} == {5}
    assert runs.report(folder).skipped == {"bias": {"LLMRank: incomplete": 1}}


def test_another_choice_of_rankers_or_cut_offs_is_the_same_scenario() -> None:
    """These only measure; what is shown, and to whom, is another scenario."""
    plain = setup().header.scenario
    assert setup("stages[0].bias.rankers=[bm25]", "stages[1].bias.k=[1, 5]").header.scenario == plain
    assert setup("stages[0].bias.strategies=[B]").header.scenario != plain
    assert setup("stages[0].bias.by=popularity").header.scenario != plain


def test_what_a_market_recovers_is_measured_on_its_own_candidates_alone(folder: Path) -> None:
    """Rankings under a condition are none of it."""
    assert not [row.what for row in runs.report(folder).recovered if "ndcg" in row.what]


def test_its_cost_is_estimated_like_any_other() -> None:
    found = estimate(scenarios.read("bias.yaml", ("stages[0].bias.strategies=[B, B+R]",), TEXT)[0])
    assert {(task.stage, task.task): task.calls for task in found.tasks} == {
        ("bias", "rank"): 120,
        ("bias-2", "rank"): 18,
    }
    assert found.failed == 0


def test_it_replays_and_resumes(folder: Path, tmp_path: Path) -> None:
    assert runs.replay(folder).hash == runs.report(folder).hash
    half = runs.cut(folder, tmp_path / "half", runs.ends(folder)[30])
    runs.resume(half, backend=runs.no_model())
    assert runs.history(half) == runs.history(folder)
    assert runs.report(half).results == runs.report(folder).results


def test_two_runs_are_compared_under_each_condition(folder: Path) -> None:
    """Each strategy goes by the name that reports give it; LLMRank is no strategy of agents."""
    rows = {(row.stage, row.first): row for row in compare(folder, folder).rows}
    assert ("bias", "agentcf B, position 1") in rows
    assert len(rows) == 2 * 10 + 3
    first = next(metric for metric in rows["bias", "LLMRank, position 2"].metrics if metric.metric == "ndcg")
    assert (first.first, first.difference, first.n) == (pytest.approx(GAIN[2]), 0.0, 6)
