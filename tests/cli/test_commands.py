"""The commands as a user meets them: what they print, where, and the exit status that a script can go by."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest
import runs
from console import Command
from standin import Body, StandIn, agentcf_reply, error

from simengine.runlog.records import Chain, EventLine, Line

KEY = "sk-test-123"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(runs.SMALL, encoding="utf-8")
    return file


def _sets(entries: list[str]) -> list[str]:
    return [part for entry in entries for part in ("--set", entry)]


def test_a_run_prints_table_counts_and_place(command: Command, small: Path) -> None:
    status, out, err = command("run", small)
    assert status == 0
    report = runs.report(Path("replays/small"))
    assert out.startswith("model: lexical (rule-based text, not a language model)\n")
    for name in ("Stage rank", "random", "pop", "agentcf B", "ndcg@10", "mrr", "Failures: none"):
        assert name in out
    calls = sum(report.costs.calls.values())
    assert out.endswith(f"32 events, {calls} calls, hash {report.hash}\nrun: replays/small\n")
    assert re.search(rf"32/32 events, {calls} calls, 0 failed\ntook 0:00:\d\d\n$", err)
    for value in (result.value for result in report.results):
        assert f"{value:.4f}" in out

    status, out, err = command("replay", "replays/small")
    assert (status, out) == (0, f"identical: 32 events, 0 model calls, hash {report.hash}\n")


def test_runs_get_numbers_and_a_folder_that_exists_is_an_error(command: Command, small: Path) -> None:
    for number in ("", "-2", "-3"):
        status, out, _ = command("run", small)
        assert (status, out.splitlines()[-1]) == (0, f"run: replays/small{number}")
    before = {path: path.read_bytes() for path in Path("replays").rglob("*") if path.is_file()}
    status, out, err = command("run", small, "--out", "replays/small-2")
    assert (status, out) == (2, "")
    assert "replays/small-2: this exists already, and a run never overwrites another" in err
    assert {path: path.read_bytes() for path in Path("replays").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "small.yaml", "--resume", "x"], ["run", "--resume", "x", "--out", "y"]]
)
def test_a_run_wants_either_a_scenario_or_a_run(arguments: list[str], command: Command, small: Path) -> None:
    status, _, err = command(*arguments)
    assert status == 2
    assert "say either a scenario or --resume RUN" in err


def test_a_run_is_gone_on_with(command: Command, small: Path) -> None:
    command("run", small)
    whole = Path("replays/small")
    cut = runs.cut(whole, Path("cut"), runs.ends(whole)[9] + 30)
    status, out, _ = command("replay", cut)
    assert (status, out.endswith("(the run is unfinished: compared as far as it goes)\n")) == (0, True)
    status, out, err = command("run", "--resume", cut)
    assert (status, out.splitlines()[-1]) == (0, "run: cut")
    assert "line=12" in err  # the two lines of the head and nine events stand before it
    assert runs.history(cut) == runs.history(whole)
    status, _, err = command("run", "--resume", cut)
    assert (status, "this run is finished" in err) == (2, True)


def test_what_is_no_run_is_refused(command: Command, tmp_path: Path) -> None:
    Path("empty").mkdir()
    (tmp_path / "small.yaml").write_text(runs.SMALL, encoding="utf-8")
    for folder in ("nowhere", "empty"):
        for arguments in (
            ("replay", folder),
            ("fork", folder),
            ("trace", folder),
            ("compare", folder, folder),
            ("decay", folder),
            ("run", "--resume", folder),
            ("run", "small.yaml", "--reuse", folder),
        ):
            status, out, err = command(*arguments)
            assert (status, out) == (2, ""), arguments
            lacking = {"nowhere": "there is no such folder", "empty": "it has no scenario.yaml and events.jsonl"}[
                folder
            ]
            assert f"{folder}: this is not the folder of a run: {lacking}\n" in err
            assert "took" not in err, "how long it took is of interest where something was done"


def test_a_difference_is_shown_side_by_side(command: Command, small: Path) -> None:
    command("run", small)
    log = Path("replays/small/events.jsonl")
    first, header, *lines = log.read_bytes().splitlines()
    chain = Chain()
    forged = [first + b"\n", chain.close(_unsummed(msgspec.json.decode(header, type=Line)))]
    for number, text in enumerate(lines):
        line = _unsummed(msgspec.json.decode(text, type=EventLine if text.startswith(b'{"event"') else Line))
        if number == 4:
            name = line.event
            at, memory = next((at, kept) for at, kept in enumerate(line.memories) if kept.slot == "short")
            line.memories[at] = msgspec.structs.replace(memory, value="I like what nobody likes.")
        forged.append(chain.close(line))
    log.write_bytes(b"".join(forged))

    status, out, err = command("replay", "replays/small")
    assert (status, out) == (1, "")
    shown = err[err.index("differs:") :].splitlines()
    assert shown[0] == f"differs: event {name}, record memories[{at}].value, agent {memory.agent}"
    assert shown[1].startswith("  expected: ")
    assert "I like what nobody likes." in shown[1]
    assert shown[2].startswith("  found:    ")
    assert "I like:" in shown[2]


def _unsummed(line: Line | EventLine) -> Line | EventLine:
    line.sum = ""
    return line


def test_a_missing_answer_and_a_changed_scenario_end_with_an_error(command: Command, small: Path) -> None:
    command("run", small)
    status, _, err = command("replay", "replays/small", "--set", "seed=1")
    assert (status, "the seed changed since this run was made" in err) == (1, True)
    Path("replays/small/calls.sqlite").unlink()
    runs.run(Path("other"), "seed=9")
    shutil.copy("other/calls.sqlite", "replays/small/calls.sqlite")
    status, out, err = command("replay", "replays/small")
    assert (status, out) == (1, "")
    assert re.search(r"Error: call interaction/\S+#choose/r1, task choose, key \w+: the journal holds no answer", err)


def test_a_wrong_scenario_is_told_by_place(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(runs.SMALL + "engine: {windw: 3}\n", encoding="utf-8")
    for name in ("run", "check"):
        status, out, err = command(name, file)
        assert (status, out) == (2, "")
        assert re.search(r"wrong\.yaml:9:\d+.*engine\.windw", err, re.DOTALL)
    assert not Path("replays").exists()


def test_check_says_what_would_run_and_runs_nothing(command: Command, small: Path) -> None:
    status, out, err = command("check", small, "--dependencies")
    assert (status, err) == (0, "")
    assert out.splitlines()[:3] == [
        "small: 8 users, 12 items, 24 interactions to re-enact",
        "stage optimize: 24 events, 72 to 144 calls",
        "stage rank: 8 events, 8 calls",
    ]
    assert re.search(r"^dependencies of 24 interactions: critical path \d+, widest level \d+", out, re.MULTILINE)
    assert out.endswith("the scenario is valid\n")
    assert os.listdir() == ["small.yaml"]


def test_check_says_what_a_batch_waits_for(command: Command, small: Path) -> None:
    """A batch of all 24 interactions reads one snapshot, so that none of them waits."""
    status, out, _ = command("check", small, "--dependencies", "--set", "engine.schedule={batch: 24}")
    assert status == 0
    assert (
        "dependencies of 24 interactions in batches of 24: critical path 1, widest level 24, mean parallelism 24.00; "
        "one waits for what earlier batches wrote, never for its own batch\n"
    ) in out


def test_check_says_that_dependencies_know_no_visibility(command: Command, small: Path) -> None:
    note = "note: the dependencies are those of latest reads: engine.visibility lets more run side by side\n"
    said = ("--set", "engine.visibility={items: every 2 steps}")
    for arguments, told in ((said, False), (("--dependencies",), False), ((*said, "--dependencies"), True)):
        status, out, _ = command("check", small, *arguments)
        assert (status, note in out) == (0, told)


def test_check_notes_what_a_run_would_lack(command: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is asked for when there is a run; a plan needs none, and says so."""
    monkeypatch.delenv("MY_KEY", raising=False)
    sets = _sets([*runs.served("http://127.0.0.1:9"), "llm.api_key=${MY_KEY}"])
    status, out, _ = command("check", small, *sets)
    note = "note: a run could not begin: field llm.api_key: the environment variable MY_KEY is not set; set it"
    assert (status, note in out) == (0, True)
    monkeypatch.setenv("MY_KEY", KEY)
    status, out, _ = command("check", small, *sets)
    assert (status, "could not begin" in out) == (0, False)


