"""Users with several test cases: each is ranked and measured by itself, and a user counts once in every interval."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs

from simengine import scenario as scenarios
from simengine.data import Dataset
from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request
from simengine.measure.statistics import bootstrap
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.settings import InteRecSettings

USERS, ITEMS, TAKEN = 5, 30, 8
SPLIT = "{ratio: [0.75, 0, 0.25], by: user}"
"""Of eight interactions the last two are test cases."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Users who took one thing a day, each from another one on; the last two of u0 are one item at one time."""
    rows = [
        (f"u{user}", (3 * user + 4 * day) % ITEMS, 86_400 * day + user) for user in range(USERS) for day in range(TAKEN)
    ]
    rows[TAKEN - 1] = rows[TAKEN - 2]
    (tmp_path / "log.csv").write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))
    colours, kinds = ("Red", "Green", "Blue"), ("Lamp", "Chair", "Clock", "Vase", "Shelf")
    titles = (f"{at},{colours[at % 3]} {kinds[at % 5]} {at},{kinds[at % 5].lower()}s" for at in range(ITEMS))
    (tmp_path / "items.csv").write_text("id,title,kind\n" + "\n".join(titles) + "\n")
    return tmp_path / "log.csv"


def _text(log: Path, stages: str, method: str = "{kind: agentcf}", split: str = SPLIT) -> str:
    return (
        f"name: several\nseed: 3\ndata:\n  format: csv\n  path: {log}\n  split: {split}\n"
        "  columns: {user: user, item: item, time: time}\n"
        "  items: {path: items.csv, id: id, title: title, category: kind}\n"
        f"method: {method}\nstages: {stages}\n"
    )


def _run(log: Path, name: str, stages: str, **more: Any) -> Path:
    said = {key: more.pop(key) for key in ("method", "split") if key in more}
    path: Path = runs.run(log.parent / name, text=_text(log, stages, **said), **more).path
    return path


def _dataset(log: Path) -> Dataset:
    scenario, _ = scenarios.read(log.with_suffix(".yaml"), (), _text(log, "[{rank: {}}]"))
    return scenarios.Setup.of(scenario).dataset


RANK = "[{optimize: {}}, {rank: {rankers: [random, pop], k: [1, 5]}}]"


def test_each_case_is_ranked_under_a_name_of_its_own_among_its_own_candidates(log: Path) -> None:
    found = runs.events(_run(log, "run", RANK), "ranking")
    assert sorted(event["event"] for event in found) == sorted(
        f"rank/u{user}/B/{case}1" for user in range(USERS) for case in ("", "case 2/")
    )
    orders = {(event["data"]["user"], event["data"].get("case", 1)): event["messages"][-1]["body"] for event in found}
    cases = {case.key: case for case in _dataset(log).cases}
    assert orders.keys() == cases.keys()
    for key, body in orders.items():
        assert {*body["order"], *body["missing"]} == set(cases[key].candidates or ())
    assert any(set(cases[user, 1].candidates or ()) - {cases[user, 1].target}
               != set(cases[user, 2].candidates or ()) - {cases[user, 2].target} for user, _ in cases)  # fmt: skip


def test_first_cases_are_the_same_whether_there_are_others_or_not(log: Path) -> None:
    every = _run(log, "all", RANK)
    first = _run(log, "first", RANK, split="{ratio: [0.75, 0, 0.25], by: user, cases: first}")
    assert runs.events(first) == [event for event in runs.events(every) if "case" not in event["data"]]


def test_a_case_knows_what_was_taken_before_it_and_memories_do_not(log: Path) -> None:
    shown: dict[str, tuple[str, ...]] = {}

    class Listening(Lexical):
        async def complete(self, request: Request) -> Completion:
            if request.task == "rank" and request.slots.get("history"):  # of strategy B there is none
                shown[request.call] = tuple(request.slots["history"])
            return await super().complete(request)

    stages = "[{optimize: {}}, {rank: {strategies: [B, LLMRank]}}]"
    folder = _run(log, "run", stages, backend=Listening())
    lengths = Counter(len(history) for history in shown.values())
    assert lengths == {TAKEN - 2: USERS, TAKEN - 1: USERS}
    by_user: dict[str, set[tuple[str, ...]]] = {}
    for event in runs.events(folder, "ranking"):
        if event["data"]["strategy"] == "B":
            mine = tuple(name for name in event["messages"][-1]["because"] if name.startswith("user:"))
            by_user.setdefault(event["data"]["user"], set()).add(mine)
    assert all(len(found) == 1 for found in by_user.values())


