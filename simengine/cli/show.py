"""What the command line prints: progress of a run, tables of results, costs, counts of failures, errors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from rich import box, progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simengine.errors import SimengineError
from simengine.measure import Result
from simengine.measure.recovery import Recovered
from simengine.scenario.costs import Costs
from simengine.scenario.estimate import Estimate

_LINE_EVERY = 5.0  # seconds between two lines of progress where there is no terminal
_NAME_WIDTH = 24  # longer names of rankers are folded
_PADDING = 2  # characters between two columns


class Progress:
    """How far a run is, on stderr: a live bar on a terminal, elsewhere a plain line every few seconds at most.

    Use it as a context manager. ``total`` is the number of events; the time left is reckoned from the first update on,
    so that a resumed run does not count what was there before. ``clock`` gives seconds.
    """

    def __init__(
        self, total: int, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = total
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._start: tuple[float, int] | None = None
        self._printed_at = -math.inf
        self._pending = ""
        self._bar = progress.Progress(
            progress.TextColumn("{task.completed:.0f}/{task.total:.0f} events"),
            progress.BarColumn(bar_width=10),
            progress.TextColumn("{task.fields[state]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("events", total=total, state="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._pending:
            self._print()

    def update(self, done: int, calls: int, failures: int, in_flight: int) -> None:
        """Show events done, model calls made, failures so far and calls in flight."""
        now = self._clock()
        state = f"{calls} calls, {failures} failed, {in_flight} in flight{self._left(now, done)}"
        self._bar.update(self._task, completed=done, state=state)
        if self._console.is_terminal:
            return
        self._pending = f"{done}/{self._total} events, {state}"
        if now - self._printed_at >= _LINE_EVERY:
            self._printed_at = now
            self._print()

    def _left(self, now: float, done: int) -> str:
        if self._start is None:
            self._start = (now, done)
        since, before = self._start
        if done <= before or done >= self._total:
            return ""
        seconds = round((now - since) / (done - before) * (self._total - done))
        return f", {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"

    def _print(self) -> None:
        self._console.print(Text(self._pending), soft_wrap=True)
        self._pending = ""


def results_table(results: Iterable[Result], console: Console | None = None) -> None:
    """Print a table for each stage: a row for each ranker, a column for each metric, intervals in brackets below.

    Columns that do not fit the width go to a further table of the same rows, so that nothing is cut.
    """
    console = console or Console()
    stages: dict[str, list[Result]] = {}
    for result in results:
        stages.setdefault(result.stage, []).append(result)
    if not stages:
        console.print(Text("No results."))
    for stage, rows in stages.items():
        for table in _tables(stage, rows, console.width):
            console.print(table)
            console.print()


def recovered(rows: Sequence[Recovered], console: Console | None = None) -> None:
    """Print what was recovered, a line each; nothing where there is nothing to recover."""
    if not rows:
        return
    table = Table(title="Recovered of the market's ground truth", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("what")
    for name in ("value", "interval", "chance", "n"):
        table.add_column(name, justify="right")
    for row in rows:
        interval = f"[{_digits(row.low)}, {_digits(row.high)}]"
        table.add_row(row.what, _digits(row.value), interval, _digits(row.chance), str(row.n))
    (console or Console()).print(table)


def _digits(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def failures(counts: Mapping[str, int], console: Console | None = None) -> None:
    """Print how often each reason of failure occurred, the commonest first."""
    console = console or Console()
    counted = sorted((-count, reason) for reason, count in counts.items() if count)
    if not counted:
        console.print(Text("Failures: none"))
        return
    table = _table("Failures")
    table.add_column("reason", overflow="fold")
    table.add_column("count", justify="right")
    for count, reason in counted:
        table.add_row(Text(reason), str(-count))
    console.print(table)


def spent(costs: Costs, console: Console | None = None) -> None:
    """Print what language models were paid for, and what servers did to requests; nothing where none was asked."""
    console = console or Console()
    spending = costs.spending
    if spending.tokens:
        parts = [f"{spending.tokens} tokens"]
        if spending.estimated:
            parts.append(f"those of {spending.estimated} of {spending.calls} calls estimated")
        if costs.cached_tokens:
            parts.append(f"{costs.cached_tokens} from the server's cache")
        if spending.usd:
            parts.append(f"{spending.usd:.4f} USD")
        console.print(Text(f"spent: {', '.join(parts)}"), soft_wrap=True)
    done = {"refused (status 429)": costs.refused, "resent": costs.resent}
    said = [f"{count} requests {what}" for what, count in done.items() if count]
    if costs.cut:
        said.append(f"{costs.cut} prompts cut by the server (raise its context length)")
    if said:
        console.print(Text(f"server: {', '.join(said)}"), soft_wrap=True)


def estimated(found: Estimate, console: Console | None = None) -> None:
    """Print what a run would come to: a row for each task of a stage, the sums, and what they rest on."""
    console = console or Console()
    table = _table(f"Estimate for {found.plan.name}")
    for name in ("stage", "task", "model"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "prompt tokens", "completion tokens", "USD"):
        table.add_column(name, justify="right")
    for task in found.tasks:
        amounts = (f"{amount:.0f}" for amount in (task.calls, task.prompt_tokens, task.completion_tokens))
        usd = "-" if task.usd is None else f"{task.usd:.4f}"
        table.add_row(Text(task.stage), Text(task.task), Text(task.model or "-"), *amounts, usd)
    console.print(table)
    calls, prompt, reply = (
        sum(getattr(task, name) for task in found.tasks) for name in ("calls", "prompt_tokens", "completion_tokens")
    )
    least, most = found.calls
    lines = [
        f"calls: about {calls:.0f} ({least} to {most})",
        f"tokens: about {prompt:.0f} of prompts and {reply:.0f} of completions",
        _dollars(found),
        *(f"assumed: {assumption}" for assumption in found.assumptions),
    ]
    if found.failed:
        lines.append(f"note: the rules could not go on in {found.failed} of these events, so some calls are missing")
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def _dollars(found: Estimate) -> str:
    if found.usd is None:
        return "cost: unknown without a price (set llm.prices, in dollars per million tokens, by model)"
    least, expected, most = found.usd
    without = f", without {', '.join(found.unpriced)}, of which llm.prices has no price" if found.unpriced else ""
    return f"cost: about {expected:.4f} USD ({least:.4f} to {most:.4f}){without}"


def error(exc: SimengineError, console: Console | None = None) -> None:
    """Print what is wrong, where, and the remedy on stderr, in lines as they are, without a traceback."""
    console = console or Console(stderr=True)
    console.print(Text.assemble(("Error: ", "bold red"), str(exc)), soft_wrap=True)


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False, show_edge=False)


def _tables(stage: str, results: Sequence[Result], width: int) -> list[Table]:
    cells: dict[str, dict[str, str]] = {}
    for result in results:
        cells.setdefault(result.ranker, {})[_metric(result)] = _cell(result)
    columns = list(dict.fromkeys(_metric(result) for result in results))
    cases = {ranker: _cases([result for result in results if result.ranker == ranker]) for ranker in cells}
    taken = min(max(map(len, (*cells, "ranker"))), _NAME_WIDTH) + _PADDING + max(map(len, (*cases.values(), "n")))
    tables = []
    for chunk in _chunks(columns, cells, width - taken):
        table = _table(f"Stage {stage}")
        table.add_column("ranker", max_width=_NAME_WIDTH, overflow="fold")
        table.add_column("n", justify="right", no_wrap=True)
        for column in chunk:
            table.add_column(Text(column), justify="right", overflow="fold")
        for ranker, row in cells.items():
            table.add_row(Text(ranker), cases[ranker], *(Text(row.get(column, "-")) for column in chunk))
        tables.append(table)
    return tables


def _chunks(columns: Sequence[str], cells: Mapping[str, Mapping[str, str]], room: int) -> list[list[str]]:
    """The columns in as few runs as fit ``room`` characters each; a column that is wider alone stands alone."""
    chunks: list[list[str]] = [[]]
    left = room
    for column in columns:
        lines = [column, *(line for row in cells.values() for line in row.get(column, "").split("\n"))]
        needed = max(map(len, lines)) + _PADDING
        if chunks[-1] and needed > left:
            chunks.append([])
            left = room
        chunks[-1].append(column)
        left -= needed
    return chunks


def _metric(result: Result) -> str:
    return result.metric if result.k is None else f"{result.metric}@{result.k}"


def _cell(result: Result) -> str:
    value = _number(result.value)
    if result.low is None or result.high is None:
        return value
    return f"{value}\n[{_number(result.low)}, {_number(result.high)}]"


def _number(value: float | None) -> str:
    return "n/a" if value is None or math.isnan(value) else f"{value:.4f}"


def _cases(results: Sequence[Result]) -> str:
    """``100``, ``98-100`` where metrics differ in their cases, ``100 x 5`` for five repeats of each case."""
    counts = [result.n for result in results]
    repeats = max(result.repeats for result in results)
    span = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)}-{max(counts)}"
    return span if repeats == 1 else f"{span} x {repeats}"
