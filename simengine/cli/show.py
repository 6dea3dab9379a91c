"""What the command line prints: tables of results, costs, counts of failures, errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simengine.errors import SimengineError
from simengine.measure import Result
from simengine.measure.recovery import Recovered
from simengine.scenario.costs import Costs
from simengine.scenario.estimate import Estimate
from simengine.scenario.wording import counted

PADDING = 3
"""Characters between two columns."""

_NAME_WIDTH = 24  # longer names of rankers are folded


def results_table(results: Iterable[Result], console: Console | None = None, empty: str = "No results.") -> None:
    """Print a table for each stage: a row for each ranker, a column for each metric, intervals in brackets below.

    Where a study tells conditions apart, a ranker has a row for each. Columns that do not fit the width go to a further
    table of the same rows, so that nothing is cut; rows that have no column in common stand in tables of their own.
    ``empty`` is said where there are none.
    """
    console = console or Console()
    stages: dict[str, list[Result]] = {}
    for result in results:
        stages.setdefault(result.stage, []).append(result)
    if not stages:
        console.print(Text(empty), soft_wrap=True)
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
    if any(counts.values()):
        console.print(_counted("Failures", counts))
    else:
        console.print(Text("Failures: none"))


def skipped(stages: Mapping[str, Mapping[str, int]], console: Console | None = None) -> None:
    """Print how many test cases of each stage are in no result, by reason; nothing where all are measured."""
    counts = {f"{stage}: {reason}": count for stage, reasons in stages.items() for reason, count in reasons.items()}
    if any(counts.values()):
        (console or Console()).print(_counted("Skipped test cases", counts))


def _counted(title: str, counts: Mapping[str, int]) -> Table:
    """A table of what occurred how often, the commonest first."""
    table = _table(title)
    table.add_column("reason", overflow="fold")
    table.add_column("count", justify="right")
    for count, reason in sorted((-count, reason) for reason, count in counts.items() if count):
        table.add_row(Text(reason), str(-count))
    return table


def spent(costs: Costs, console: Console | None = None) -> None:
    """Print what language models were paid for, and what servers did to requests; nothing where none was asked."""
    console = console or Console()
    spending = costs.spending
    if spending.tokens:
        parts = [counted(spending.tokens, "token")]
        if spending.estimated:
            parts.append(f"those of {spending.estimated} of {counted(spending.calls, 'call')} estimated")
        if costs.cached_tokens:
            parts.append(f"{costs.cached_tokens} from the server's cache")
        if spending.usd:
            parts.append(f"{spending.usd:.4f} USD")
        console.print(Text(f"spent: {', '.join(parts)}"), soft_wrap=True)
    done = {"refused (status 429)": costs.refused, "resent": costs.resent}
    said = [f"{counted(count, 'request')} {what}" for what, count in done.items() if count]
    if costs.cut:
        said.append(f"{counted(costs.cut, 'prompt')} cut by the server (raise its context length)")
    if said:
        console.print(Text(f"server: {', '.join(said)}"), soft_wrap=True)


def estimated(found: Estimate, console: Console | None = None) -> None:
    """Print what a run would come to: a row for each task of a stage, the sums, and what they rest on."""
    console = console or Console()
    table = _table(f"Estimate for {found.plan.name}")
    for name in ("stage", "task", "model"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "prompt\ntokens", "completion\ntokens", "USD"):
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
        models = ", ".join(filter(None, found.unpriced))
        of = f" of {models}" * bool(models)
        return f"cost: unknown without a price{of} (set llm.prices, in dollars per million tokens, by model)"
    least, expected, most = found.usd
    without = f", without {', '.join(found.unpriced)}, of which llm.prices has no price" if found.unpriced else ""
    return f"cost: about {expected:.4f} USD ({least:.4f} to {most:.4f}){without}"


def error(exc: SimengineError, console: Console | None = None) -> None:
    """Print what is wrong, where, and the remedy on stderr, in lines as they are, without a traceback."""
    console = console or Console(stderr=True)
    console.print(Text.assemble(("Error: ", "bold red"), str(exc)), soft_wrap=True)


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False, show_edge=False)


_Row: TypeAlias = tuple[str, str]
"""A ranker, and the condition of a study under which it ranked, empty where there is none."""


def _tables(stage: str, results: Sequence[Result], width: int) -> list[Table]:
    """The tables of a stage: rows that have no column in common stand in tables of their own."""
    rows: dict[_Row, list[Result]] = {}
    for ranker in dict.fromkeys(result.ranker for result in results):
        for result in results:
            if result.ranker == ranker:
                rows.setdefault((ranker, result.group), []).append(result)
    families: list[dict[_Row, list[Result]]] = []
    for row, said in rows.items():
        shared = (family for family in families if _columns(family).keys() & _columns({row: said}).keys())
        family = next(shared, None)
        if family is None:
            families.append(family := {})
        family[row] = said
    return [table for family in families for table in _family_tables(stage, family, width)]


def _family_tables(stage: str, rows: Mapping[_Row, Sequence[Result]], width: int) -> Iterator[Table]:
    """A table, or several with the same rows where its columns do not fit the width."""
    grouped = any(group for _, group in rows)
    cells = {row: {_metric(result): _cell(result) for result in said} for row, said in rows.items()}
    cases = {row: _cases(said) for row, said in rows.items()}
    heads = ("ranker", "condition") if grouped else ("ranker",)
    named = [max(len(head), *(len(row[at]) for row in rows)) for at, head in enumerate(heads)]
    taken = sum(min(length, _NAME_WIDTH) + PADDING for length in named) + max(map(len, (*cases.values(), "n")))
    for chunk in in_chunks(list(_columns(rows)), list(cells.values()), width - taken):
        table = _table(f"Stage {stage}")
        for head in heads:
            table.add_column(head, max_width=_NAME_WIDTH, overflow="fold")
        table.add_column("n", justify="right", no_wrap=True)
        for column in chunk:
            table.add_column(Text(column), justify="right", overflow="fold")
        before = None
        for row, found in cells.items():
            names = [Text(row[0] if row[0] != before else ""), Text(row[1])][: len(heads)]
            table.add_row(*names, cases[row], *(Text(found.get(column, "-")) for column in chunk))
            before = row[0]
        yield table


def _columns(rows: Mapping[_Row, Sequence[Result]]) -> dict[str, None]:
    """The metrics of some rows, in order."""
    return dict.fromkeys(_metric(result) for said in rows.values() for result in said)


def in_chunks(columns: Sequence[str], cells: Sequence[Mapping[str, str]], room: int) -> list[list[str]]:
    """The columns in as few runs as fit ``room`` characters each; a column that is wider alone stands alone."""
    chunks: list[list[str]] = [[]]
    left = room
    for column in columns:
        lines = [column, *(line for row in cells for line in row.get(column, "").split("\n"))]
        needed = max(map(len, lines)) + PADDING
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