def test_a_run_names_the_figures_it_has_drawn(command: Command, small: Path) -> None:
    """A plain ranking draws none; a study of bias draws one of its stage."""
    sets = _sets(["stages=[{optimize: {}}, {bias: {by: popularity}}]", "data.items=40"])
    status, out, _ = command("run", small, *sets)
    assert (status, out.splitlines()[-2:]) == (0, ["figures: bias.png", "run: replays/small"])
    assert Path("replays/small/bias.png").is_file()


def test_the_help_lists_each_command_in_one_line_and_the_exit_statuses(command: Command) -> None:
    status, out, _ = command("--help")
    named = re.findall(r"^│ ([a-z]+)  +(\S.*\S) +│$", out, re.MULTILINE)
    names = [name for name, _ in named]
    assert status == 0
    assert names.index("check") < names.index("run") < names.index("replay") < names.index("trace")
    assert all(said.endswith(".") for _, said in named), "a line that goes on below has no end"
    assert "Exit status: 0 where all went well" in out


def test_schema_and_version(command: Command) -> None:
    status, out, _ = command("schema")
    assert status == 0
    assert {"data", "method", "stages", "seed"} <= json.loads(out)["properties"].keys()
    status, out, _ = command("--version")
    assert (status, bool(re.fullmatch(r"simengine \d+\.\d+\.\d+\n", out))) == (0, True)


# -- failures ----------------------------------------------------------------------------------------------------


def _refusing(body: Body) -> str:
    """Nobody wants to rank."""
    ranks = "Put all of them in order" in body["messages"][0]["content"]
    return "I'm sorry, I cannot pretend to be a person." if ranks else agentcf_reply(body)


