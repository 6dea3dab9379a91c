"""Runs whose rankings go through the Batch API: one file for the stage, the same history, kills that cost nothing."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import runs
from standin import Batches, Body, StandIn, agentcf_reply

from simengine import scenario as scenarios
from simengine.errors import RunStopped

RANKINGS = 8
OFFLINE = ["llm.roles={rank: {mode: offline}}", "llm.offline.poll=0.02"]


def _is_ranking(body: Body) -> bool:
    return "Rank:" in str(body["messages"])


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Body]]:
    """The run that asks for everything at once, and what it asked for its rankings."""
    with StandIn.in_thread(agentcf_reply) as server:
        folder = runs.run(tmp_path_factory.mktemp("online") / "run", *runs.served(server.url)).path
    return folder, [body for body in server.bodies if _is_ranking(body)]


def _as_online(online: tuple[Path, list[Body]], folder: Path, server: StandIn) -> None:
    assert runs.history(folder) == runs.history(online[0])
    assert runs.report(folder).hash == runs.report(online[0]).hash
    assert not any(_is_ranking(body) for body in server.bodies), "a ranking was asked for online"
    assert set(server.counts.values()) == {1}
    assert server.batches.repeats == 0


def test_the_stage_is_one_batch_and_the_history_is_that_of_single_calls(
    online: tuple[Path, list[Body]], tmp_path: Path
) -> None:
    with StandIn.in_thread(agentcf_reply, latency=0.005) as server:
        found = runs.run(tmp_path / "run", *runs.served(server.url), *OFFLINE)
    _as_online(online, found.path, server)
    (lines,) = server.batches.uploads
    by_text = {str(body["messages"]): body for body in online[1]}
    assert {str(line["body"]["messages"]): line["body"] for line in lines} == by_text
    assert (len(lines), server.batches.created) == (RANKINGS, 1)
    costs, single = found.report.costs, runs.report(online[0]).costs
    assert (costs.calls, costs.prompt_tokens, costs.completion_tokens) == (
        single.calls,
        single.prompt_tokens,
        single.completion_tokens,
    )
    assert runs.replay(found.path).hash == found.report.hash


def test_what_a_batch_leaves_unanswered_is_submitted_again(online: tuple[Path, list[Body]], tmp_path: Path) -> None:
    def spoil(number: int, line: Body) -> Any:
        return (500, {"error": {"message": "oops"}}) if number == 0 and line["custom_id"] < "8" else None

    batches = Batches(spoil=spoil, ends=["expired"], unfinished=2)
    with StandIn.in_thread(agentcf_reply, batches=batches) as server:
        found = runs.run(tmp_path / "run", *runs.served(server.url), *OFFLINE)
    _as_online(online, found.path, server)
    first, again = batches.uploads
    failed = [line["custom_id"] for at, line in enumerate(first) if at >= RANKINGS - 2 or line["custom_id"] < "8"]
    assert sorted(line["custom_id"] for line in again) == sorted(failed)
    assert 2 < len(again) < RANKINGS
    assert found.report.failures == {}


def test_an_answer_that_cannot_be_read_is_asked_for_again_in_a_batch(tmp_path: Path) -> None:
    """The corrective call is named ``rank``, too. All are unreadable here, so that all corrections make one batch."""

    def reply(body: Body) -> str:
        correction = "could not be used" in str(body["messages"][-1]["content"])
        whole = agentcf_reply({**body, "messages": body["messages"][:2]})
        return whole if correction or not _is_ranking(body) else "I would rather not say."

    with StandIn.in_thread(reply) as server:
        found = runs.run(tmp_path / "run", *runs.served(server.url), *OFFLINE)
    assert [len(lines) for lines in server.batches.uploads] == [RANKINGS, RANKINGS]
    assert found.report.failures == {}


# -- stops and kills -------------------------------------------------------------------------------------------------


@contextmanager
def _started(server: StandIn, folder: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "scenario.yaml").write_text(runs.SMALL, encoding="utf-8")
    sets = [part for entry in (*runs.served(server.url), *OFFLINE) for part in ("--set", entry)]
    strict = {"PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": "1"}
    process = runs.start("run", folder / "scenario.yaml", "--out", "run", *sets, cwd=folder, **strict)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_that_is_killed_while_a_batch_is_pending_submits_nothing_again(
    online: tuple[Path, list[Body]], tmp_path: Path
) -> None:
    with StandIn.in_thread(agentcf_reply, batches=Batches(hold=True)) as server:
        with _started(server, tmp_path) as process:
            runs.wait_for(lambda: server.batches.looks > 0)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert len(server.batches.uploads) == 1
        server.batches.hold = False
        runs.resume(tmp_path / "run")
    _as_online(online, tmp_path / "run", server)
    assert len(server.batches.uploads) == server.batches.created == 1


def test_a_signal_does_not_wait_for_the_batch_and_says_that_it_goes_on(
    online: tuple[Path, list[Body]], tmp_path: Path
) -> None:
    with StandIn.in_thread(agentcf_reply, batches=Batches(hold=True)) as server:
        with _started(server, tmp_path) as process:
            runs.wait_for(lambda: server.batches.looks > 0)
            process.send_signal(signal.SIGINT)
            asked = time.monotonic()
            _, err = process.communicate(timeout=20)
        assert time.monotonic() - asked < 5, "calls that are not answered get ten seconds"
        assert process.returncode == 130, err
        for noise in ("Traceback", "never retrieved", "unclosed", "was destroyed", "never awaited", "Warning"):
            assert noise not in err, err
        assert "At the server these batches go on: batch_0." in err
        assert "simengine run --resume run" in err
        server.batches.hold = False
        runs.resume(tmp_path / "run")
    _as_online(online, tmp_path / "run", server)
    assert len(server.batches.uploads) == 1


@pytest.mark.parametrize(("first", "then"), [("offline", "online"), ("online", "offline")])
def test_a_run_may_go_on_in_the_other_mode(
    first: str, then: str, online: tuple[Path, list[Body]], tmp_path: Path
) -> None:
    """A budget stops the run among its rankings. What a batch has answered is not asked for online, nor vice versa."""
    calls = len(runs.calls(online[0]))
    with StandIn.in_thread(agentcf_reply) as server:
        sets = [*runs.served(server.url), "llm.offline.poll=0.02", f"llm.budget.calls={calls - 3}"]
        with pytest.raises(RunStopped, match="budget"):
            runs.run(tmp_path / "run", *sets, f"llm.roles.rank.mode={first}")
        runs.resume(tmp_path / "run", f"llm.roles.rank.mode={then}", f"llm.budget.calls={calls}")
    assert runs.history(tmp_path / "run") == runs.history(online[0])
    ranked = [line["body"] for lines in server.batches.uploads for line in lines]
    single = [body for body in server.bodies if _is_ranking(body)]
    assert len(ranked) == (RANKINGS - 3 if first == "offline" else 3)
    assert len(ranked) + len(single) == RANKINGS


def test_a_mode_is_no_part_of_a_scenarios_identity() -> None:
    def identity(*sets: str) -> Any:
        return scenarios.read("small.yaml", sets, runs.SMALL)[0].semantic()

    assert identity("llm.roles={rank: {mode: offline}}") == identity("llm.offline.poll=5") == identity()
    both = identity("llm.roles={rank: {mode: offline, max_tokens: 50}}")
    assert both == identity("llm.roles={rank: {max_tokens: 50}}") != identity()


def test_the_embedded_rules_rehearse_such_a_scenario_online(tmp_path: Path) -> None:
    plain = runs.run(tmp_path / "plain")
    assert runs.run(tmp_path / "run", *OFFLINE).report.hash == plain.report.hash


def test_a_batch_that_is_refused_as_a_whole_ends_the_run_with_advice(tmp_path: Path) -> None:
    batches = Batches(problem="Enqueued token limit reached for m.")
    with StandIn.in_thread(agentcf_reply, batches=batches) as server:
        with pytest.raises(RunStopped) as stopped:
            runs.run(tmp_path / "run", *runs.served(server.url), *OFFLINE)
        assert "Enqueued token limit reached" in str(stopped.value)
        assert "simengine run --resume" in str(stopped.value)
        assert "these batches go on" not in str(stopped.value)
        batches.problem = ""
        runs.resume(tmp_path / "run")
    assert batches.created == 2
