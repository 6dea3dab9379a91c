"""Answers in JSON: the schema in request, key and journal; servers that take it, a part of it or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from clients import backend
from standin import Body, Fault, StandIn, error
from structlog.testing import capture_logs

from simengine.errors import CallFailed
from simengine.llm.calls import CallStore, Entry
from simengine.llm.layers.retry import Retry
from simengine.llm.replies import choice
from simengine.llm.request import Completion, Message, Request, Sampling
from simengine.llm.settings import LLMSettings, RetrySettings

SCHEMA = choice.JSON.schema


def ask(text: str = "x", schema: str = SCHEMA, task: str = "reflect.user") -> Request:
    return Request(task, "m", (Message("user", text),), Sampling(temperature=0.0), schema=schema)


async def ask_in_turn(server: StandIn, *requests: Request, **options: object) -> list[Completion]:
    """Each request in turn, with no budget for retries: what is learned is free."""
    model = backend(server, **options)
    retry = Retry(model, RetrySettings(budget=0))
    try:
        return [await retry.complete(request) for request in requests]
    finally:
        await model.aclose()


def takes(*types: str, message: str = "response_format of this type is not supported", param: str | None = None):
    """A server that takes these types of ``response_format`` and refuses all others."""

    def check(body: Body) -> Fault | None:
        asked = body.get("response_format", {}).get("type")
        if asked is None or asked in types:
            return None
        return Fault(400, {"error": {"message": message, "param": param, "code": None}})

    return check


async def test_a_schema_goes_out_strict_under_the_name_of_its_task() -> None:
    async with StandIn() as server:
        (answer,) = await ask_in_turn(server, ask())
    right = {"name": "reflect_user", "strict": True, "schema": json.loads(SCHEMA)}
    assert server.bodies[0]["response_format"] == {"type": "json_schema", "json_schema": right}
    assert json.loads(answer.sent)["response_format"] == server.bodies[0]["response_format"]


async def test_without_a_schema_nothing_is_said_of_a_format() -> None:
    async with StandIn() as server:
        await ask_in_turn(server, ask(schema=""))
    assert "response_format" not in server.bodies[0]


async def test_text_completions_are_asked_by_the_prompt_alone() -> None:
    async with StandIn() as server:
        await ask_in_turn(server, ask(), api="completions")
    assert "response_format" not in server.bodies[0]


@pytest.mark.parametrize("types", [("json_schema",), ("json_object", "text"), ("text",)])
async def test_what_a_server_refuses_is_learned_once(types: tuple[str, ...]) -> None:
    """Field case 18: a 400 for each step down, one warning each, and none for the calls after."""
    ladder = ["json_schema", "json_object", None]
    last = next((at for at, step in enumerate(ladder) if step in types), 2)
    async with StandIn(check=takes(*types)) as server:
        with capture_logs() as logs:
            answers = await ask_in_turn(server, *(ask(str(n)) for n in range(3)))
    sent = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert sent == [*ladder[:last], *[ladder[last]] * 3]
    assert [json.loads(a.sent).get("response_format", {}).get("type") for a in answers] == [ladder[last]] * 3
    refusals = [(log["parameter"], log["instead"]) for log in logs if log["event"] == "parameter refused"]
    right = [
        ("response_format json_schema", "response_format json_object"),
        ("response_format json_object", "left out"),
    ]
    assert refusals == right[:last]


async def test_a_format_is_learned_for_each_model() -> None:
    def check(body: Body) -> Fault | None:
        return takes("text")(body) if body["model"] == "old" else None

    async with StandIn(check=check) as server:
        await ask_in_turn(server, msgspec.structs.replace(ask(), model="old"), ask())
    kinds = [(body["model"], body.get("response_format", {}).get("type")) for body in server.bodies]
    assert kinds == [("old", "json_schema"), ("old", "json_object"), ("old", None), ("m", "json_schema")]


@pytest.mark.parametrize(
    "fault",
    [
        error(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        error(400, 'response_format type must be one of "text" or "json_object", but got: json_schema'),
        error(400, "This response_format type is unavailable now"),
        error(400, "Invalid schema for response_format 'choose': unsupported keyword"),
        error(400, "This model does not support response format `json_schema`. See the documentation."),
        error(400, "structured outputs are not available"),
        Fault(400, {"error": {"message": "Invalid value", "param": "response_format.type"}}),
        Fault(422, {"detail": [{"loc": ["body", "response_format", "type"], "msg": "Input should be 'json_object'"}]}),
        Fault(422, {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]}),
    ],
)
async def test_refusals_of_many_makes_are_understood(fault: Fault) -> None:
    async with StandIn(faults=[fault]) as server:
        await ask_in_turn(server, ask())
    assert [body["response_format"]["type"] for body in server.bodies] == ["json_schema", "json_object"]


async def test_another_refused_parameter_is_not_taken_for_the_format() -> None:
    fault = Fault(
        400, {"error": {"message": "'temperature' is not supported with this model.", "param": "temperature"}}
    )
    async with StandIn(faults=[fault]) as server:
        await ask_in_turn(server, ask())
    assert [("temperature" in body, "response_format" in body) for body in server.bodies] == [
        (True, True),
        (False, True),
    ]


async def test_a_request_without_a_schema_learns_nothing_of_formats() -> None:
    async with StandIn(faults=[error(400, "json_schema is not supported")]) as server:
        with pytest.raises(CallFailed):
            await ask_in_turn(server, ask(schema=""))
    assert server.requests == 1


def test_a_schema_is_in_the_key_where_there_is_one_and_old_keys_stay() -> None:
    """The first key is that of a journal written before there were schemas."""
    plain, held = ask(schema=""), ask()
    assert plain.key() == "a796dab57801c5a8a623d3d3e8c05a21"
    assert held.key() != plain.key()
    assert held.key() != ask(schema="{}").key()


async def test_the_journal_keeps_the_schema(tmp_path: Path) -> None:
    requests = [ask(), ask(schema="")]
    with CallStore(tmp_path / "calls.sqlite") as store:
        for request in requests:
            await store.put(Entry(request, Completion("{}"), 0.0))
        rows = list(store)
    assert [row.request for row in rows] == requests
    assert [row.key for row in rows] == [request.key() for request in requests]


def test_output_is_a_matter_of_roles() -> None:
    said = {"output": "json", "roles": {"rank": {"output": "text"}, "reflect": {"model": "strong"}}}
    settings = LLMSettings.model_validate(said)
    asked = {task: settings.json_for(task) for task in ("choose", "rank", "reflect.user")}
    assert asked == {"choose": True, "rank": False, "reflect.user": True}
    assert not LLMSettings().json_for("choose")
    assert settings.sampling_for("rank") == ("", Sampling(temperature=0.0))  # the output is no sampling parameter
