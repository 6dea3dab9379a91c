"""Conversations through the engine: the contract, hostile planners, hits by id, names, memory, and many at once."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import runs
from interec_games import TAKEN, shop_data
from test_interec_hostile import ITEMS, PLANS, QUERIES

from simengine.data import Case, Dataset, Item
from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.backends.scripted import Scripted
from simengine.llm.replies import decision, talk
from simengine.llm.request import Completion, Request
from simengine.measure.studies.converse import ConverseReading
from simengine.runlog import EventLine, Reader
from simengine.scenario import Setup, fork, read
from simengine.testing import MethodContract

SMALL = """
name: small
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{converse: {turns: 3}}]
"""
FEW = SMALL.replace("users: 8", "users: 4")
GIVEN = """
name: given
data: {format: frame}
# above temperature 0 no two calls share an answer, so that all of them are seen
llm: {temperature: 0.5}
method: {kind: interec}
stages: [{converse: {turns: 3}}]
"""
FETCH = '{"thought": "", "steps": [{"tool": "fetch", "input": {"n": 5}}]}'
Answers = Mapping[str, Callable[[Request], str | None]]
"""What is answered to a task in the place of the lexical model, where it is not none."""


class TestContract(MethodContract):
    scenario = FEW


class TestContractStepByStep(MethodContract):
    scenario = FEW.replace("kind: interec", "kind: interec, planning: step_by_step, demonstrations: 0, reflection: 1")


class Watched:
    """The lexical model, of which every request is kept; ``answers`` may answer in its place."""

    def __init__(self, answers: Answers) -> None:
        self.asked: list[Request] = []
        self._answers = answers

    async def __call__(self, request: Request) -> Completion:
        self.asked.append(request)
        instead = self._answers.get(request.task, lambda _: None)(request)
        return await Lexical().complete(request) if instead is None else Completion(instead)

    def tasks(self) -> list[str]:
        return [request.task.removeprefix("converse.") for request in self.asked]


def _games(**targets: str) -> Dataset:
    """The shop of games, where users look for these targets."""
    data = shop_data()
    cases = tuple(Case(user, target, TAKEN[user], (target,), 9) for user, target in targets.items())
    return dataclasses.replace(data, cases=cases, digest="games")


def _run(folder: Path, data: Dataset, answers: Answers, *sets: str) -> tuple[Any, list[EventLine], Watched]:
    model = Watched(answers)
    finished = runs.run(folder / "run", *sets, text=GIVEN, data=data, backend=Scripted(model))
    return finished, list(Reader(finished.path / "events.jsonl")), model


def _said(line: EventLine, kind: str) -> list[dict[str, Any]]:
    return [message.body for message in line.messages if message.kind == kind]


def _always(text: str) -> Callable[[Request], str]:
    return lambda request: text


# -- hits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "fetched", "hit"),
    [
        ("g1", "Portal 2", False),  # Portal
        ("g1", "Portal", True),
        ("g3", "Half-Life 2", False),  # Half-Life
        ("g5", "Football, Tactics & Glory", False),  # b
        ("g5", "b", True),
        ("g6", "原神", True),
        ("g6", "Мор. Утопия", False),
        ("g7", "Мор. Утопия", True),
        ("g13", "Counter-Strike: Source", False),  # Counter-Strike
    ],
)
def test_a_hit_is_one_by_id(target: str, fetched: str, hit: bool, tmp_path: Path) -> None:
    """Whatever the reply says, and whatever titles have in common."""
    plan = json.dumps({"steps": [{"tool": "store", "input": {"titles": [fetched]}}, {"tool": "fetch"}]})
    says = "Message: Portal, Portal 2, Half-Life, b, 原神, Мор. Утопия, Counter-Strike: take any of them."
    answers = {
        "converse.user": _always(talk.write("Something, please.", False)),
        "converse.plan": _always(plan),
        "converse.reply": _always(says),
    }
    _, (line,), _ = _run(tmp_path, _games(u5=target), answers, "stages=[{converse: {turns: 1}}]")
    assert _said(line, "end")[0]["how"] == ("hit" if hit else "limit")


def test_no_more_than_k_items_count(tmp_path: Path) -> None:
    """A plan that fetches the whole shop gets k items of it."""
    answers = {"converse.plan": _always(FETCH.replace("5}", "20}"))}
    _, (line,), _ = _run(tmp_path, _games(u5="g16"), answers, "stages=[{converse: {turns: 1, k: 3}}]")
    assert [len(reply["items"]) for reply in _said(line, "reply")] == [3]


# -- the user ----------------------------------------------------------------------------------------------------------


def test_a_user_who_names_the_target_is_asked_again_and_then_marked(tmp_path: Path) -> None:
    answers = {"converse.user": _always(talk.write("Have you got the witcher 3, wild hunt?", False))}
    finished, (line,), model = _run(tmp_path, _games(u1="g8"), answers, "stages=[{converse: {turns: 1, tries: 4}}]")
    assert model.tasks().count("user") == 4
    assert "named what you want" in model.asked[1].messages[-1].content
    assert "named what you want" not in model.asked[0].messages[-1].content
    assert _said(line, "end")[0]["named"]
    assert finished.report.skipped == {"converse": {"the target was named": 1}}
    assert not [result for result in finished.report.results if result.metric == "hit"]


def test_a_user_tells_three_conditions_at_most(tmp_path: Path) -> None:
    """O'Brien's has one tag and a popularity, Half-Life 2 has two tags, a year, a price and a popularity."""
    all_of_it = "Action, First-Person, came out in 2004, costs 9.99"
    answers = {"converse.user": _always(talk.write(all_of_it, False))}
    _, (line,), model = _run(tmp_path, _games(u5="g4"), answers, "stages=[{converse: {turns: 1, tries: 2}}]")
    assert model.tasks().count("user") == 2
    assert _said(line, "end")[0]["marks"] == ["told too much"]
    assert not _said(line, "end")[0]["named"]


def test_a_farewell_ends_the_talk_and_an_unreadable_user_too(tmp_path: Path) -> None:
    def user(request: Request) -> str:
        return talk.write("Goodbye!", True) if request.call.startswith("converse/talk/u1/") else "???"

    _, lines, model = _run(tmp_path, _games(u1="g8", u2="g8"), {"converse.user": user})
    assert [_said(line, "end")[0]["how"] for line in lines] == ["farewell", "error"]
    assert "plan" not in model.tasks()


def test_the_recommender_is_told_neither_target_nor_history(tmp_path: Path) -> None:
    """It knows what is said, and nothing else: no prompt of its own shows the target or what the user has had."""
    answers = {
        "converse.user": _always(talk.write("Something, please.", False)),
        "converse.plan": _always('{"steps": []}'),
    }
    _, _, model = _run(tmp_path, _games(u5="g8"), answers)
    own = "\n".join(m.content for request in model.asked if request.task != "converse.user" for m in request.messages)
    assert "Witcher" not in own
    assert "原神" not in own


def test_each_turn_is_an_event_and_the_user_hears_what_no_critic_accepts(tmp_path: Path) -> None:
    """Turn by turn at the target's time; what was said stands in ``talk``, what was accepted in ``dialogue``."""
    answers = {
        "converse.user": _always(talk.write("Something, please.", False)),
        "converse.plan": _always('{"steps": []}'),
        "converse.reply": _always("Message: Hm."),
        "converse.critic": _always(decision.write(False, "No.")),
    }
    sets = ("method={kind: interec, reflection: 1}",)
    finished, lines, model = _run(tmp_path, _games(u1="g16"), answers, *sets)
    assert [line.event for line in lines] == [f"converse/talk/u1/1{end}" for end in ("", "+2", "+3")]
    assert [line.parent for line in lines] == [None, *(line.event for line in lines[:2])]
    assert {line.time for line in lines} == {9}
    for line in lines:
        slots = {version.slot: version.value for version in line.memories}
        assert slots["talk"] == "Recommender: Hm."
        assert "dialogue" not in slots
    assert _said(lines[-1], "end") == [{"how": "limit", "turns": 3, "named": False, "marks": []}]
    users = [request for request in model.asked if request.task == "converse.user"]
    assert [len(request.slots.get("dialogue", ())) for request in users] == [0, 2, 4]
    assert next(it for it in finished.report.results if it.metric == "calls per turn").value == 6


