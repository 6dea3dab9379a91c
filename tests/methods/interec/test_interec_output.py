"""Conversations whose answers are asked for as JSON: what servers are held to, and the same decisions as in text."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import runs
from interec_games import TAKEN, shop_data
from standin import Body, Fault, StandIn, error

from simengine.data import Case
from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import decision, message, talk
from simengine.llm.request import Request
from simengine.methods.interec import reply
from simengine.methods.interec.demonstrations import SEED, Demonstrations
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.tasks import PLAN, REPLY, STEP, read_planned
from simengine.methods.interec.tools import TOOLS
from simengine.testing import MethodContract

SMALL = """
name: small
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
llm: {temperature: 0.5}
method: {kind: interec}
stages: [{converse: {turns: 3}}]
"""
SCHEMA = json.loads(reply.FORM.schema)
GIVEN: dict[str, list[dict[str, Any]]] = {
    "look_up": [{"sql": "SELECT 1"}],
    "hard_filter": [{"sql": "SELECT id FROM candidates WHERE release_date > $1.release_date"}],
    "soft_filter": [{"titles": ["Portal", "$1.title"]}],
    "rank": [
        {"by": by, "liked": [], "unwanted": ["原神"]} for by in ("popularity", "similarity", "preference")
    ],
    "store": [{"titles": ["b"]}],
    "fetch": [{"n": 1}, {"n": 20}],
}  # fmt: skip
"""Inputs of every tool, all that it takes."""


class TestContract(MethodContract):
    """All that holds of the method holds in JSON."""

    scenario = SMALL.replace("temperature: 0.5", "output: json")


# -- the schema --------------------------------------------------------------------------------------------------------


def _wrong(value: Any, schema: Any, at: str = "") -> Iterator[str]:
    """Where a value does not keep to a schema, by the rules of JSON Schema for the words that ours uses."""
    if "anyOf" in schema:
        if not any(not list(_wrong(value, one)) for one in schema["anyOf"]):
            yield f"{at}: none of the alternatives"
        return
    types = {"object": dict, "array": list, "string": str, "integer": int}
    if not isinstance(value, types[schema["type"]]) or isinstance(value, bool):
        yield f"{at}: not of the type {schema['type']}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{at}: not one of {schema['enum']}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _wrong(item, schema["items"], f"{at}[{number}]")
    elif isinstance(value, dict):
        yield from (f"{at}.{name} is missing" for name in schema["required"] if name not in value)
        yield from (f"{at}.{name} is not allowed" for name in value if name not in schema["properties"])
        for name in value.keys() & schema["properties"].keys():
            yield from _wrong(value[name], schema["properties"][name], f"{at}.{name}")


def _parts(schema: dict[str, Any], levels: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """The schema and all inside it, each with how many objects and lists are around it."""
    yield schema, levels
    inner = levels + (schema.get("type") in ("object", "array"))
    inside = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *filter(None, [schema.get("items")])]
    for part in inside:
        yield from _parts(part, inner)


def _planned(*steps: object, **fields: object) -> dict[str, Any]:
    known = {"like": ["Portal"], "dislike": [], "expect": ["Puzzle"]}
    return {"thought": "so", "profile": known, "steps": list(steps), **fields}


def test_the_schema_says_no_more_than_strict_servers_take() -> None:
    """Objects without gaps or free fields, few words, five levels, and alternatives that begin with other fields."""
    assert SCHEMA["type"] == "object"
    assert list(SCHEMA["properties"]) == ["thought", "profile", "steps"]  # in which order a model is to think
    for part, levels in _parts(SCHEMA):
        assert set(part) <= {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf"}
        assert ("anyOf" in part) != ("type" in part)
        assert levels <= 5
        if part.get("type") == "object":
            assert part["properties"] and part["required"] == list(part["properties"])
            assert part["additionalProperties"] is False
        if "anyOf" in part:
            first = [next(iter(one["properties"])) for one in part["anyOf"]]
            assert len(set(first)) == len(first)
    assert SCHEMA["properties"]["steps"]["items"]["properties"]["tool"]["enum"] == list(TOOLS) == list(GIVEN)


def test_what_is_written_keeps_to_the_schema_and_is_read_back() -> None:
    for tool, inputs in GIVEN.items():
        for given in inputs:
            look = {"tool": "look_up", "input": {"sql": "SELECT 1"}}
            value = _planned(look, {"tool": tool, "input": given})
            assert list(_wrong(value, SCHEMA)) == []
            found = read_planned(json.dumps(value), {})
            assert (found.fault, found.profile) == (None, Profile(("Portal",), (), ("Puzzle",)))
            assert json.loads(found.plan.steps[1].input) == given
            written = reply.write(found.plan, found.profile)
            assert list(_wrong(json.loads(written), SCHEMA)) == []
            again = read_planned(written, {})
            assert (again.plan, again.profile) == (found.plan, found.profile)


def test_plans_that_are_shown_keep_to_it_but_for_the_profile() -> None:
    for pair in SEED:
        assert list(_wrong(json.loads(reply.write(pair.plan)), SCHEMA)) == [".profile is missing"]


@pytest.mark.parametrize("task", [PLAN, STEP])
def test_what_the_embedded_rules_write_keeps_to_it(task: Any) -> None:
    slots = {
        "noun": "game",
        "request": "I have enjoyed: Portal; b. I am looking for something with: Puzzle.",
        "columns": ("tags (tags): what it is like; near your request: Puzzle; others: War",),
        "demonstrations": Demonstrations().shown([3]),
    }
    request = Request(task.name, "m", (), slots=slots, schema=task.json.form.schema)
    written = json.loads(asyncio.run(Lexical().complete(request)).text)
    assert list(_wrong(written, SCHEMA)) == []
    assert written["steps"]


@pytest.mark.parametrize(
    "value",
    [
        {"thought": "so", "steps": []},
        _planned({"tool": "shell", "input": {"n": 5}}),
        _planned({"tool": "fetch"}),
        _planned({"tool": "fetch", "input": {}}),
        _planned({"tool": "fetch", "input": {"n": "5"}}),
        _planned({"tool": "fetch", "input": {"n": 5, "sql": "SELECT 1"}}),
        _planned({"tool": "rank", "input": {"by": "magic", "liked": [], "unwanted": []}}),
        _planned({"tool": "rank", "input": {"by": "popularity"}}),
        _planned({"tool": "store", "input": ["b"]}),
        _planned("fetch"),
        _planned(profile={}),
        _planned(profile={"like": "a", "dislike": [], "expect": []}),
        _planned(more="x"),
        _planned(thought=None),
    ],
)
def test_what_is_no_plan_does_not_keep_to_it(value: object) -> None:
    assert list(_wrong(value, SCHEMA))


def test_bounds_are_left_to_the_check() -> None:
    """What a server lets pass is refused all the same."""
    for step, code in (
        ({"tool": "fetch", "input": {"n": 99}}, "wrong_input"),
        ({"tool": "fetch", "input": {"sql": "SELECT 1"}}, "wrong_input"),
        ({"tool": "store", "input": {"titles": []}}, "wrong_input"),
    ):
        value = _planned(step)
        assert list(_wrong(value, SCHEMA)) == []
        fault = read_planned(json.dumps(value), {}).fault
        assert fault is not None and fault.code == code


# -- runs --------------------------------------------------------------------------------------------------------------


def _decisions(folder: Path) -> list[dict[str, Any]]:
    """What happened, less the digests of what was asked and answered."""
    found = runs.events(folder)
    for event in found:
        event["calls"] = sorted(event["calls"])
    return found


@pytest.mark.parametrize(
    "more", [[], ["method={kind: interec, planning: step_by_step, demonstrations: 0, reflection: 1}"]]
)
def test_the_embedded_rules_talk_alike_in_both_forms(more: list[str], tmp_path: Path) -> None:
    text, other = (runs.run(tmp_path / name, *more, f"llm.output={name}", text=SMALL) for name in ("text", "json"))
    found = _decisions(other.path)
    assert found == _decisions(text.path)
    assert any(said["body"]["items"] for event in found for said in event["messages"] if said["kind"] == "reply")
    rows = runs.calls(other.path)
    asked = {row.request.task: row.request.schema for row in rows if row.request.task.startswith("converse.")}
    planner = "converse.step" if more else "converse.plan"
    assert asked[planner] == reply.FORM.schema
    assert asked["converse.reply"] == message.JSON.schema
    assert asked["converse.user"] == talk.JSON.schema
    for row in rows:
        if row.request.schema:
            assert list(_wrong(json.loads(row.outcome.text), json.loads(row.request.schema))) == []
    assert runs.replay(other.path).hash == other.report.hash


def test_a_planner_is_asked_for_the_same_either_way(tmp_path: Path) -> None:
    """The prompt says the form itself; what answers to the others says theirs."""
    prompts = {}
    for name in ("text", "json"):
        run = runs.run(tmp_path / name, f"llm.output={name}", "llm.temperature=0.0", text=SMALL)
        prompts[name] = [
            (row.request.task, row.request.messages)
            for row in runs.calls(run.path)
            if row.request.task in (PLAN.name, REPLY.name)
        ]
    of_plans = [sorted({it for it in found if it[0] == PLAN.name}, key=repr) for found in prompts.values()]
    assert of_plans[0] == of_plans[1] != []
    (system, _) = next(messages for task, messages in prompts["json"] if task == REPLY.name)
    assert system.content.endswith(message.JSON.ask)


PLANNED = json.dumps(_planned({"tool": "rank", "input": GIVEN["rank"][2]}, {"tool": "fetch", "input": {"n": 3}}))
ANSWERS = {
    "converse_user": talk.write("Something, please.", False, json=True),
    "converse_plan": PLANNED,
    "converse_reply": message.write("Take this.", json=True),
    "converse_critic": decision.write(True, "Good.", json=True),
}
BEGINS = {
    "You play": "converse_user",
    "You plan": "converse_plan",
    "You are": "converse_reply",
    "You check": "converse_critic",
}
"""How the prompts begin."""


class Server(StandIn):
    """Takes ``types`` of ``response_format``; answers by the schema's name, or by what the prompt is about."""

    def __init__(self, *types: str) -> None:
        super().__init__(self._say, check=self._check)
        self.types = types

    def _check(self, body: Body) -> Fault | None:
        asked = body.get("response_format", {}).get("type")
        return None if asked in (None, *self.types) else error(400, f"response_format {asked} is not supported")

    def _say(self, body: Body) -> str:
        named = body.get("response_format", {}).get("json_schema", {}).get("name")
        task = BEGINS[" ".join(body["messages"][0]["content"].split()[:2])]
        assert named in (None, task)
        return ANSWERS[task]


@pytest.mark.parametrize("types", [("json_schema",), ("json_object",), ()], ids=["schema", "object", "nothing"])
def test_a_server_is_held_to_what_it_takes(types: tuple[str, ...], tmp_path: Path) -> None:
    data = dataclasses.replace(shop_data(), cases=(Case("u5", "g1", TAKEN["u5"], ("g1",), 9),), digest="games")
    text = re.sub("data: {.*}", "data: {format: frame}", SMALL)
    with Server.in_thread(*types) as server:
        sets = [*runs.served(server.url), "llm.output=json", "stages=[{converse: {turns: 1}}]"]
        run = runs.run(tmp_path / "run", *sets, text=text, data=data)
    assert (run.report.failures, run.report.asked_again) == ({}, {})
    said = [it for event in runs.events(run.path) for it in event["messages"] if it["kind"] == "reply"]
    assert [(it["body"]["text"], len(it["body"]["items"])) for it in said] == [("Take this.", 3)]
    sent = [body["response_format"]["json_schema"] for body in server.bodies if types == ("json_schema",)]
    assert [it["schema"] for it in sent if it["name"] == "converse_plan"] == [SCHEMA] * bool(sent)
    assert all(it["strict"] for it in sent)
