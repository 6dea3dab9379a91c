"""Prints what an evaluation is to be read with: published numbers beside ours, and what an audit of it has found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simengine.cli.show import PADDING, in_chunks
from simengine.measure.audit import Audit
from simengine.measure.compare import Paired
from simengine.measure.permutation import Compared
from simengine.scenario.published import Beside
from simengine.scenario.versus import Versus
from simengine.scenario.wording import counted


def published(rows: Sequence[Beside], title: str = "", console: Console | None = None) -> None:
    """Print a published table with our values under its own; a star marks what cannot be compared, and why."""
    if not rows:
        return
    console = console or Console()
    metrics = list(dict.fromkeys(_metric(row) for row in rows))
    table = Table(title=f"{title}ours under the numbers of {rows[0].source}", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("published as")
    table.add_column("ours")
    for metric in metrics:
        table.add_column(metric, justify="right")
    whys = list(dict.fromkeys(row.not_comparable for row in rows if row.not_comparable))
    by_name: dict[str, dict[str, Beside]] = {}
    for row in rows:
        by_name.setdefault(row.name, {})[_metric(row)] = row
    for name, cells in by_name.items():
        one = next(iter(cells.values()))
        star = "*" * (whys.index(one.not_comparable) + 1) if one.not_comparable else ""
        texts = [_cell(cells.get(metric)) for metric in metrics]
        table.add_row(Text(f"{name}{star}"), Text(one.ranker or "-"), *texts)
    console.print(table)
    for at, why in enumerate(whys):
        console.print(Text(f"{'*' * (at + 1)} not comparable: {why}"), soft_wrap=True)


def versus(rows: Sequence[Versus], console: Console | None = None) -> None:
    """Print how the later variants differ from the first, by paired intervals; of rankings NDCG at the last cut-off.

    Columns that do not fit the width go to a further table of the same rows.
    """
    console = console or Console()
    tables: dict[tuple[str, str], list[Versus]] = {}
    for row in rows:
        tables.setdefault((row.stage, row.strategy), []).append(row)
    for (stage, strategy), found in tables.items():
        title = f"Stage {stage}, {strategy}: less the variant {found[0].first}, over the users of both"
        for table in _versus_tables(found, console.width):
            console.print(Text(title), soft_wrap=True)
            console.print(table)


def _versus_tables(found: Sequence[Versus], width: int) -> Iterator[Table]:
    metrics = list(dict.fromkeys((it.metric, it.k) for row in found for it in row.metrics))
    cuts = [k for metric, k in metrics if metric == "ndcg" and k is not None]
    shown = {
        metric if k is None else f"{metric}@{k}": (metric, k)
        for metric, k in ([("ndcg", max(cuts))] if cuts else metrics)
    }
    names = [row.variant for row in found]
    counts = [str(max((it.n for it in row.metrics), default=0)) for row in found]
    cells = []
    for row in found:
        by_metric = {(it.metric, it.k): it for it in row.metrics}
        cells.append({head: _difference(by_metric.get(metric)) for head, metric in shown.items()})
    taken = max(map(len, (*names, "variant"))) + max(map(len, (*counts, "n"))) + 2 * PADDING + 1
    for chunk in in_chunks(list(shown), cells, width - taken):
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("variant", no_wrap=True)
        for head in ("n", *chunk):
            table.add_column(head, justify="right")
        for name, count, cell in zip(names, counts, cells, strict=True):
            table.add_row(Text(name), count, *(cell[head] for head in chunk))
        yield table


def _difference(found: Paired | None) -> str:
    if found is None:
        return "-"
    return f"{found.difference:+.4f}" + ("" if math.isnan(found.low) else f"\n[{found.low:+.4f}, {found.high:+.4f}]")


def compared(found: Mapping[str, Sequence[Compared]], title: str = "", console: Console | None = None) -> None:
    """Print how each ranker differs from the agents, user by user, in NDCG at the greatest cut-off."""
    console = console or Console()
    for stage, rows in found.items():
        k = max((row.k for row in rows if row.metric == "ndcg" and row.k is not None), default=None)
        shown = [row for row in rows if (row.metric, row.k) == ("ndcg", k)]
        if not shown:
            continue
        name = f"{title}{stage}: difference from {shown[0].reference} in NDCG@{k}, over {counted(shown[0].n, 'user')}"
        table = Table(title=name, title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column("ranker")
        for column in ("difference", "interval", "p", "p (Holm)"):
            table.add_column(column, justify="right")
        for row in shown:
            interval = f"[{_number(row.low, '+.3f')}, {_number(row.high, '+.3f')}]"
            numbers = (_number(row.p, ".4f"), _number(row.p_holm, ".4f"))
            table.add_row(Text(row.ranker), _number(row.difference, "+.4f"), Text(interval), *numbers)
        console.print(table)


def audits(
    found: Mapping[str, Audit], title: str = "", told: set[str] | None = None, console: Console | None = None
) -> None:
    """Print the findings of the audits of an evaluation, a paragraph each; nothing where there are none.

    ``told`` are the findings that were printed before, of other variants on the same data: they are not printed again.
    """
    console = console or Console()
    told = set() if told is None else told
    for stage, audit in found.items():
        new = [finding.text for finding in audit.findings if finding.text not in told]
        told.update(new)
        if not new:
            continue
        count = f"{counted(len(new), 'finding')} in {counted(audit.cases, 'test case')}"
        again = "" if len(new) == len(audit.findings) else ", beside those above"
        console.print(Text(f"{title}audit of {stage}: {count}{again}"))
        for text in new:
            console.print(Text(f"  - {text}"), soft_wrap=True)


def _metric(row: Beside) -> str:
    return row.metric if row.k is None else f"{row.metric}@{row.k}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def _cell(row: Beside | None) -> str:
    if row is None:
        return ""
    if row.value is None or math.isnan(row.value):
        return f"{row.published:.4f}\n-"
    return f"{row.published:.4f}\n{row.value:.4f}\n[{row.low:.3f}, {row.high:.3f}]"
