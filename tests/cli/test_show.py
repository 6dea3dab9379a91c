"""What is printed can be read in eighty columns and in a file, and says what it was given."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console

from simengine.cli import show
from simengine.errors import InputError


@dataclass
class Value:
    stage: str
    ranker: str
    metric: str
    k: int | None
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 100
    repeats: int = 1


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def piped(width: int = 80) -> Console:
    return Console(file=StringIO(), width=width)


def terminal() -> Console:
    return Console(file=StringIO(), width=80, force_terminal=True, color_system=None)


def text(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def lines(console: Console) -> list[str]:
    return [line.rstrip() for line in text(console).splitlines() if line.strip()]


def test_a_table_has_a_row_for_each_ranker_and_a_column_for_each_metric() -> None:
    console = piped()
    results = [
        Value("rank", "agentcf B", "NDCG", 1, 0.21875, 0.1, 0.30004, repeats=5),
        Value("rank", "agentcf B", "MRR", None, 0.4, 0.35, 0.45, n=98, repeats=5),
        Value("rank", "pop", "NDCG", 1, 0.125),
        Value("after", "pop", "Hit", 10, None),
    ]
    show.results_table(results, console)
    shown = lines(console)
    assert shown[0] == "Stage rank"
    assert shown[1].split() == ["ranker", "n", "NDCG@1", "MRR"]
    assert shown[3].split() == ["agentcf", "B", "98-100", "x", "5", "0.2188", "0.4000"]
    assert shown[4].split() == ["[0.1000,", "0.3000]", "[0.3500,", "0.4500]"]
    assert shown[5].split() == ["pop", "100", "0.1250", "-"]
    assert shown[6] == "Stage after"
    assert shown[9].split() == ["pop", "100", "n/a"]
    assert "\x1b" not in text(console)


def _wide() -> list[Value]:
    rankers = ["LLMSeqSim", "a ranker with quite a long name of its own"]
    metrics = [(metric, k) for metric in ("NDCG", "Hit") for k in (1, 5, 10, 100)]
    return [
        Value("rank", ranker, metric, k, k / 1000, -k / 900, k / 800, n=1000, repeats=5)
        for ranker in rankers
        for metric, k in metrics
    ]


@pytest.mark.parametrize("console", [piped(), terminal(), piped(200)])
def test_a_wide_table_goes_on_below_and_nothing_is_cut(console: Console) -> None:
    results = _wide()
    show.results_table(results, console)
    shown = text(console)
    assert max(map(len, shown.splitlines())) <= console.width
    for result in results:
        assert f"{result.metric}@{result.k}" in shown
        assert f"[{result.low:.4f}, {result.high:.4f}]" in shown
    assert "…" not in shown
    assert shown.count("Stage rank") == (1 if console.width == 200 else 4)


def test_brackets_in_names_are_no_markup() -> None:
    console = piped()
    show.results_table([Value("s[/b]", "[red]x[/]", "NDCG[k]", 1, 0.5)], console)
    show.failures({"[bold]odd[/]": 1}, console)
    show.error(InputError("no [/such] thing", remedy="See stages[1].rank.k[0]."), console)
    shown = text(console)
    for name in ("s[/b]", "[red]x[/]", "NDCG[k]@1", "[bold]odd[/]", "no [/such] thing\n  See stages[1].rank.k[0].\n"):
        assert name in shown


def test_nothing_to_show_is_said() -> None:
    console = piped()
    show.results_table([], console)
    show.failures({"refusal": 0}, console)
    assert lines(console) == ["No results.", "Failures: none"]


def test_failures_are_counted_by_reason_the_commonest_first() -> None:
    console = piped()
    show.failures({"refusal": 2, "content filter": 12, "ambiguous": 2, "parse": 0}, console)
    assert [line.split() for line in lines(console)[3:]] == [
        ["content", "filter", "12"],
        ["ambiguous", "2"],
        ["refusal", "2"],
    ]


def test_an_error_goes_to_stderr_whole_and_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    problem = "expected one of " + ", ".join(f"choice {number}" for number in range(30))
    show.error(InputError(problem, remedy="Choose one.", file="s.yaml", line=3, column=7, field="llm.backend"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"Error: s.yaml:3:7, field llm.backend: {problem}\n  Choose one.\n"


def test_progress_without_a_terminal_is_a_line_every_five_seconds_at_most() -> None:
    console, clock = piped(), Clock()
    with show.Progress(100, console=console, clock=clock) as shown:
        for second in range(12):
            clock.now = 100.0 + second
            shown.update(done=second * 5, calls=second * 20, failures=second // 4, in_flight=16)
    assert lines(console) == [
        "0/100 events, 0 calls, 0 failed, 16 in flight",
        "25/100 events, 100 calls, 1 failed, 16 in flight, 0:00:15 left",
        "50/100 events, 200 calls, 2 failed, 16 in flight, 0:00:10 left",
        "55/100 events, 220 calls, 2 failed, 16 in flight, 0:00:09 left",
    ]
    assert "\x1b" not in text(console)


def test_time_left_counts_only_what_this_run_has_done() -> None:
    console, clock = piped(), Clock()
    with show.Progress(1000, console=console, clock=clock) as shown:
        shown.update(done=900, calls=0, failures=0, in_flight=0)
        clock.now += 3661 / 9
        shown.update(done=910, calls=40, failures=0, in_flight=8)
    assert lines(console)[-1] == "910/1000 events, 40 calls, 0 failed, 8 in flight, 1:01:01 left"


def test_a_finished_run_has_no_time_left_and_the_last_state_is_printed_once() -> None:
    console, clock = piped(), Clock()
    with show.Progress(2, console=console, clock=clock) as shown:
        shown.update(done=1, calls=4, failures=0, in_flight=4)
        clock.now += 1
        shown.update(done=2, calls=8, failures=0, in_flight=0)
    assert lines(console) == [
        "1/2 events, 4 calls, 0 failed, 4 in flight",
        "2/2 events, 8 calls, 0 failed, 0 in flight",
    ]


def test_progress_on_a_terminal_is_one_live_bar() -> None:
    console, clock = terminal(), Clock()
    with show.Progress(20_000, console=console, clock=clock) as shown:
        shown.update(done=0, calls=0, failures=0, in_flight=0)
        clock.now += 60
        shown.update(done=12_345, calls=123_456, failures=17, in_flight=64)
    last = text(console).replace("\r", "\n").splitlines()[-2]
    assert "12345/20000 events" in last
    assert "123456 calls, 17 failed, 64 in flight, 0:00:37 left" in last