def test_a_turn_that_fails_as_a_whole_ends_the_talk_by_an_error() -> None:
    reading = ConverseReading("converse", _games(u1="g16"))
    data = {"user": "u1", "item": "g16", "case": 0, "turn": 2, "turns": 3, "k": 5, "marks": []}
    reading.take(EventLine("converse/talk/u1/1+2", "converse.turn", 9, None, data, (), units={"": "full"}))
    found = reading.found(seed=0)
    assert {it.metric: it.value for it in found.results if it.ranker == "interec"}["ended by error"] == 1


def test_a_user_of_several_cases_has_had_more_from_talk_to_talk(tmp_path: Path) -> None:
    """And has one talk at a time: the second begins when the first is over, and tells nothing of its target before."""
    data = shop_data()
    cases = (Case("u5", "g1", TAKEN["u5"], ("g1",), 9, 1), Case("u5", "g3", (*TAKEN["u5"], "g1"), ("g3",), 9, 2))
    answers = {"converse.user": _always(talk.write("Something, please.", False))}
    data = dataclasses.replace(data, cases=cases, digest="two")
    _, lines, model = _run(tmp_path, data, answers, "stages=[{converse: {turns: 2, k: 1}}]")
    assert [line.event for line in lines] == [f"converse/talk/u5/{case}{turn}" for case in "12" for turn in ("", "+2")]
    users = [request.slots["history"] for request in model.asked if request.task == "converse.user"]
    had = ("原神", "The Witcher 3: Wild Hunt")
    assert users == [had, had, (*had, "Portal"), (*had, "Portal")]


