"""Generating requests with plans: the contract, what prompts show, what is refused, and talks of our own writing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import runs
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import Unreadable
from simengine.llm.request import Completion, Request
from simengine.methods.interec import dialogues, generate
from simengine.methods.interec.demonstrations import SEED
from simengine.methods.interec.generate import COMBINATIONS, DEMONSTRATION, WAYS
from simengine.methods.interec.tasks import read_planned
from simengine.methods.interec.tools import TOOLS
from simengine.runlog import EventLine, Reader
from simengine.scenario import read
from simengine.testing import MethodContract

SMALL = """
name: small
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{demonstrate: {input_first: 4, output_first: 16, dialogues: 4}}]
"""
ONE = "stages=[{demonstrate: {WAY: 1}}]"
TALK = {
    "dialogue": ["Recommender: What is it to be?", "User: Something loud."],
    "thought": "loud",
    "profile": {"like": [], "dislike": [], "expect": ["loud"]},
    "steps": [{"tool": "rank", "input": {"by": "popularity"}}, {"tool": "fetch", "input": {"n": 3}}],
}


class TestContract(MethodContract):
    scenario = SMALL


class TestContractInJson(MethodContract):
    scenario = SMALL.replace("method:", "llm: {output: json}\nmethod:")


class _Model:
    """The lexical model, but for some tasks; it keeps what it is asked."""

    def __init__(self, answers: Mapping[str, Callable[[Request], str]]) -> None:
        self._answers = answers
        self._lexical = Lexical()
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        answer = self._answers.get(request.task)
        return await self._lexical.complete(request) if answer is None else Completion(answer(request))


def _run(out: Path, *sets: str, **answers: str) -> tuple[list[EventLine], list[Request]]:
    """The events of a run in which the named tasks of generating (or ``plan``) are answered by these texts."""
    names = {name: "converse.plan" if name == "plan" else f"demonstrate.{name}" for name in answers}
    model = _Model({names[name]: (lambda request, text=text: text) for name, text in answers.items()})  # type: ignore[misc]
    finished = runs.run(out, *sets, text=SMALL, backend=model)
    with Reader(finished.path / "events.jsonl") as reader:
        return list(reader), model.asked


def _pair(line: EventLine) -> dict[str, Any]:
    (body,) = (message.body for message in line.messages if message.kind == DEMONSTRATION)
    return dict(body)


def _user(request: Request) -> str:
    return request.messages[-1].content


# -- what is generated ------------------------------------------------------------------------------------------------


def test_every_way_makes_pairs_of_which_all_can_be_carried_out(tmp_path: Path) -> None:
    lines, _ = _run(tmp_path / "run")
    assert [line.kind for line in lines] == [
        f"demonstrate.{way}" for way, count in zip(WAYS, (4, 16, 4), strict=True) for _ in range(count)
    ]
    pairs = [_pair(line) for line in lines]
    for line, pair in zip(lines, pairs, strict=True):
        assert pair["way"] == line.kind.partition(".")[2]
        assert read_planned(json.dumps(pair["plan"]), {}).fault is None
    used = [tuple(step["tool"] for step in pair["plan"]["steps"]) for pair in pairs if pair["way"] == "output_first"]
    assert sorted(used) == sorted(COMBINATIONS), "the rules serve every combination"
    assert len({pair["request"] for pair in pairs}) > 20


def test_pairs_touch_no_agent(tmp_path: Path) -> None:
    lines, _ = _run(tmp_path / "run")
    assert not any(line.memories for line in lines)


def test_a_request_is_asked_for_beside_three_others_that_are_drawn(tmp_path: Path) -> None:
    _, asked = _run(tmp_path / "run", "stages=[{demonstrate: {input_first: 8}}]")
    shown = [request.slots["examples"] for request in asked if request.task == "demonstrate.input_first"]
    known = {pair.request for pair in SEED}
    assert all(len(set(examples)) == 3 and set(examples) <= known for examples in shown)
    assert len(set(map(tuple, shown))) > 1
    first = next(request for request in asked if request.task == "demonstrate.input_first")
    for slot in ("examples", "titles", "facts"):
        assert all(text in _user(first) for text in first.slots[slot])


def test_a_request_for_tools_is_told_of_them_and_its_plan_is_asked_for_as_in_a_talk(tmp_path: Path) -> None:
    lines, asked = _run(tmp_path / "run", "stages=[{demonstrate: {output_first: 5}}]")
    wanted = {request.call.partition("#")[0]: _user(request) for request in asked if "first" in request.task}
    assert "plan uses: none" in wanted["demonstrate/output_first/1"]
    assert "plan uses: hard_filter, rank, fetch" in wanted["demonstrate/output_first/5"]
    plans = [request for request in asked if request.task == "converse.plan"]
    assert len(plans) == len(lines)
    for line in lines:
        assert any(_pair(line)["request"] in _user(request) for request in plans)
    assert all("Plans that served requests like this one" in _user(request) for request in plans)


def test_without_demonstrations_plans_are_asked_for_without_any(tmp_path: Path) -> None:
    _, asked = _run(tmp_path / "run", "method.demonstrations=0", ONE.replace("WAY", "input_first"))
    (plan,) = (request for request in asked if request.task == "converse.plan")
    assert "Plans that served" not in _user(plan)


def test_a_talk_is_written_beside_three_of_ours(tmp_path: Path) -> None:
    (line,), (asked,) = _run(tmp_path / "run", ONE.replace("WAY", "dialogues"), dialogues=json.dumps(TALK))
    assert len(asked.slots["examples"]) == 3
    assert set(asked.slots["examples"]) <= set(dialogues.handmade())
    pair = _pair(line)
    assert (pair["dialogue"], pair["request"]) == (["Recommender: What is it to be?"], "Something loud.")
    assert pair["plan"]["profile"]["expect"] == ["loud"]
    assert [step["tool"] for step in pair["plan"]["steps"]] == ["rank", "fetch"]


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "answers", "unit", "reason"),
    [
        ("input_first", {"input_first": "???"}, "request", "no_heading"),
        ("input_first", {"input_first": "My request: "}, "request", "empty"),
        ("input_first", {"plan": "???"}, "plan", "incomplete"),
        ("input_first", {"plan": '{"steps": [{"tool": "drop"}]}'}, "plan", "unknown_tool"),
        ("output_first", {"plan": '{"steps": [{"tool": "rank"}]}'}, "plan", "other_tools"),
        ("dialogues", {"dialogues": '{"steps": []}'}, "dialogue", "incomplete"),
        ("dialogues", {"dialogues": json.dumps({**TALK, "steps": [{"tool": "drop"}]})}, "dialogue", "unknown_tool"),
        ("dialogues", {"dialogues": json.dumps({"dialogue": TALK["dialogue"]})}, "dialogue", "incomplete"),
    ],
)
def test_what_makes_no_pair_is_a_recorded_failure(
    way: str, answers: dict[str, str], unit: str, reason: str, tmp_path: Path
) -> None:
    (line,), _ = _run(tmp_path / "run", ONE.replace("WAY", way), **answers)
    assert line.units[unit] == reason
    assert not line.messages
    assert runs.report(tmp_path / "run").failures == {f"{unit}: {reason}": 1}


def test_tools_may_come_in_any_order_and_several_times_but_no_other() -> None:
    steps = [{"tool": "rank", "input": {}}, {"tool": "hard_filter", "input": {"sql": "SELECT id FROM candidates"}}]
    planned = read_planned(json.dumps({"steps": [*steps, steps[0]]}), {})
    assert generate.require(planned, "e", ("hard_filter", "rank", "fetch")) == planned.plan
    with pytest.raises(Exception, match="takes fetch, hard_filter, rank for a request that was to take none"):
        generate.require(planned, "e", ())


def test_a_stage_that_is_to_generate_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="say how many pairs are to be generated"):
        read("s.yaml", ["stages=[{demonstrate: {}}]"], SMALL)


@settings(max_examples=30, deadline=None)
@given(st.text() | st.recursive(st.none() | st.text(max_size=5), lambda of: st.lists(of, max_size=3)).map(json.dumps))
def test_whatever_a_model_says_is_a_talk_or_unreadable(text: str) -> None:
    for said in (text, json.dumps({"dialogue": text, "steps": []}), json.dumps({"dialogue": [text], "steps": text})):
        try:
            written = dialogues.read(said, {})
        except Unreadable:
            continue
        assert written.request
        assert written.dialogue


# -- talks ------------------------------------------------------------------------------------------------------------


def test_our_talks_are_short_different_and_take_every_combination_of_tools() -> None:
    ours = [dialogues.read(text, {}) for text in dialogues.handmade()]
    assert len(ours) == 30
    assert len({talk.request for talk in ours}) == 30
    for talk, text in zip(ours, dialogues.handmade(), strict=True):
        assert talk.planned.fault is None, talk.request
        assert 2 <= len(talk.dialogue) + 1 <= 4
        lines = [*talk.dialogue, f"User: {talk.request}"]
        written = json.loads(text)
        planned = json.dumps({name: written[name] for name in ("thought", "profile", "steps")})
        assert json.loads(dialogues.write(lines, planned)) == written
        speakers = [line.partition(":")[0] for line in lines]
        assert all(one != other for one, other in itertools.pairwise(speakers))
    used = {tuple(dict.fromkeys(step.tool for step in talk.planned.plan.steps)) for talk in ours}
    assert used == set(COMBINATIONS)


def test_combinations_are_of_tools_that_are_there_and_differ() -> None:
    assert len(set(map(frozenset, COMBINATIONS))) == len(COMBINATIONS)
    assert {tool for tools in COMBINATIONS for tool in tools} == set(TOOLS)


@pytest.mark.parametrize(
    ("text", "dialogue", "request_"),
    [
        ('{"dialogue": ["Assistant: Hi.", "Customer:  a\\nb "], "steps": []}', ("Recommender: Hi.",), "a b"),
        ('Here: ```json\n{"dialogue": ["**User:** a", "Recommender: b", "USER: c"], "plan": {"steps": []}}\n```',
         ("User: a", "Recommender: b"), "c"),
        ('{"dialogue": ["User: a", "User: \\ud800b"], "steps": []}', ("User: a",), "?b"),
    ],
)  # fmt: skip
def test_a_talk_is_read_however_it_is_written(text: str, dialogue: tuple[str, ...], request_: str) -> None:
    talk = dialogues.read(text, {})
    assert (talk.dialogue, talk.request) == (dialogue, request_)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ('{"dialogue": ["User: a"], "steps": []}', "incomplete"),
        ('{"dialogue": ["User: a", "Recommender: b"], "steps": []}', "incomplete"),
        ('{"dialogue": ["a", "User: b"], "steps": []}', "no_heading"),
        ('{"dialogue": ["Recommender:", "User: b"], "steps": []}', "empty"),
        ('{"dialogue": "User: b", "steps": []}', "incomplete"),
        ('{"dialogue": ["User: a", "User: b"]}', "incomplete"),
        ('{"dialogue": ["User: a", "User: b"], "steps": [', "truncated"),
    ],
)
def test_what_is_no_talk_is_unreadable(text: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        dialogues.read(text, {})
    assert caught.value.reason == reason


def test_a_method_that_plans_nothing_cannot_generate() -> None:
    with pytest.raises(InputError, match="interec"):
        read("s.yaml", ["method={kind: agentcf}"], SMALL)


def test_requests_are_asked_for_as_often_as_it_is_said_even_where_the_catalogue_is_small(tmp_path: Path) -> None:
    data = "data={format: market, users: 2, items: 4, interests: 1, interactions: 3}"
    finished = runs.run(tmp_path / "run", data, text=SMALL)
    assert finished.report.events == 24
    assert not finished.report.failures
