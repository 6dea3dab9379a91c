"""What a server does not take is learned once for each model: parameters, roles; what was sent is kept beside."""

from __future__ import annotations

import asyncio
import json

import pytest
from clients import backend
from standin import Fault, StandIn, alternating, error, refuses
from structlog.testing import capture_logs

from simengine.errors import CallFailed
from simengine.llm.backends.adaptation import Adaptations, merge_roles
from simengine.llm.layers.retry import Retry
from simengine.llm.request import Completion, Message, Request, Sampling
from simengine.llm.settings import RetrySettings

SAMPLING = Sampling(temperature=0.0, max_tokens=16, top_p=0.5)
FOUR = (Message("system", "s1"), Message("system", "s2"), Message("user", "u1"), Message("user", "u2"))


def ask(text: str, *, model: str = "m", messages: tuple[Message, ...] = ()) -> Request:
    return Request("choose", model, messages or (Message("user", text),), SAMPLING)


async def ask_in_turn(server: StandIn, *requests: Request, **options: object) -> list[Completion]:
    """Each request in turn, with no budget for retries: what is learned is free."""
    model = backend(server, **options)
    retry = Retry(model, RetrySettings(budget=0))
    try:
        return [await retry.complete(request) for request in requests]
    finally:
        await model.aclose()


@pytest.mark.parametrize(
    ("check", "right"),
    [
        (refuses("max_tokens"), {"temperature": 0.0, "max_completion_tokens": 16, "top_p": 0.5}),
        (refuses("temperature", unless=1), {"max_tokens": 16, "top_p": 0.5}),
        (refuses("top_p"), {"temperature": 0.0, "max_tokens": 16}),
        (refuses("max_completion_tokens"), {"temperature": 0.0, "max_tokens": 16, "top_p": 0.5}),
    ],
    ids=["max_tokens", "temperature", "top_p", "the name that is not used"],
)
async def test_a_refused_parameter_costs_one_400_for_the_run(check, right: dict[str, object]) -> None:
    """Field case 18: servers 1, 3 and 2; one warning, and the parameters as they were sent are kept."""
    async with StandIn(check=check) as server:
        with capture_logs() as logs:
            answers = await ask_in_turn(server, *(ask(str(n)) for n in range(4)))
    assert [json.loads(answer.sent) for answer in answers] == [{"model": "m", **right}] * 4
    assert not any({"max_tokens", "max_completion_tokens"} <= body.keys() for body in server.bodies)
    refusals = server.requests - 4
    assert refusals == (0 if len(right) == 3 and "max_tokens" in right else 1)
    assert sum(entry["log_level"] == "warning" for entry in logs) == refusals


