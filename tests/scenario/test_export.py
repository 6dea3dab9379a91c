"""What is exported from runs: new demonstrations for a store, accepted plans as chat, and nothing over another file."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import runs
from typer.testing import CliRunner

from simengine.cli.main import app
from simengine.errors import InputError
from simengine.llm.backends.lexical import Lexical
from simengine.llm.replies import decision
from simengine.llm.request import Completion, Request
from simengine.methods.interec.demonstrations import SEED
from simengine.methods.interec.novelty import THRESHOLD, rouge_l
from simengine.methods.interec.tasks import read_planned
from simengine.runlog import Reader
from simengine.scenario import fork, read
from simengine.scenario.demonstrations import export_demonstrations
from simengine.scenario.imitation import export_plans

BOTH = """
name: both
seed: 5
data: {format: market, users: 8, items: 24, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages:
  - demonstrate: {input_first: 12, output_first: 16, dialogues: 8}
  - converse: {turns: 3}
"""
TURN = BOTH.replace("  - demonstrate: {input_first: 12, output_first: 16, dialogues: 8}\n", "").replace(
    "{turns: 3}", "{turns: 1, users: 1}"
)
PLAN = '{"thought": "é", "profile": {"like": ["Jazz"]}, "steps": [{"tool": "fetch", "input": {"n": 5}}]}'


class _Model:
    """The lexical model, but for some tasks, whose answers come from functions; at temperature 0.5 none is shared."""

    def __init__(self, answers: Mapping[str, Callable[[Request], str]]) -> None:
        self._answers = answers
        self._lexical = Lexical()

    async def complete(self, request: Request) -> Completion:
        answer = self._answers.get(request.task)
        return await self._lexical.complete(request) if answer is None else Completion(answer(request))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(runs.run(tmp_path_factory.mktemp("runs") / "both", text=BOTH).path)


def _turn(tmp_path: Path, *sets: str, **answers: str | list[str]) -> list[dict[str, Any]]:
    """What is exported of a talk of one turn; a list of answers is taken one after the other."""

    def given(said: str | list[str]) -> Callable[[Request], str]:
        rest = iter(said) if isinstance(said, list) else None
        return lambda request: next(rest) if rest is not None else str(said)

    model = _Model({f"converse.{task}": given(said) for task, said in answers.items()})
    finished = runs.run(tmp_path / "run", "llm.temperature=0.5", *sets, text=TURN, backend=model)
    export_plans([finished.path], tmp_path / "p.jsonl")
    return _lines(tmp_path / "p.jsonl")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode("utf-8").split("\n")[:-1]]


def _plan(sample: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(sample["messages"][-1]["content"]))


# -- demonstrations ---------------------------------------------------------------------------------------------------


def test_new_demonstrations_are_exported_and_a_scenario_can_use_them(both: Path, tmp_path: Path) -> None:
    out = tmp_path / "d.jsonl"
    ways = export_demonstrations(both, out)
    assert [(way.way, way.asked, way.made) for way in ways] == [
        ("input_first", 12, 12),
        ("output_first", 16, 16),
        ("dialogues", 8, 8),
    ]
    rows = _lines(out)
    assert [way.kept for way in ways] == [sum(row["way"] == way.way for row in rows) for way in ways]
    assert ways[2].kept == 0
    told = {line.event: line.messages[0].body for line in Reader(both / "events.jsonl") if line.messages}
    known = [pair.request for pair in SEED]
    for row in rows:
        assert (row["request"], row["way"]) == (told[row["event"]]["request"], told[row["event"]]["way"])
        assert row["plan"]["steps"] == told[row["event"]]["plan"]["steps"]
        assert all(rouge_l(row["request"], other) < THRESHOLD for other in known)
        known.append(row["request"])
    finished = runs.run(tmp_path / "with", f"method.store={out}", text=TURN)
    assert not finished.report.failures
    assert [pair.request for pair in read(finished.path / "scenario.yaml")[0].method.pairs] == [  # type: ignore[attr-defined]
        row["request"] for row in rows
    ]


def test_what_is_in_the_store_already_is_not_new(both: Path, tmp_path: Path) -> None:
    first, again = tmp_path / "d.jsonl", tmp_path / "again.jsonl"
    export_demonstrations(both, first)
    finished = runs.run(tmp_path / "run", f"method.store={first}", text=BOTH)
    export_demonstrations(finished.path, again)
    known = [row["request"] for row in _lines(first)]
    assert all(rouge_l(row["request"], other) < THRESHOLD for row in _lines(again) for other in known)


def test_failures_are_told_by_way(tmp_path: Path) -> None:
    model = _Model({"converse.plan": lambda request: '{"steps": [{"tool": "rank"}]}'})
    finished = runs.run(
        tmp_path / "run", "stages=[{demonstrate: {input_first: 2, output_first: 3}}]", text=BOTH, backend=model
    )
    ways = export_demonstrations(finished.path, tmp_path / "d.jsonl")
    assert [(way.made, way.failed) for way in ways] == [(2, {}), (1, {"plan: other_tools": 2})]


def test_a_run_without_demonstrations_has_none_to_export(tmp_path: Path) -> None:
    talks = runs.run(tmp_path / "talks", text=TURN).path
    with pytest.raises(InputError, match="generated no demonstrations"):
        export_demonstrations(talks, tmp_path / "d.jsonl")
    with pytest.raises(InputError, match="agentcf makes no plans"):
        export_demonstrations(runs.run(tmp_path / "small").path, tmp_path / "d.jsonl")
    assert not (tmp_path / "d.jsonl").exists()


# -- plans ------------------------------------------------------------------------------------------------------------


def test_each_accepted_exchange_and_each_pair_is_a_sample(both: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    found = export_plans([both], out)
    rows = _lines(out)
    lines = list(Reader(both / "events.jsonl"))
    accepted = sum(it.kind == "verdict" and it.body["accepted"] for line in lines for it in line.messages)
    assert sum(found.counts.values()) + found.repeated == accepted + 36
    assert {domain for domain, _ in found.counts} == {"album"}
    assert [source for _, source in found.counts] == ["input_first", "output_first", "dialogues", "conversations"]
    assert len(rows) == sum(found.counts.values()) == len({json.dumps(row) for row in rows})
    for row in rows:
        assert list(row) == ["messages"]
        assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
        assert list(_plan(row)) == ["thought", "profile", "steps"]
        assert read_planned(row["messages"][-1]["content"], {}).fault is None


def test_the_prompts_are_those_of_the_journal(both: Path, tmp_path: Path) -> None:
    """And of a talk that was written with its plan, what the journal would hold, down to the nearest demonstrations."""
    export_plans([both], tmp_path / "p.jsonl")
    asked = {
        tuple(message.content for message in row.request.messages)
        for row in runs.calls(both)
        if row.request.task == "converse.plan"
    }
    rows = [tuple(message["content"] for message in row["messages"][:2]) for row in _lines(tmp_path / "p.jsonl")]
    others = [row for row in rows if row not in asked]
    pairs = [it.body for line in Reader(both / "events.jsonl") for it in line.messages if it.kind == "demonstration"]
    talks = [pair for pair in pairs if pair["way"] == "dialogues"]
    assert len(others) == len(talks) == 8
    for (system, user), talk in zip(others, talks, strict=True):
        assert all(column in system for column in talk["columns"])
        assert user.startswith("Plans that served requests like this one:\nRequest: ")
        told = "\n".join(talk["dialogue"])
        assert user.endswith(f"The talk so far:\n{told}\n\nWhat the user says now:\n{talk['request']}")
        assert system.partition("The columns of both:")[0] == rows[0][0].partition("The columns of both:")[0]


def test_only_the_plan_that_the_critic_accepts_is_a_sample(tmp_path: Path) -> None:
    plans = [PLAN, PLAN.replace('"n": 5', '"n": 3')]
    verdicts = [decision.write(False, "Take fewer."), decision.write(True, "Good.")]
    (row,) = _turn(tmp_path, plan=plans, critic=verdicts)
    assert _plan(row) == {
        "thought": "é",
        "profile": {"like": ["Jazz"], "dislike": [], "expect": []},
        "steps": [{"tool": "fetch", "input": {"n": 3}}],
    }
    assert "Take fewer." in row["messages"][1]["content"], "the prompt of the second attempt tells of the first"


@pytest.mark.parametrize("critic", ["???", decision.write(False, "No.")])
def test_what_no_critic_accepts_is_none(critic: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no plan in these runs"):
        _turn(tmp_path, plan=PLAN, critic=critic)
    assert not (tmp_path / "p.jsonl").exists()


def test_without_a_critic_all_plans_of_turns_that_were_answered_are_taken(tmp_path: Path) -> None:
    (row,) = _turn(tmp_path, "method.reflection=0", plan=PLAN)
    assert _plan(row)["thought"] == "é"


def test_without_a_critic_a_turn_without_a_reply_gives_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no plan in these runs"):
        _turn(tmp_path, "method.reflection=0", plan=PLAN, reply="???")


def test_a_fork_that_has_lost_its_critic_takes_none_that_was_rejected_before(tmp_path: Path) -> None:
    """Of the first turn no plan was accepted, of the second, which no critic has judged, there is one."""
    model = _Model(
        {
            "converse.user": lambda request: "Message: Something, please.\nGoodbye: no",
            "converse.plan": lambda request: '{"thought": "", "steps": []}',
            "converse.critic": lambda request: decision.write(False, "No."),
        }
    )
    sets = ("llm.temperature=0.5", "method.reflection=1", "stages=[{converse: {turns: 2, users: 1}}]")
    run = runs.run(tmp_path / "run", *sets, text=TURN, backend=model)
    first, second = Reader(run.path / "events.jsonl")
    made = fork(run.path, ["method.reflection=0"], at=second.event, out=tmp_path / "fork", backend=model)
    asyncio.run(made)
    with pytest.raises(InputError, match="no plan in these runs"):
        export_plans([run.path], tmp_path / "p.jsonl")
    assert first.units["critic/1"] == "ok"
    export_plans([tmp_path / "fork"], tmp_path / "p.jsonl")
    assert len(_lines(tmp_path / "p.jsonl")) == 1


@pytest.mark.parametrize("plan", ['{"steps": [{"tool": "drop"}]}', "???"])
def test_a_plan_that_was_not_carried_out_is_none_whatever_the_critic_says(plan: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no plan in these runs"):
        _turn(tmp_path, plan=plan, critic=decision.write(True, "Good."))


def test_a_plan_that_was_asked_for_again_goes_with_the_first_prompt(tmp_path: Path) -> None:
    (row,) = _turn(tmp_path, plan=["I think so.", PLAN], critic=decision.write(True, "Good."))
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
    assert "I think so." not in json.dumps(row)
    assert _plan(row)["thought"] == "é"


def test_the_plan_is_what_was_carried_out(tmp_path: Path) -> None:
    """Not what was written: nothing is fetched beyond k, and what narrows the candidates is followed by a fetch."""
    plan = '{"steps": [{"tool": "RANK", "input": {"by": "popularity"}}, {"tool": "fetch", "input": {"n": 20}}]}'
    (row,) = _turn(tmp_path, plan=plan, critic=decision.write(True, "Good."))
    ranked = {"tool": "rank", "input": {"by": "popularity", "liked": [], "unwanted": []}}
    assert _plan(row)["steps"] == [ranked, {"tool": "fetch", "input": {"n": 5}}]


def test_lone_surrogates_reach_no_file(tmp_path: Path) -> None:
    plan = '{"thought": "a\\ud800b", "profile": {"like": ["\\udfff"]}, "steps": []}'
    (row,) = _turn(tmp_path, plan=plan, critic=decision.write(True, "Good."))
    assert (_plan(row)["thought"], _plan(row)["profile"]["like"]) == ("a?b", ["?"])


def test_runs_are_told_apart_by_domain_and_equal_samples_count_once(both: Path, tmp_path: Path) -> None:
    films = runs.run(tmp_path / "films", "data.noun=film", text=TURN).path
    alone = export_plans([both], tmp_path / "one.jsonl")
    shutil.copytree(both, tmp_path / "copy")
    twice = export_plans([both, films, tmp_path / "copy"], tmp_path / "all.jsonl")
    total = sum(alone.counts.values())
    assert _lines(tmp_path / "all.jsonl")[:total] == _lines(tmp_path / "one.jsonl")
    assert twice.counts == {**alone.counts, ("film", "conversations"): 1}
    assert twice.repeated == 2 * alone.repeated + total
    assert export_plans([both, films], tmp_path / "films.jsonl", ["film"]).counts == {("film", "conversations"): 1}
    (row,) = _lines(tmp_path / "films.jsonl")
    assert "recommends films" in row["messages"][0]["content"]
    with pytest.raises(InputError, match="no run is of this domain") as caught:
        export_plans([both, films], tmp_path / "none.jsonl", ["game"])
    assert "album, film" in caught.value.remedy


def test_prompts_that_changed_cannot_tell_how_a_plan_was_asked_for(tmp_path: Path) -> None:
    packaged = runs.ROOT / "simengine" / "methods" / "prompts" / "interec" / "interec.plan.j2"
    other = tmp_path / "plan.j2"
    other.write_text(packaged.read_text(encoding="utf-8"), encoding="utf-8")
    sets = (f"prompts={{interec.plan: {other}}}", "stages=[{demonstrate: {dialogues: 1}}]")
    folder = runs.run(tmp_path / "run", *sets, text=BOTH).path
    export_plans([folder], tmp_path / "same.jsonl")
    other.write_text(other.read_text(encoding="utf-8").replace("whole plan", "plan"), encoding="utf-8")
    with pytest.raises(InputError, match="the prompts changed since the run was made"):
        export_plans([folder], tmp_path / "p.jsonl")


# -- the commands -----------------------------------------------------------------------------------------------------


def test_the_commands_say_what_they_wrote_and_overwrite_nothing(both: Path, tmp_path: Path) -> None:
    for name in ("demonstrations", "plans"):
        out = tmp_path / f"{name}.jsonl"
        done = CliRunner().invoke(app, ["export", name, str(both), "--out", str(out)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert f"written: {out}, {len(_lines(out))}" in done.stdout.replace("\n", "")
        written = out.read_bytes()
        with pytest.raises(InputError, match="nothing is overwritten"):
            CliRunner().invoke(app, ["export", name, str(both), "--out", str(out)], catch_exceptions=False)
        assert out.read_bytes() == written
        with pytest.raises(InputError, match="cannot be written"):
            missing = str(tmp_path / "none" / "out.jsonl")
            CliRunner().invoke(app, ["export", name, str(both), "--out", missing], catch_exceptions=False)


def test_domains_are_named_on_the_command_line(both: Path, tmp_path: Path) -> None:
    arguments = ["export", "plans", str(both), "--domains", "album, film", "--out", str(tmp_path / "p.jsonl")]
    with pytest.raises(InputError, match="no run is of this domain"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_the_ready_scenario_runs(tmp_path: Path) -> None:
    sets = [
        "data={format: market, users: 8, items: 40, interests: 3, interactions: 6, seed: 4}",
        "stages[0].demonstrate={input_first: 4, output_first: 16, dialogues: 4}",
    ]
    scenario = runs.ROOT / "scenarios" / "interec-demonstrations.yaml"
    finished = runs.run(tmp_path / "run", *sets, text=scenario.read_text(encoding="utf-8"))
    assert not finished.report.failures
    assert export_plans([finished.path], tmp_path / "p.jsonl").counts["album", "conversations"] > 0
