"""Runs whose answers are asked for as JSON: the same decisions as in text, whatever of it a server takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import runs
from standin import Body, Fault, StandIn, agentcf_reply, chat, error

from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import choice, descriptions, ranking, selfintro
from simengine.llm.request import Completion, Request
from simengine.testing import MethodContract

JSON = "llm.output=json"
FORMS = {
    "choose": choice.JSON,
    "rank": ranking.JSON,
    "reflect.user": selfintro.JSON,
    "reflect.item": descriptions.JSON,
}
TEXT_FORMS = {
    "chosen": "Chosen album: <",
    "self_introduction": "My updated self-introduction:",
    "first": "The updated description of the first album is:",
    "order": "Rank:",
}


class TestContract(MethodContract):
    """All that holds of the method holds in JSON."""

    scenario = """
name: agentcf-json
data: {format: market, users: 6, items: 12, interests: 3, interactions: 5, seed: 4}
llm: {output: json}
method: {kind: agentcf}
stages: [{optimize: {}}, {rank: {}}]
"""


def _decisions(folder: Path) -> list[dict[str, Any]]:
    """What happened, less the digests of what was asked and answered."""
    found = runs.events(folder)
    for event in found:
        event["calls"] = sorted(event["calls"])
    return found


@pytest.mark.parametrize("more", [[], ["method.reflection_calls=2"], ["method.over_limit=cut", "method.user_words=20"]])
def test_the_embedded_rules_decide_alike_in_both_forms(more: list[str], tmp_path: Path) -> None:
    text, other = (runs.run(tmp_path / name, *more, f"llm.output={name}") for name in ("text", "json"))
    assert _decisions(other.path) == _decisions(text.path)
    assert other.report.hash != text.report.hash  # the scenario and the calls tell which it was
    replies = [row.outcome.text for row in runs.calls(other.path)]
    assert replies and all(isinstance(json.loads(reply), dict) for reply in replies)
    assert runs.replay(other.path).hash == other.report.hash


def test_a_run_without_the_option_is_what_it_was(tmp_path: Path) -> None:
    """No request has a schema, and saying the default changes no byte."""
    plain, said = runs.run(tmp_path / "plain"), runs.run(tmp_path / "said", "llm.output=text")
    assert plain.report.hash == said.report.hash
    assert {row.request.schema for row in runs.calls(plain.path)} == {""}


def test_a_role_can_have_its_own_form(tmp_path: Path) -> None:
    run = runs.run(tmp_path / "run", JSON, "llm.roles={reflect: {output: text}}")
    asked = {(row.request.task, row.request.schema) for row in runs.calls(run.path)}
    assert asked == {(task, "" if task.startswith("reflect") else form.schema) for task, form in FORMS.items()}


class Broken(Lexical):
    """Ends the first answer to every choice in its middle, or answers as a talkative model does."""

    def __init__(self, spoil: Any) -> None:
        self.spoil = spoil
        self.asked: list[str] = []

    async def complete(self, request: Request) -> Completion:
        whole = await super().complete(request)
        if request.task != "choose":
            return whole
        self.asked.append(request.call.rpartition("#")[2])
        again = request.call.endswith(("/reask", "/longer"))
        return whole if again else Completion(text=self.spoil(whole.text))


@pytest.mark.parametrize(
    ("limit", "second"), [("llm.max_tokens=400", "choose/r1/longer"), ("llm.max_tokens=null", "choose/r1/reask")]
)
def test_json_that_is_cut_is_asked_for_again(limit: str, second: str, tmp_path: Path) -> None:
    """Field case 7: truncated, though the server says that it came to its end."""
    model = Broken(lambda text: text[:-10])
    report = runs.run(tmp_path / "run", JSON, limit, "method.rounds=1", backend=model).report
    assert (report.failures, report.asked_again) == ({}, {"choose": 24})
    assert set(model.asked) == {"choose/r1", second}


def test_json_among_prose_needs_no_second_call(tmp_path: Path) -> None:
    model = Broken(lambda text: f"<think>{{}}</think>Here:\n```json\n{text}\n```\nI hope [1] {{this}} helps.")
    report = runs.run(tmp_path / "run", JSON, "method.rounds=1", backend=model).report
    assert (report.failures, report.asked_again) == ({}, {})


def _as_text(body: Body) -> Body:
    """The body as if it had asked for the text form, so that the stand-in's own replies fit."""
    system, *others = body["messages"]
    form = next(TEXT_FORMS[name] for name in TEXT_FORMS if f'{{"{name}": ' in system["content"])
    return {**body, "messages": [{**system, "content": f"{system['content']}\n{form}"}, *others]}


def _in_json(reply: str) -> str:
    """A reply of the stand-in in its JSON form."""
    lines = reply.splitlines()
    values = [line.partition(": ")[2] for line in lines]
    if reply.startswith("Chosen"):
        return choice.JSON.write(*values)
    if reply.startswith("Rank"):
        return ranking.JSON.write([line.partition(". ")[2] for line in lines[1:]])
    return (selfintro.JSON if len(lines) == 1 else descriptions.JSON).write(*values)


class Server(StandIn):
    """Takes ``types`` of ``response_format``; answers in JSON where it took one, else in text."""

    def __init__(self, *types: str) -> None:
        super().__init__(self._say, check=self._check)
        self.types = types

    def _check(self, body: Body) -> Fault | None:
        asked = body.get("response_format", {}).get("type")
        return None if asked in (None, *self.types) else error(400, f"response_format {asked} is not supported")

    def _say(self, body: Body) -> str | Body:
        # drawn without what the format adds, so that the answer is the same whatever is taken
        messages = _as_text({key: body[key] for key in ("model", "messages")})
        reply = agentcf_reply(messages)
        return chat(_in_json(reply) if "response_format" in body else reply, body)


@pytest.mark.parametrize(
    ("types", "refused"), [(("json_schema",), 0), (("json_object",), 1), ((), 2)], ids=["schema", "object", "nothing"]
)
def test_a_server_gives_the_same_run_whatever_it_takes(types: tuple[str, ...], refused: int, tmp_path: Path) -> None:
    """Each refusal costs one attempt for the run, and text is read where nothing else could be asked for."""
    found = []
    for concurrency in (1, 8):
        with Server.in_thread(*types) as server:
            sets = [*runs.served(server.url, concurrency), JSON]
            found.append(runs.run(tmp_path / str(concurrency), *sets))
        rows = runs.calls(found[-1].path)
        assert found[-1].report.failures == {} and found[-1].report.asked_again == {}
        if concurrency == 1:
            assert server.requests == len(rows) + refused
    assert runs.history(found[0].path) == runs.history(found[1].path)
    with Server.in_thread("json_schema") as server:
        most = runs.run(tmp_path / "most", *runs.served(server.url), JSON)
    assert _decisions(most.path) == _decisions(found[0].path)