@pytest.mark.parametrize(
    "fault",
    [
        error(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens'."),
        Fault(422, {"detail": [{"loc": ["body", "max_tokens"], "msg": "Extra inputs are not permitted"}]}),
        Fault(400, {"error": {"message": "Unrecognized request argument supplied: max_tokens", "param": None}}),
        Fault(400, {"object": "error", "message": "max_tokens: unexpected keyword argument"}),
    ],
)
async def test_refusals_of_many_makes_are_understood(fault: Fault) -> None:
    async with StandIn(faults=[fault]) as server:
        (answer,) = await ask_in_turn(server, ask("x"))
    assert json.loads(answer.sent)["max_completion_tokens"] == 16


async def test_both_names_refused_means_neither() -> None:
    def check(body: dict) -> Fault | None:
        return refuses("max_tokens")(body) or refuses("max_completion_tokens")(body)

    async with StandIn(check=check) as server:
        (answer,) = await ask_in_turn(server, ask("x"))
    assert json.loads(answer.sent) == {"model": "m", "temperature": 0.0, "top_p": 0.5}
    assert answer.attempts == 3


async def test_calls_under_way_together_learn_together() -> None:
    """Twenty calls meet the refusal at one time: each is sent once more, and none fails."""
    async with StandIn(check=refuses("max_tokens"), together=20) as server:
        model = backend(server)
        retry = Retry(model, RetrySettings(budget=0))
        server.arrived.set()
        answers = await asyncio.gather(*(retry.complete(ask(str(n))) for n in range(20)))
        await retry.complete(ask("later"))
        await model.aclose()
    assert {answer.attempts for answer in answers} <= {1, 2}
    assert server.requests <= 41


async def test_what_is_learned_of_one_model_is_not_held_against_another() -> None:
    def check(body: dict) -> Fault | None:
        return refuses("temperature")(body) if body["model"] == "thinker" else None

    async with StandIn(check=check) as server:
        answers = await ask_in_turn(server, ask("x", model="thinker"), ask("x", model="plain"))
    assert ["temperature" in json.loads(answer.sent) for answer in answers] == [False, True]


@pytest.mark.parametrize(
    "fault",
    [
        error(400, "max_tokens is too large: 5000. This model supports at most 4096 completion tokens"),
        error(400, "temperature must be between 0 and 2"),
        error(400, "the request was refused"),
        error(400, "temperature is not supported", code="content_filter"),
    ],
)
async def test_other_refusals_are_not_taken_for_one_of_a_parameter(fault: Fault) -> None:
    async with StandIn(faults=[fault]) as server:
        with pytest.raises(CallFailed):
            await ask_in_turn(server, ask("x"))
    assert server.requests == 1


async def test_a_context_overflow_that_names_a_parameter_is_one() -> None:
    """Field case 24: not sent again, changed or unchanged."""
    text = "This model's maximum context length is 4096 tokens; max_tokens of 5000 is not supported"
    async with StandIn(faults=[error(400, text)]) as server:
        with pytest.raises(CallFailed) as caught:
            await ask_in_turn(server, ask("x"))
    assert (caught.value.reason, server.requests) == ("context", 1)


@pytest.mark.parametrize("told", [False, True])
async def test_roles_are_merged_when_told_or_after_the_first_refusal(told: bool) -> None:
    """Field case 19: system, system, user, user to a server that takes user and assistant in turn."""
    async with StandIn(check=alternating) as server:
        answers = await ask_in_turn(server, *[ask("", messages=FOUR)] * 2, merge_roles=told)
    merged = [{"role": "user", "content": "s1\n\ns2\n\nu1\n\nu2"}]
    assert server.requests == (2 if told else 3)
    assert server.bodies[-1]["messages"] == merged
    assert [json.loads(answer.sent)["messages"] for answer in answers] == [merged] * 2


@pytest.mark.parametrize(
    "fault",
    [
        error(400, "System role not supported"),
        error(400, "Only user and assistant roles are supported!"),
        error(400, "Developer instruction is not enabled for models/gemma-3"),
        error(500, "Jinja template: Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
async def test_templates_of_many_makes_are_understood(fault: Fault) -> None:
    async with StandIn(faults=[fault]) as server:
        await ask_in_turn(server, ask("", messages=FOUR))
    assert [message["role"] for message in server.bodies[-1]["messages"]] == ["user"]


async def test_messages_that_went_out_as_they_are_are_not_kept_twice() -> None:
    async with StandIn() as server:
        (answer,) = await ask_in_turn(server, ask("", messages=FOUR))
    assert "messages" not in json.loads(answer.sent)


@pytest.mark.parametrize(
    ("roles", "right"),
    [
        ("su", ["user:s0 u1"]),
        ("suau", ["user:s0 u1", "assistant:a2", "user:u3"]),
        ("uas", ["user:s2 u0", "assistant:a1"]),
        ("uuaau", ["user:u0 u1", "assistant:a2 a3", "user:u4"]),
        ("s", ["user:s0"]),
        ("ua", ["user:u0", "assistant:a1"]),
    ],
)
def test_merging_keeps_the_order(roles: str, right: list[str]) -> None:
    names = {"s": "system", "u": "user", "a": "assistant"}
    messages = [Message(names[role], f"{role}{at}") for at, role in enumerate(roles)]
    assert [f"{m.role}:{m.content}".replace("\n\n", " ") for m in merge_roles(messages)] == right


def test_a_refusal_of_what_was_learned_meanwhile_is_sent_again() -> None:
    learned = Adaptations(merge=False)
    before = learned.version("m")
    assert learned.learn("m", {"max_tokens": 9}, before, "max_tokens", "unsupported")
    assert learned.learn("m", {"max_tokens": 9}, before, None, "whatever it says")
    assert not learned.learn("m", {"max_completion_tokens": 9}, learned.version("m"), None, "whatever it says")
