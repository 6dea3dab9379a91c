"""Demonstrations from a file: what a scenario takes from it, what its hash says of it, what is wrong with a line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import runs

from simengine.errors import InputError, LogError
from simengine.methods.interec import reply, store
from simengine.methods.interec.demonstrations import SEED, Demonstrations
from simengine.methods.interec.settings import InteRecSettings
from simengine.scenario import Scenario, read, replay

PLAN = {"thought": "why", "steps": [{"tool": "rank", "input": {"by": "popularity"}}, {"tool": "fetch"}]}
GOOD = store.line("What is popular?", PLAN, way="input_first", event="demonstrate/input_first/1")
SMALL = """
name: small
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{converse: {turns: 1, users: 2}}]
"""


def _scenario(file: Path) -> Scenario:
    return read("s.yaml", [f"method.store={file}"], SMALL)[0]


def test_a_scenario_shows_them_behind_our_own(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text(f"{GOOD}\n", encoding="utf-8")
    settings = _scenario(file).method
    assert isinstance(settings, InteRecSettings)
    shelf = Demonstrations(settings.pairs)
    assert shelf.requests == (*(pair.request for pair in SEED), "What is popular?")
    (shown,) = shelf.shown([len(SEED)])
    assert shown == f"Request: What is popular?\nPlan: {reply.write(settings.pairs[0].plan)}"
    assert settings.pairs[0].plan.steps[0].tool == "rank"


def test_a_planner_is_shown_the_nearest(tmp_path: Path) -> None:
    """The first line of a user begins so; none of our own is nearer."""
    file = tmp_path / "d.jsonl"
    request = "I have enjoyed: This; That. I am looking for something with: Glass Techno."
    file.write_text(store.line(request, PLAN), encoding="utf-8")
    finished = runs.run(tmp_path / "run", f"method.store={file}", "method.demonstrations=1", text=SMALL)
    plans = [row.request for row in runs.calls(finished.path) if row.request.task == "converse.plan"]
    assert any(request in it.messages[-1].content for it in plans)


def test_the_hash_is_of_what_the_file_holds_and_not_of_its_place(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for file, line in zip(files, (GOOD, GOOD, GOOD.replace("popular?", "new?")), strict=True):
        file.write_text(line, encoding="utf-8")
    first, second, third = (_scenario(file).semantic() for file in files)
    assert first == second != third
    assert first["method"]["store"] == "".join(first["method"]["store"].split()), "a digest"
    assert "store" not in read("s.yaml", [], SMALL)[0].semantic()["method"]


def test_a_run_knows_the_place_and_does_not_go_on_with_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text(GOOD, encoding="utf-8")
    finished = runs.run(tmp_path / "run", "method.store=d.jsonl", text=SMALL)
    assert read(finished.path / "scenario.yaml")[1]["method"]["store"] == str(tmp_path / "d.jsonl")
    Path("d.jsonl").write_text(GOOD.replace("popular?", "new?"), encoding="utf-8")
    with pytest.raises(LogError, match="the scenario changed since this run was made"):
        asyncio.run(replay(finished.path))


@pytest.mark.parametrize(
    ("line", "field", "problem"),
    [
        ("{", None, "this is no JSON"),
        ("[" * 100_000, None, "this is no JSON"),
        ("", None, "this is no JSON"),
        ("[]", None, "no JSON object"),
        ('{"plan": {"steps": []}}', "request", "has a request"),
        ('{"request": " ", "plan": {"steps": []}}', "request", "has a request"),
        ('{"request": 5, "plan": {"steps": []}}', "request", "has a request"),
        ('{"request": "a"}', "plan", "has a plan"),
        ('{"request": "a", "plan": "b"}', "plan", "has a plan"),
        ('{"request": "a", "plan": {}}', "plan", "incomplete"),
        ('{"request": "a", "plan": {"steps": [{"tool": "drop"}]}}', "plan", "unknown_tool"),
        ('{"request": "a", "plan": {"steps": [{"tool": "fetch", "input": {"n": 900}}]}}', "plan", "wrong_input"),
        (
            json.dumps(
                {"request": "a", "plan": {"steps": [{"tool": "soft_filter", "input": {"titles": ["$3.title"]}}]}}
            ),
            "plan",
            "unknown_reference",
        ),
    ],
)
def test_a_bad_line_is_named(line: str, field: str | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text(f"{GOOD}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        _scenario(file)
    where = {"file": str(file), "line": 2} | ({"field": field} if field else {})
    assert caught.value.where == where
    assert caught.value.remedy


def test_a_file_that_is_missing_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        _scenario(tmp_path / "none.jsonl")
    assert caught.value.where["file"] == str(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="holds no demonstration"):
        _scenario(tmp_path / "empty.jsonl")


def test_a_surrogate_in_a_request_is_no_trouble(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text('{"request": "a\\ud800b", "plan": {"steps": []}}', encoding="utf-8")
    settings = _scenario(file).method
    assert isinstance(settings, InteRecSettings)
    assert settings.pairs[0].request.encode() == b"a?b"
