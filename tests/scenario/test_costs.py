"""What a report says of a run's calls: dollars, tokens that were not reported, cut prompts, shared prefixes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import runs
from rich.console import Console
from standin import Body, StandIn, agentcf_reply, chat, error

from simengine.cli import show
from simengine.llm.tokens import CHARACTERS, characters
from simengine.scenario.costs import Costs

PRICES = "llm.prices={m: {input: 1, output: 10}}"


def _server(usage: Body | None, more: str = "") -> Callable[[Body], Body]:
    """Replies to prompts, each with ``more`` at its end and this report of usage."""
    return lambda body: {**chat(agentcf_reply(body) + more, body), "usage": usage}


def _printed(costs: Costs) -> str:
    out = io.StringIO()
    show.spent(costs, Console(file=out, width=120))
    return out.getvalue()


def test_the_embedded_rules_cost_nothing_and_nothing_is_said(tmp_path: Path) -> None:
    costs = runs.run(tmp_path / "run").report.costs
    assert (costs.spending.calls, costs.spending.tokens, costs.refused, costs.resent, costs.cut) == (0, 0, 0, 0, 0)
    assert _printed(costs) == ""


def test_reported_tokens_are_priced_and_cached_ones_are_said(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}
    with StandIn.in_thread(_server(usage)) as server:
        costs = runs.run(tmp_path / "run", *runs.served(server.url), PRICES).report.costs
    calls = sum(costs.calls.values())
    assert costs.spending.usd == pytest.approx(calls * (1000 * 1 + 100 * 10) / 1e6)
    assert (costs.spending.tokens, costs.spending.estimated) == (1100 * calls, 0)
    assert costs.cached_tokens == 600 * calls
    usd = f"{calls * 0.002:.4f}"
    assert _printed(costs) == f"spent: {1100 * calls} tokens, {600 * calls} from the server's cache, {usd} USD\n"


def test_tokens_that_are_not_reported_are_estimated_and_marked_as_such(tmp_path: Path) -> None:
    """Field case 12: never a silent 0 in a total of costs."""
    with StandIn.in_thread(_server(None)) as server:
        costs = runs.run(tmp_path / "run", *runs.served(server.url)).report.costs
    rows = runs.calls(tmp_path / "run")
    calls = len(rows)
    said = sum(round((characters(row.request) + len(row.outcome.text)) / CHARACTERS) for row in rows)
    assert costs.spending.estimated == costs.unmetered == calls
    assert costs.spending.tokens == said
    assert _printed(costs) == f"spent: {said} tokens, those of {calls} of {calls} calls estimated\n"


def test_cut_prompts_are_counted_in_the_summary(tmp_path: Path) -> None:
    """Field case 26: a server that reports 256 tokens of prompts of twice as many and more has cut them."""
    usage = {"prompt_tokens": 256, "completion_tokens": 9}
    with StandIn.in_thread(_server(usage, " Melodic." * 60)) as server:
        costs = runs.run(tmp_path / "run", *runs.served(server.url)).report.costs
    sizes = [characters(row.request) / CHARACTERS for row in runs.calls(tmp_path / "run")]
    # 256 is what a full context has, and less than four fifths of any prompt that is long enough to tell
    assert 0 < costs.cut == sum(size >= 500 for size in sizes) < len(sizes)
    assert f"server: {costs.cut} prompts cut by the server (raise its context length)\n" in _printed(costs)


def test_refusals_of_the_server_are_counted(tmp_path: Path) -> None:
    with StandIn.in_thread(agentcf_reply, faults=[error(429, "slow down", retry_after="0.01")] * 2) as server:
        costs = runs.run(tmp_path / "run", *runs.served(server.url, 1)).report.costs
    assert costs.refused == 2
    assert "server: 2 requests refused (status 429)\n" in _printed(costs)


def test_a_report_that_is_made_again_has_the_same_costs(tmp_path: Path) -> None:
    with StandIn.in_thread(agentcf_reply) as server:
        first = runs.run(tmp_path / "run", *runs.served(server.url), PRICES)
    assert first.report.costs.spending.usd > 0
    (first.path / "report.json").unlink()
    assert runs.resume(first.path).report.costs == first.report.costs


def test_the_shared_prefix_is_the_part_that_a_cache_can_serve(tmp_path: Path) -> None:
    """By task and system text: the two templates of a reflection have not much more than the first words in common."""
    costs = runs.run(tmp_path / "run").report.costs
    texts: dict[str, dict[str, list[str]]] = {}
    for row in runs.calls(tmp_path / "run"):
        system, *others = (message.content for message in row.request.messages)
        texts.setdefault(row.request.task, {}).setdefault(system, []).append("".join([system, *others]))
    assert {task: len(groups) for task, groups in texts.items()} == {
        "choose": 1,
        "rank": 1,
        "reflect.item": 2,
        "reflect.user": 2,
    }
    for task, groups in texts.items():
        served = 0
        for system, asked in groups.items():
            first, last = min(asked), max(asked)  # what the first and the last in the order of texts share, all share
            shared = next(at for at in range(len(first)) if first[at] != last[at])
            assert shared >= len(system)
            served += shared * (len(asked) - 1)
        whole = sum(len(text) for asked in groups.values() for text in asked)
        assert costs.shared_prefix[task] == pytest.approx(served / whole, abs=5e-4)
    assert costs.shared_prefix.keys() == texts.keys()