def test_a_target_that_was_taken_before_is_no_part_of_what_the_user_tells(tmp_path: Path) -> None:
    """He does not know that he has had it, and where he says its name all the same, that is noticed."""
    data = shop_data()
    case = Case("u1", "g1", TAKEN["u1"], ("g1",), 9)
    data = dataclasses.replace(data, cases=(case,), digest="again")
    answers = {"converse.user": _always(talk.write("I have enjoyed Portal.", False))}
    _, (line,), model = _run(tmp_path, data, answers, "stages=[{converse: {turns: 1, tries: 1}}]")
    assert model.asked[0].slots["history"] == ("Portal 2", "Half-Life 2")
    assert _said(line, "end")[0]["marks"] == ["named"]


def test_what_is_called_just_like_the_target_is_no_part_of_what_the_user_tells(tmp_path: Path) -> None:
    """Catalogues hold some items twice, MovieLens too: to tell of the one would be to name the other."""
    case = Case("u", "g12", ("g11", "g1"), ("g12",), 9)
    data = dataclasses.replace(shop_data(), cases=(case,), digest="twins")
    _, (line,), model = _run(tmp_path, data, {}, "stages=[{converse: {turns: 1}}]")
    assert model.asked[0].slots["history"] == ("Portal",)
    assert _said(line, "end")[0]["marks"] == []


def test_users_tell_what_is_called_alike_apart_by_its_year(tmp_path: Path) -> None:
    films = [Item(f"f{year}", f"Heat ({year})", "Crime", "", {"release_date": year}) for year in ("1986", "1995")]
    data = shop_data(films, {"u": ("f1986",)})
    data = dataclasses.replace(data, cases=(Case("u", "f1995", ("f1986",), ("f1995",), 9),), digest="heat")
    answers = {"converse.user": _always(talk.write("I have enjoyed Heat (1986).", False))}
    _, (line,), model = _run(tmp_path, data, answers, "stages=[{converse: {turns: 1, tries: 1}}]")
    assert model.asked[0].slots["history"] == ("Heat (1986)",)
    assert _said(line, "end")[0]["marks"] == []


