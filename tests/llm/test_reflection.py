"""The reflection format, and the two-call form of AgentCF's update (appendix B.5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simengine
from simengine.llm.replies import Unreadable, reflection

SCENARIO = """
name: two-calls
data: {format: market, users: 3, items: 12, interests: 2, interactions: 4}
method: {kind: agentcf, reflection_calls: 2}
stages: [{optimize: {}}]
"""


@given(st.text(alphabet="abc xyz,.", min_size=1).map(str.strip).filter(bool))
def test_what_is_written_is_read(text: str) -> None:
    assert reflection.read(reflection.write(f"I think {text}x"), "I think") == f"I think {text}x"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("My reflection:", "empty"),
        ("<think>hm</think>", "reasoning_only"),
        ("I'm sorry, I cannot pretend to be a person.", "refusal"),
        ("How may I help you choose today?", "off_role"),
    ],
)
def test_what_is_no_reflection_is_said(reply: str, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        reflection.read(reply, "I like jazz")
    assert raised.value.reason == reason


def test_a_reflection_without_its_heading_is_read() -> None:
    assert reflection.read("I was misled by the title.", "I like") == "I was misled by the title."


async def test_the_update_is_shown_the_reflection_that_came_before_it(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    asked: list[simengine.Request] = []

    def answer(request: simengine.Request) -> str:
        asked.append(request)
        first, second = request.slots.get("titles", ("", "")) or ("", "")
        return {
            "choose": f"Chosen item: {second}\nExplanation: it suits me.",
            "analyse.user": "My reflection: I care for brass.",
            "analyse.item": "My reflection: people of brass take it.",
            "reflect.user": "My updated self-introduction: I like brass.",
            "reflect.item": f"The updated description of the first item is: {first} a\n"
            f"The updated description of the second item is: {second} b",
        }[request.task]

    run = await simengine.run_async(path, out=tmp_path / "run", model=simengine.Scripted(answer))
    assert run.report.failures == {}
    thoughts = {"reflect.user": "I care for brass.", "reflect.item": "people of brass take it."}
    updates = [request for request in asked if request.task in thoughts]
    assert len(updates) == 6
    for request in updates:
        assert thoughts[request.task] in request.messages[-1].content
        assert request.slots["reflection"] == thoughts[request.task]
    assert next(line.calls.keys() for line in run.events()) >= {"reflect.user/r1/analyse", "reflect.user/r1"}
