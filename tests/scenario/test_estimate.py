"""What a run is said to cost beforehand, against what such runs came to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import runs
from standin import Body, StandIn, agentcf_reply, chat

from simengine import scenario as scenarios
from simengine.llm.tokens import characters
from simengine.scenario.check import plan
from simengine.scenario.estimate import SAMPLE, Estimate, estimate
from simengine.scenario.schema import Scenario

LARGE = ("data.users=80", "data.items=60", "data.interactions=8")
FACTOR = 1.25
"""How far calls, prompts and completions may be from what a server reports that writes as long as it is asked to."""


def _read(*sets: str) -> Scenario:
    return scenarios.read("small.yaml", sets, runs.SMALL)[0]


def _sum(found: Estimate, name: str) -> float:
    return sum(getattr(task, name) for task in found.tasks)


def test_a_scenario_of_few_events_is_played_out_whole(tmp_path: Path) -> None:
    found = estimate(_read())
    assert found.sampled == sum(stage.events for stage in found.plan.stages)
    calls = {task.task: task.calls for task in found.tasks}
    assert calls == runs.run(tmp_path / "run").report.costs.calls
    assert [task.stage for task in found.tasks] == ["optimize"] * 3 + ["rank"]


def test_prompts_and_replies_are_measured_where_no_limit_lengthens_them(tmp_path: Path) -> None:
    """With limits of one word no text is lengthened by more than the rest of one: four characters make a token."""
    sets = ("method.user_words=1", "method.item_words=1")
    found = estimate(_read(*sets))
    runs.run(tmp_path / "run", *sets)
    rows = runs.calls(tmp_path / "run")
    assert _sum(found, "prompt_tokens") == pytest.approx(sum(characters(row.request) for row in rows) / 4, rel=1e-3)
    assert _sum(found, "completion_tokens") == pytest.approx(sum(len(row.outcome.text) for row in rows) / 4, rel=1e-3)


def test_a_sample_stands_for_the_whole(tmp_path: Path) -> None:
    found = estimate(_read(*LARGE))
    assert SAMPLE <= found.sampled < sum(stage.events for stage in found.plan.stages)
    calls: Counter[str] = Counter()
    for task in found.tasks:
        calls[task.task] += task.calls
    assert calls == pytest.approx(runs.run(tmp_path / "run", *LARGE).report.costs.calls, rel=0.1)
    assert found == estimate(_read(*LARGE)), "the sample is drawn by the seed"


def test_every_stage_is_sampled_and_scaled_by_itself() -> None:
    text = runs.SMALL + "  - rank: {repeats: 3}\n"
    found = estimate(scenarios.read("small.yaml", LARGE, text)[0])
    ranked = {task.stage: task.calls for task in found.tasks if task.task == "rank"}
    assert ranked == pytest.approx({"rank": 80, "rank-2": 240})


def test_calls_are_bounded_as_the_plan_says() -> None:
    scenario = _read("method.rounds=3")
    stages = plan(scenario).stages
    found = estimate(scenario)
    least, most = sum(stage.least_calls for stage in stages), sum(stage.most_calls for stage in stages)
    assert found.calls == (least, most)
    assert least < _sum(found, "calls") < most


def test_dollars_are_tokens_times_prices_of_each_tasks_model() -> None:
    roles = "llm.roles={choose: {model: cheap}, rank: {model: free}}"
    prices = "llm.prices={cheap: {input: 1, output: 2}, strong: {input: 10, output: 40}}"
    found = estimate(_read("llm.model=strong", roles, prices))
    each = {"cheap": (1, 2), "strong": (10, 40)}
    for task in found.tasks:
        if task.model == "free":
            assert task.usd is None
        else:
            prompt, reply = each[task.model]
            assert task.usd == pytest.approx((task.prompt_tokens * prompt + task.completion_tokens * reply) / 1e6)
    assert {task.task: task.model for task in found.tasks}["choose"] == "cheap"
    assert found.unpriced == ["free"]
    assert found.usd is not None
    least, expected, most = found.usd
    assert expected == pytest.approx(sum(task.usd or 0 for task in found.tasks))
    assert least < expected < most


def test_without_prices_there_is_no_cost() -> None:
    found = estimate(_read())
    assert found.usd is None
    assert {task.usd for task in found.tasks} == {None}


def test_events_in_which_the_rules_cannot_go_on_are_counted(tmp_path: Path) -> None:
    template = tmp_path / "rank.j2"
    template.write_text("{% block system %}Rank.{% endblock %}{% block user %}Now.{% endblock %}", encoding="utf-8")
    found = estimate(_read(f"prompts.rank={template}"))
    assert found.failed == 8, "the prompt shows no candidates, and there are eight rankings"


def test_a_server_that_fills_its_word_limits_reports_what_was_estimated(tmp_path: Path) -> None:
    """Tokens as servers count them in English: four for three words. The server chooses right in half of all cases."""
    with StandIn.in_thread(_metered) as server:
        sets = (*runs.served(server.url), "data.users=24", "data.items=40")
        found = estimate(_read(*sets))
        costs = runs.run(tmp_path / "run", *sets).report.costs
    assert costs.unmetered == 0
    for said, done in (
        (_sum(found, "calls"), sum(costs.calls.values())),
        (_sum(found, "prompt_tokens"), costs.prompt_tokens),
        (_sum(found, "completion_tokens"), costs.completion_tokens),
    ):
        assert 1 / FACTOR < said / done < FACTOR


def _metered(body: Body) -> Body:
    text = _long(agentcf_reply(body))
    asked = "\n".join(message["content"] for message in body["messages"])
    prompt, reply = (round(len(said.split()) * 4 / 3) for said in (asked, text))
    return {**chat(text, body), "usage": {"prompt_tokens": prompt, "completion_tokens": reply}}


def _long(reply: str) -> str:
    """A reply of AgentCF's whose texts have the words that the prompts allow: 180 of a user, 50 of each item."""
    limit = 180 if reply.startswith("My updated") else 50 if reply.startswith("The updated") else 0
    return "\n".join(_filled(line, limit) for line in reply.splitlines())


def _filled(line: str, limit: int) -> str:
    words = len(re.sub(r"^.*?: ", "", line).split())
    return " ".join([line, *["melodic"] * (limit - words)])