# -- forks -------------------------------------------------------------------------------------------------------------


def test_a_talk_is_forked_in_its_middle(tmp_path: Path) -> None:
    """It keeps its turns and its k, and what was said before; all else goes by the change."""
    runs.run(tmp_path / "run", text=SMALL)
    before = list(Reader(tmp_path / "run" / "events.jsonl"))
    first = next(line for line in before if line.spawns)
    at = f"{first.event}+2"
    sets = ["method.reflection=0", "stages=[{converse: {turns: 9, k: 1, users: 1}}]"]
    finished = asyncio.run(fork(tmp_path / "run", sets, at=at, out=tmp_path / "fork"))
    after = list(Reader(finished.path / "events.jsonl"))
    kept = [line.event for line in before].index(at)
    assert kept > 0
    assert runs.events(finished.path)[:kept] == runs.events(tmp_path / "run")[:kept]
    talk = [line for line in after if line.event.startswith(first.event)]
    assert {(line.data["turns"], line.data["k"]) for line in talk} == {(3, 5)}
    assert all(len(reply["items"]) > 1 for line in talk for reply in _said(line, "reply"))
    assert not [line for line in after[kept:] if _said(line, "verdict")]
    assert runs.replay(finished.path).hash == finished.report.hash


def test_a_fork_whose_stages_do_not_play_on_is_refused(tmp_path: Path) -> None:
    runs.run(tmp_path / "run", text=SMALL)
    first = next(line for line in Reader(tmp_path / "run" / "events.jsonl") if line.spawns)
    with pytest.raises(InputError, match="no stage plays converse/talk/"):
        asyncio.run(fork(tmp_path / "run", ["stages=[{one_turn: {}}]"], at=f"{first.event}+2", out=tmp_path / "fork"))
    assert not (tmp_path / "fork").exists()


# -- the recommender ---------------------------------------------------------------------------------------------------


def test_hostile_plans_and_queries_end_in_the_tracker_and_in_a_sane_reply(tmp_path: Path) -> None:
    """Every one of them, each in a conversation of its own; the engine goes on, and the user gets an answer."""
    queries = [json.dumps({"steps": [{"tool": "hard_filter", "input": {"sql": sql}}]}) for sql, _ in QUERIES]
    hostile = [*zip(queries, (code for _, code in QUERIES), strict=True), *PLANS]
    names = [f"h{at}" for at in range(len(hostile))]
    data = shop_data(ITEMS, dict.fromkeys(names, ("g1", "g2")))
    cases = tuple(Case(name, "g9", ("g1", "g2"), ("g9",), 9) for name in names)
    reply_of = dict(zip(names, (text for text, _ in hostile), strict=True))
    answers = {"converse.plan": lambda request: reply_of[request.call.split("/")[2]]}
    sets = ("method={kind: interec, reflection: 0, demonstrations: 0}", "stages=[{converse: {turns: 1}}]")
    _, lines, _ = _run(tmp_path, dataclasses.replace(data, cases=cases, digest="hostile"), answers, *sets)
    assert len(hostile) >= 60
    for line, (text, code) in zip(lines, hostile, strict=True):
        (plan,), (reply,), (end,) = (_said(line, kind) for kind in ("plan", "reply", "end"))
        assert code in [work["code"] for work in plan["work"]], text[:100]
        assert reply["text"]
        assert end["how"] in ("hit", "limit")


