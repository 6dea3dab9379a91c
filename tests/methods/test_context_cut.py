"""A prompt longer than the model's context is not sent again unchanged: what agents remember is cut, once (case 24)."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs
from standin import Body, Fault, StandIn, agentcf_reply, error
from structlog.testing import capture_logs

from simengine.errors import CallFailed
from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request
from simengine.llm.tokens import characters
from simengine.methods.turn import shortened

OVERFLOW = "This model's maximum context length is 4096 tokens."


@pytest.mark.parametrize(
    ("slots", "cut", "right"),
    [
        ({"memory": "a b c d e", "options": ("f g", "h i")}, "memory", "a b c"),
        ({"memory": "a b c d", "options": ("f g h", "i j")}, "options", ("f g", "i")),
        ({"memory": "a b c d", "options": ("f g", "h i")}, "memory", "a b"),  # of equals the one named first
        ({"memory": "a\n b\nc d"}, "memory", "a\n b"),
        ({"memory": "a", "history": ("b c", "d", "e f")}, "history", ("d", "e f")),  # the newest stand last
        ({"memory": "a b", "history": ("b c d e",)}, "memory", "a"),  # one entry is not cut in two
        ({"memory": "a b", "titles": ("f g h", "i j k"), "explanation": "l m n o"}, "memory", "a"),
        ({"memory": "a", "options": ("b", "c"), "titles": ("f g h", "i j k")}, "", None),
        ({"titles": ("f g h", "i j k")}, "", None),
    ],
)
def test_the_longest_part_of_what_is_remembered_loses_its_half(slots: dict, cut: str, right: object) -> None:
    found, name = shortened(slots)
    assert name == cut
    assert found == (slots if right is None else {**slots, cut: right})


class Small(Lexical):
    """Refuses prompts of some tasks that are longer than its context, in characters; keeps what it was asked."""

    def __init__(self, context: int, *tasks: str) -> None:
        self.context = context
        self.tasks = tasks
        self.asked: dict[str, Request] = {}

    async def complete(self, request: Request) -> Completion:
        self.asked[request.call] = request
        if request.task in self.tasks and characters(request) > self.context:
            raise CallFailed(OVERFLOW, reason="context")
        return await super().complete(request)


def _longest(model: Small, task: str) -> int:
    return max(characters(request) for request in model.asked.values() if request.task == task)


def test_the_cut_prompt_is_a_call_of_its_own_and_serves(tmp_path: Path) -> None:
    whole = Small(10**9)
    runs.run(tmp_path / "whole", backend=whole)
    limit = _longest(whole, "rank") - 20
    model = Small(limit, "rank")
    with capture_logs() as logs:
        run = runs.run(tmp_path / "run", backend=model)
    cut = [call for call in model.asked if call.endswith("/cut")]
    assert cut and all(call.endswith("#rank/cut") for call in cut)
    assert (run.report.failures, run.report.asked_again) == ({}, {"rank": len(cut)})
    for call in cut:
        before, after = model.asked[call.removesuffix("/cut")], model.asked[call]
        assert characters(before) > limit >= characters(after)
        assert after.messages[0] == before.messages[0]  # the instructions are never cut
        assert {name for name in before.slots if after.slots[name] != before.slots[name]} == {"options"}
        assert after.slots == {**before.slots, "options": shortened(before.slots)[0]["options"]}
    said = [log for log in logs if log["event"] == "prompt cut"]
    assert len(said) == len(cut)
    assert {(log["task"], log["slot"], log["log_level"]) for log in said} == {("rank", "options", "warning")}
    assert all(log["kept"] < log["words"] for log in said)
    assert runs.replay(run.path).hash == run.report.hash


def test_a_second_overflow_ends_the_unit_with_its_reason(tmp_path: Path) -> None:
    model = Small(0, "choose")
    report = runs.run(tmp_path / "run", "llm.temperature=0.7", backend=model).report
    assert report.failures["choose: context"] == report.asked_again["choose"] == 24
    calls = [call.rpartition("#")[2] for call, request in model.asked.items() if request.task == "choose"]
    assert sorted(set(calls)) == ["choose/r1", "choose/r1/cut"] and len(calls) == 48


class Talks(Small):
    """Answers the first time with what cannot be read, so that the prompt of the re-ask is the one that is too long."""

    async def complete(self, request: Request) -> Completion:
        whole = await super().complete(request)
        return whole if request.task != "choose" or "/reask" in request.call else Completion("la " * 300)


def test_a_reask_that_is_too_long_is_cut_as_well(tmp_path: Path) -> None:
    model = Talks(10**9, "choose")
    runs.run(tmp_path / "whole", "llm.temperature=0.7", "method.rounds=1", backend=model)
    rows = {call.rpartition("#")[0]: request for call, request in model.asked.items() if call.endswith("/reask")}
    short = min(map(characters, rows.values())) - 5
    model = Talks(short, "choose")
    report = runs.run(tmp_path / "run", "llm.temperature=0.7", "method.rounds=1", backend=model).report
    calls = {call.rpartition("#")[2] for call, request in model.asked.items() if request.task == "choose"}
    assert calls >= {"choose/r1", "choose/r1/reask", "choose/r1/reask/cut"}
    assert report.asked_again["choose"] == sum(call.endswith(("/cut", "/reask")) for call in model.asked)


def _full(body: Body) -> Fault | None:
    """A server whose context holds 72 words of what is shown."""
    words = len(body["messages"][-1]["content"].split())
    return error(400, OVERFLOW, code="context_length_exceeded") if words > 72 else None


def test_a_run_against_a_server_with_a_small_context_is_the_same_at_any_concurrency(tmp_path: Path) -> None:
    """An overflow costs one request, and is never sent again unchanged."""
    found = []
    for concurrency in (1, 8):
        with StandIn.in_thread(agentcf_reply, check=_full) as server:
            found.append(runs.run(tmp_path / str(concurrency), *runs.served(server.url, concurrency)))
        assert set(server.counts.values()) == {1}
        refused = sum(_full(body) is not None for body in server.bodies)
        report = found[-1].report
        first, second = sum(report.asked_again.values()), sum(report.failures.values())
        assert first > second > 0 and set(report.failures) == {"rank: context"}
        assert refused == first + second
    assert runs.history(found[0].path) == runs.history(found[1].path)
    assert found[0].report.hash == found[1].report.hash