def test_failures_are_counted_on_the_console(command: Command, small: Path) -> None:
    with StandIn.in_thread(_refusing) as server:
        status, out, err = command("run", small, *_sets(runs.served(server.url)))
        assert status == 0
        assert re.search(r"rank: refusal +8\n", out)
        assert re.search(r"Skipped test cases *\nreason +count *\n─+\nrank: agentcf B: refusal +8\n", out)
        assert "8 failed" in err
        assert runs.report(Path("replays/small")).failures == {"rank: refusal": 8}

        status, _, err = command("run", small, *_sets([*runs.served(server.url), "engine.on_error=stop"]))
    assert status == 1
    assert "Error: event rank/u1/B/1: a unit failed, and the scenario says to stop at the first failure" in err
    assert "Go on with: simengine run --resume replays/small-2" in err


def test_a_refused_key_is_told_nowhere(command: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server repeats the key that it refuses; it stands in no file, and in nothing that is printed."""
    monkeypatch.setenv("MY_KEY", KEY)
    refused = error(401, f"Incorrect API key provided: {KEY}. It is {KEY[:4]}.")
    with StandIn.in_thread(agentcf_reply, faults=[None] * 3 + [refused] * 99) as server:
        sets = [*runs.served(server.url), "llm.api_key=${MY_KEY}"]
        status, out, err = command("run", small, *_sets(sets))
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert server.requests < 20, "a refused key ends the run"
    assert status == 1
    assert "HTTP 401" in err
    assert "llm.api_key" in err
    assert "simengine run --resume replays/small" in err
    _nowhere(KEY, Path("replays/small"), out + err)
    assert "${MY_KEY}" in Path("replays/small/scenario.yaml").read_text(encoding="utf-8")

    monkeypatch.setenv("MY_KEY", "sk-better-456")
    with StandIn.in_thread(agentcf_reply) as server:
        status, out, err = command("run", "--resume", "replays/small", "--set", f"llm.base_url={server.url}")
        assert server.headers[0]["Authorization"] == "Bearer sk-better-456"
    assert status == 0
    _nowhere("sk-better-456", Path("replays/small"), out + err)


def test_a_password_in_the_address_is_told_nowhere(
    command: Command, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PASSWORD", KEY)
    with StandIn.in_thread(agentcf_reply, faults=[error(404, f"no model for {KEY}")] * 99) as server:
        url = server.url.replace("http://", "http://me:${MY_PASSWORD}@")
        status, out, err = command("run", small, *_sets(runs.served(url)))
    assert (status, "HTTP 404" in err) == (1, True)
    _nowhere(KEY, Path("replays/small"), out + err)


def _nowhere(secret: str, folder: Path, printed: str) -> None:
    assert secret not in printed
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 3
    for path in files:
        assert secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(
    value: str | None, command: Command, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("MY_KEY", raising=False)
    else:
        monkeypatch.setenv("MY_KEY", value)
    sets = [*runs.served("http://127.0.0.1:9"), "llm.api_key=${MY_KEY}"]
    status, _, err = command("run", small, *_sets(sets))
    assert (status, "the environment variable MY_KEY is" in err) == (2, True)
    assert not Path("replays").exists()


# -- AgentCF's own data -------------------------------------------------------------------------------------------


def test_random_and_pop_on_cds_dense(real_data: Path, command: Command) -> None:
    """Ten candidates of each of 100 users: the chance of a random order, and Pop over each user's first six items."""
    file = runs.ROOT / "scenarios" / "agentcf-cds.yaml"
    sets = _sets([f"data.path={real_data / 'agentcf-cds-dense'}", "stages=[{rank: {rankers: [random, pop]}}]"])
    status, out, _ = command("run", file, *sets)
    assert status == 0
    found = {
        (result.ranker, result.k): f"{result.value:.4f}"
        for result in runs.report(Path("replays/agentcf-cds")).results
        if result.metric == "ndcg"
    }
    assert [found["random", k] for k in (1, 5, 10)] == ["0.1000", "0.2948", "0.4544"]
    assert [found["pop", k] for k in (1, 5, 10)] == ["0.1850", "0.3835", "0.5178"]
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith(("random", "pop"))}
    assert rows["random"][0] == rows["pop"][0] == "100"
    for value in found.values():
        assert value in out


@pytest.mark.parametrize(("both", "path", "widest"), [("false", 15, 63), ("true", 27, 44)])
def test_dependencies_of_the_recorded_negatives(
    both: str, path: int, widest: int, real_data: Path, command: Command
) -> None:
    sets = ["data.negatives=recorded/selections.jsonl", f"method.update_negative={both}"]
    sets += [f"data.path={real_data / 'agentcf-cds-dense'}"]
    file = runs.ROOT / "scenarios" / "agentcf-cds.yaml"
    status, out, _ = command("check", file, "--dependencies", *_sets(sets))
    assert status == 0
    assert f"dependencies of 500 interactions: critical path {path}, widest level {widest}, mean parallelism" in out
