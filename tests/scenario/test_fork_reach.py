"""Planting one preference, or taking it away, is paid for only in events that it can have come to."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
import runs

from simengine import scenario as scenarios
from simengine.llm.backends.lexical import Lexical
from simengine.llm.request import Completion, Request
from simengine.measure.contacts import merge_events, read_contacts
from simengine.measure.reachability import outside, reach
from simengine.runlog import Reader

pytestmark = pytest.mark.usefixtures("unpainted")
SEED_USER = "u3"
TEXT = f"""
name: reached
seed: 5
data: {{format: market, users: 16, items: 48, interests: 4, interactions: 5, seed: 4}}
method: {{kind: agentcf}}
llm: {{temperature: 1}}
plant: {{statements: [{{preference: I like harpsichord lullabies., seeds: {{users: [{SEED_USER}]}}}}]}}
stages: [{{optimize: {{}}}}, STAGE]
"""
STAGES = {
    "none": "",
    "rank": "{rank: {strategies: [B, B+R, B+H, LLMRank]}}",
    "live": "{rank: {when: live}}",
    "bias": "{bias: {by: position}}",
    "probe": "{probe: {at: [start, 1, end]}}",
    "reviews": "{reviews: {}}",
    "discussion": "{discussion: {}}",
    "cold_start": "{cold_start: {read: 2, pool: 6}}",
    "advertising": "{advertising: {}}",
}
GROUPED = {
    "at once": "{kind: agentcfpp, every: 16}",
    "lag": "{kind: agentcfpp, every: 16, lag: 5}",
    "history": "{kind: agentcfpp, every: 16, groups_by: history, kept: 3}",
}
ON, OFF = "plant.enabled=true", "plant.enabled=false"


class Drawing:
    """Rules whose explanations are a draw of each call, as a model's are; counts which calls it was asked for."""

    def __init__(self, seed: str) -> None:
        self._rules = Lexical()
        self._seed = seed
        self.asked: list[str] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.call)
        answer = await self._rules.complete(request)
        drawn = hashlib.blake2b(f"{self._seed} {request.call}".encode(), digest_size=4).hexdigest()
        return Completion(text=answer.text.replace("Explanation: ", f"Explanation: {drawn}. "))


def both(tmp_path: Path, stage: str, first: str, second: str, *sets: str) -> tuple[Any, Any, Drawing]:
    """A run, its fork, and the model that the fork has asked."""
    text = TEXT.replace(", STAGE", f", {stage}" if stage else "")
    whole = runs.run(tmp_path / "run", first, *sets, text=text, backend=Drawing("parent"))
    assert whole.report.failures == {}
    model = Drawing("fork")
    forked = asyncio.run(scenarios.fork(whole.path, [second], out=tmp_path / "fork", backend=model))
    assert forked.report.failures == {}
    return whole, forked, model


each_way = pytest.mark.parametrize(("first", "second"), [(ON, OFF), (OFF, ON)], ids=["control", "treatment"])


@each_way
@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_a_fork_pays_only_for_what_the_planting_reaches(tmp_path: Path, stage: str, first: str, second: str) -> None:
    _pays_for_no_more(*both(tmp_path, stage, first, second), first)


@each_way
@pytest.mark.parametrize("method", GROUPED.values(), ids=GROUPED)
def test_with_groups_too(tmp_path: Path, method: str, first: str, second: str) -> None:
    """Planted at a time, before which there are groups already and behind which they are formed anew."""
    data = "data={format: market, users: 16, items: 48, domains: 2, interests: 4, interactions: 6, seed: 4}"
    sets = (f"method={method}", data, "plant.statements[0].at=4")
    _pays_for_no_more(*both(tmp_path, "{rank: {}}", first, second, *sets), first)


def _pays_for_no_more(whole: Any, forked: Any, model: Drawing, first: str) -> None:
    treatment, control = (whole, forked) if first == ON else (forked, whole)

    def lines(run: Any) -> Reader:
        return Reader(run.path / "events.jsonl")

    contacts = read_contacts(merge_events(lines(control), lines(treatment)))
    at = contacts.events.index(f"plant/0/{SEED_USER}")
    reached = reach(contacts, {f"user:{SEED_USER}": at})
    touched = {event for event, yes in zip(reached.events, reached.touched.tolist(), strict=True) if yes}
    paid = {call.partition("#")[0] for call in model.asked}
    assert paid and paid <= touched
    assert len(touched) < len(contacts.events)  # or else it would say nothing
    assert outside(reached, lines(control), lines(treatment)) == []
    costs = forked.report.costs
    assert costs.attempts == len(model.asked)
    assert costs.reused == sum(costs.calls.values()) - costs.attempts > 0