def test_what_the_critic_rejects_is_planned_anew_and_never_remembered(tmp_path: Path) -> None:
    """The second plan starts from all items and sees the advice; only the second exchange is in the dialogue."""
    replies = iter(("Message: first", "Message: second"))
    verdicts = iter((decision.write(False, "Take all games."), decision.write(True, "Good.")))
    plan = {"profile": {"like": ["Portal"], "dislike": [], "expect": []}, "steps": json.loads(FETCH)["steps"]}
    answers = {
        "converse.user": _always(talk.write("Something, please.", False)),
        "converse.plan": _always(json.dumps(plan)),
        "converse.reply": lambda request: next(replies),
        "converse.critic": lambda request: next(verdicts),
    }
    _, (line,), model = _run(tmp_path, _games(u1="g16"), answers, "stages=[{converse: {turns: 1}}]")
    assert model.tasks() == ["user", "plan", "reply", "critic", "plan", "reply", "critic"]
    assert "Take all games." in model.asked[4].messages[-1].content
    assert [work["before"] for body in _said(line, "plan") for work in body["work"]] == [16, 16]
    dialogue = [version.value for version in line.memories if version.slot == "dialogue"]
    assert dialogue == ["User: Something, please.", "Recommender: second"]
    profiles = [version.value for version in line.memories if version.slot == "profile"]
    assert profiles == [{"like": ["Portal"], "dislike": [], "expect": []}]


@pytest.mark.parametrize("verdict", ["???", decision.write(False, "No.")])
def test_what_nobody_accepts_is_said_but_not_remembered(verdict: str, tmp_path: Path) -> None:
    """An unreadable verdict is no acceptance, and no reason to plan again; a rejection is one, while it may be."""
    answers = {"converse.critic": _always(verdict), "converse.plan": _always('{"steps": []}')}
    sets = ("method={kind: interec, reflection: 2}", "stages=[{converse: {turns: 1}}]")
    finished, (line,), _ = _run(tmp_path, _games(u1="g16"), answers, *sets)
    assert len(_said(line, "reply")) == (1 if verdict == "???" else 3)
    assert not [version for version in line.memories if version.slot in ("dialogue", "profile")]
    accepted = next(result for result in finished.report.results if result.metric == "accepted")
    assert accepted.value == 0


def test_a_reply_that_cannot_be_read_leaves_the_one_that_was_rejected(tmp_path: Path) -> None:
    replies = iter(("Message: first", "???", "???"))
    answers = {
        "converse.user": _always(talk.write("Something, please.", False)),
        "converse.plan": _always(FETCH),
        "converse.reply": lambda request: next(replies),
        "converse.critic": _always(decision.write(False, "No.")),
    }
    sets = ("method={kind: interec, reflection: 1}", "stages=[{converse: {turns: 1}}]")
    _, (line,), _ = _run(tmp_path, _games(u1="g16"), answers, *sets)
    slots = {version.slot: version.value for version in line.memories}
    assert slots["talk"] == "Recommender: first"
    assert "dialogue" not in slots
    assert line.units["reply/2"] != "ok"
    assert _said(line, "end")[0]["how"] in ("hit", "limit")


def test_small_talk_uses_no_tool(tmp_path: Path) -> None:
    answers = {
        "converse.user": _always(talk.write("Thank you!", False)),
        "converse.plan": _always('{"thought": "thanks", "steps": []}'),
    }
    _, (line,), model = _run(tmp_path, _games(u1="g16"), answers, "stages=[{converse: {turns: 1}}]")
    assert model.tasks() == ["user", "plan", "reply", "critic"]
    assert _said(line, "plan")[0]["work"] == []
    assert not any(name.startswith("use/") for name in line.units)


def test_step_by_step_takes_five_calls_at_most_and_fetches_what_is_left(tmp_path: Path) -> None:
    step = json.dumps({"steps": [{"tool": "rank", "input": {}}]})
    answers = {"converse.step": _always(step)}
    sets = ("method={kind: interec, planning: step_by_step, reflection: 0}", "stages=[{converse: {turns: 1}}]")
    _, (line,), model = _run(tmp_path, _games(u1="g16"), answers, *sets)
    assert model.tasks().count("step") == 5
    assert [work["tool"] for work in _said(line, "plan")[0]["work"]] == [*["rank"] * 5, "fetch"]
    assert "rank" in model.asked[2].messages[-1].content