def test_users_count_once_in_values_and_intervals(log: Path) -> None:
    folder = _run(log, "run", RANK)
    report = runs.report(folder)
    cases = {case.key: case for case in _dataset(log).cases}
    hits, users = [], []
    for event in runs.events(folder, "ranking"):
        user, order = event["data"]["user"], event["messages"][-1]["body"]["order"]
        hits.append(float(cases[user, event["data"].get("case", 1)].target in order[:5]))
        users.append(user)
    [found] = [row for row in report.results if (row.ranker, row.metric, row.k) == ("agentcf B", "hit", 5)]
    ordered = sorted(zip(users, hits, strict=True), key=lambda pair: pair[0])
    expected = bootstrap([hit for _, hit in ordered], [user for user, _ in ordered], seed=3)
    assert (found.value, found.n) == (pytest.approx(np.mean(hits)), USERS)  # all have two cases
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert {row.n for rows in report.compared.values() for row in rows} == {USERS}
    assert report.audit["rank"].cases == report.audit["rank"].scored == 2 * USERS
    assert {row.n for row in report.audit["rank"].trivial} == {USERS}


@pytest.mark.parametrize("when", ["live", "after", "[200000]"])
def test_a_run_is_replayed_whenever_its_cases_are_ranked(log: Path, when: str) -> None:
    folder = _run(log, "run", f"[{{optimize: {{}}}}, {{rank: {{when: {when}, repeats: 2, candidates: fresh}}}}]")
    assert len(runs.events(folder, "ranking")) == 4 * USERS
    assert runs.replay(folder).hash == runs.report(folder).hash


def test_an_agent_that_goes_on_learning_learns_from_every_case(log: Path) -> None:
    method = "{kind: agentcfpp, every: 10, online: true}"
    folder = _run(log, "run", "[{optimize: {}}, {rank: {when: live}}]", method=method)
    learnt = [event["event"] for event in runs.events(folder, "interaction") if event["event"].startswith("online/")]
    assert len(learnt) == len(set(learnt)) == 2 * USERS
    assert len([name for name in learnt if name.startswith("online/u0/") and name.endswith("/1")]) == 1


def test_studies_of_test_cases_take_all_of_them_and_count_users(log: Path) -> None:
    stages = (
        "[{optimize: {}}, {cold_start: {read: 1, pool: 4}}, {reviews: {}}, {discussion: {}}, {advertising: {items: 3}}]"
    )
    folder = _run(log, "run", stages)
    events = runs.events(folder)
    assert len({event["event"] for event in events}) == len(events)
    by_kind = Counter(event["kind"] for event in events)
    assert by_kind["cold_start.rank"] == 4 * 2 * USERS
    assert (
        by_kind["reviews.read"] + by_kind["reviews.skip"]
        == by_kind["discussion.talk"] + by_kind["discussion.skip"]
        == 2 * USERS
    )
    assert by_kind["discussion.talk"] > USERS
    judged = [
        (event["data"]["item"], event["data"]["user"]) for event in events if event["kind"] == "advertising.judge"
    ]
    assert len(judged) == len(set(judged)) > 0
    assert all(row.n <= USERS for row in runs.report(folder).results)


def test_recorded_rankings_of_users_are_refused_before_anything_is_paid_for(log: Path) -> None:
    (log.parent / "theirs.jsonl").write_text('{"user_id": "u0", "matched_item_ids": ["1"]}\n')
    text = _text(log, "[{rank: {rankers: [{recorded: ../theirs.jsonl, name: theirs}]}}]")
    scenario, plain = scenarios.read(log.with_suffix(".yaml"), (), text)
    with pytest.raises(InputError, match="recorded rankings are one for each user") as caught:
        asyncio.run(scenarios.run(scenario, plain, out=log.parent / "run", backend=runs.no_model()))
    assert "cases: first" in (caught.value.remedy or "")


def test_who_talks_about_his_first_case_does_not_know_of_later_ones(log: Path) -> None:
    """What he has had are the six things before it; of two users all four cases are talked about."""
    folder = _run(log, "run", "[{converse: {turns: 1, users: 2}}]", method="{kind: interec, preference: itemknn}")
    dataset = _dataset(log)
    talks = {event["event"] for event in runs.events(folder) if event["event"].count("/") == 3}
    assert {"converse/talk/u0/1", "converse/talk/u0/2", "converse/talk/u1/1", "converse/talk/u1/2"} <= talks
    assert not [name for name in talks if name.startswith("converse/talk/u2")]
    method = InteRec(InteRecSettings(kind="interec"), dataset, None, 3)  # type: ignore[arg-type]  (it asks for nothing)
    known = method.initial("user:u1")["history"].splitlines()
    assert known == [dataset.items[item].title for item in dataset.cases[2].history]
    assert len(known) == TAKEN - 2