def test_what_an_earlier_step_has_learnt_is_not_forgotten_by_a_later_one(tmp_path: Path) -> None:
    liked = {"like": ["Portal"], "dislike": [], "expect": []}
    steps = iter([json.dumps({"profile": liked, "steps": [{"tool": "rank", "input": {}}]}), '{"steps": []}'])
    sets = ("method={kind: interec, planning: step_by_step, reflection: 0}", "stages=[{converse: {turns: 1}}]")
    _, (line,), _ = _run(tmp_path, _games(u1="g16"), {"converse.step": lambda request: next(steps)}, *sets)
    assert [version.value for version in line.memories if version.slot == "profile"] == [liked]


def test_no_more_may_be_recommended_than_a_fetch_gives() -> None:
    for stage in ("converse", "chat"):
        with pytest.raises(InputError, match="20"):
            read("small", [f"stages=[{{{stage}: {{k: 21}}}}]"], SMALL)


def test_a_whole_plan_costs_fewer_calls_than_its_steps(tmp_path: Path) -> None:
    """The rules plan the same steps either way: the same items are recommended, at fewer calls a turn."""
    found = {}
    for planning in ("plan_first", "step_by_step"):
        finished = runs.run(tmp_path / planning, f"method.planning={planning}", text=SMALL)
        results = finished.report.results
        said = [_said(line, "reply") for line in Reader(finished.path / "events.jsonl")]
        calls = next(result.value for result in results if result.metric == "calls per turn")
        found[planning] = calls, [[body["items"] for body in bodies] for bodies in said]
    assert found["plan_first"][1] == found["step_by_step"][1]
    assert found["plan_first"][0] < found["step_by_step"][0]


def test_rankings_are_told_of_the_profile(tmp_path: Path) -> None:
    """What the user likes and does not want; a category is no item, and is told to no tool."""
    plan = {
        "profile": {"like": ["Portal", "Puzzle"], "dislike": ["Portal 2"], "expect": ["war"]},
        "steps": [{"tool": "rank", "input": {"by": "preference"}}, {"tool": "fetch"}],
    }
    answers = {"converse.plan": _always(json.dumps(plan))}
    _, (line,), _ = _run(tmp_path, _games(u5="g16"), answers, "stages=[{converse: {turns: 1, k: 20}}]")
    rank = _said(line, "plan")[0]["steps"][0]["input"]
    assert (rank["liked"], rank["unwanted"]) == (["Portal"], ["Portal 2"])
    assert not {"g1", "g2"} & set(_said(line, "reply")[0]["items"])


# -- many at once ------------------------------------------------------------------------------------------------------

MANY = """
name: many
seed: 5
data: {format: market, users: 64, items: 90, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{converse: {turns: 2}}]
"""


def _kept(line: EventLine) -> bytes:
    """All that an event's line tells of messages, memories, calls and units, by stable ids."""
    return msgspec.json.encode([line.event, line.messages, line.memories, line.calls, line.units])


def test_sixty_four_at_once_are_what_each_is_alone(tmp_path: Path) -> None:
    """And none waits for another: the model answers nobody before all 64 users have been asked."""
    waiting: list[str] = []
    everyone = asyncio.Event()

    async def model(request: Request) -> Completion:
        waiting.append(request.call)
        if len(waiting) == 64:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), 60)
        return await Lexical().complete(request)

    data = Setup.of(read("many", (), MANY)[0]).dataset
    many = MANY.replace(
        "{format: market, users: 64, items: 90, interests: 3, interactions: 6, seed: 4}", "{format: frame}"
    )
    together = runs.run(
        tmp_path / "together", "llm.limits.concurrency=64", "llm.temperature=0.5", text=many, data=data,
        backend=Scripted(model),
    )  # fmt: skip
    lines: dict[str, list[bytes]] = {}
    for line in Reader(together.path / "events.jsonl"):
        lines.setdefault(line.data["user"], []).append(_kept(line))
    assert len(lines) == 64
    assert max(map(len, lines.values())) == 2
    for at, case in enumerate(data.cases):
        one = dataclasses.replace(data, cases=(case,))
        alone = runs.run(tmp_path / f"alone-{at}", "llm.temperature=0.5", text=many, data=one)
        assert [_kept(line) for line in Reader(alone.path / "events.jsonl")] == lines[case.user]
