"""Runs the variants of a scenario: a folder each under a common one, and one report over all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from simengine.errors import InputError, RunStopped
from simengine.llm import LanguageModel
from simengine.measure import Result, side_by_side
from simengine.runlog import Reader
from simengine.scenario.drawing import draw_variants
from simengine.scenario.drive import Observer
from simengine.scenario.folder import Folder
from simengine.scenario.forking import fork
from simengine.scenario.report import Report, read_report
from simengine.scenario.running import portable, resume, run
from simengine.scenario.schema import Read, Scenario
from simengine.scenario.versus import Versus, against_first
from simengine.scenario.yamlfile import dump, tree, validate, with_sets

VARIANTS = "variants.yaml"


class ManyReport(msgspec.Struct, frozen=True):
    """The reports of all variants, and how each differs from the first, as the common ``report.json`` holds them."""

    variants: dict[str, Report]
    versus: list[Versus] = []

    def results(self) -> list[Result]:
        """All results, each ranker under its variant's name; one that every variant found alike stands there once."""
        return side_by_side({name: report.results for name, report in self.variants.items()})


async def run_many(
    reads: Mapping[str, Read],
    *,
    out: Path | None = None,
    reuse: Sequence[Path] = (),
    backend: LanguageModel | None = None,
    observe: Callable[[str], Observer | None] = lambda _: None,
    interruptible: bool = False,
) -> tuple[Path, ManyReport]:
    """Run each variant into its folder, one after the other. ``observe`` gives each variant's observer."""
    name = next(iter(reads.values()))[0].name
    common = Folder.new(name, out).path
    kept = {name: portable(data) for name, (_, data) in reads.items()}
    (common / VARIANTS).write_text(dump(kept), encoding="utf-8")
    return common, await _go(common, reads, (), False, reuse, backend, observe, interruptible)


async def resume_many(
    common: Path,
    sets: Sequence[str] = (),
    *,
    repair: bool = False,
    backend: LanguageModel | None = None,
    observe: Callable[[str], Observer | None] = lambda _: None,
    interruptible: bool = False,
) -> tuple[Path, ManyReport]:
    """Go on with a folder of variants: finished ones stay, an unfinished one goes on, the rest is run.

    ``sets`` and ``repair`` are for those that are not finished; see :func:`~simengine.scenario.running.resume`.
    """
    root = tree(common / VARIANTS)
    assert isinstance(root.value, dict)
    reads = {name: validate(with_sets(node, sets), Scenario) for name, node in root.value.items()}
    return common, await _go(common, reads, sets, repair, (), backend, observe, interruptible)


async def _go(
    common: Path,
    reads: Mapping[str, Read],
    sets: Sequence[str],
    repair: bool,
    reuse: Sequence[Path],
    backend: LanguageModel | None,
    observe: Callable[[str], Observer | None],
    interruptible: bool,
) -> ManyReport:
    reports: dict[str, Report] = {}
    _check_forks(reads)
    for name, (scenario, data) in reads.items():
        path, look = common / name, observe(name)
        try:
            if not path.exists() and scenario.fork is not None:
                done = await fork(
                    common / scenario.fork, changed=(scenario, data), out=path, backend=backend, observe=look,
                    interruptible=interruptible,
                )  # fmt: skip
                reports[name] = done.report
            elif not path.exists():
                done = await run(
                    scenario, data, out=path, reuse=reuse, backend=backend, observe=look, interruptible=interruptible
                )
                reports[name] = done.report
            elif _is_finished(path):
                reports[name] = read_report(path)
            else:
                done = await resume(
                    path, sets, repair=repair, backend=backend, observe=look, interruptible=interruptible
                )
                reports[name] = done.report
        except RunStopped as stopped:
            stopped.remedy = f"{stopped.remedy}\n  or with all variants: simengine run --resume {common}"
            raise
    seed = next(iter(reads.values()))[0].seed
    report = ManyReport(reports, against_first({name: common / name for name in reads}, seed))
    draw_variants(common, {name: one.results for name, one in reports.items()})
    (common / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    return report


def _check_forks(reads: Mapping[str, Read]) -> None:
    """A variant is forked from one that is run before it."""
    before: list[str] = []
    for name, (scenario, _) in reads.items():
        if scenario.fork is not None and scenario.fork not in before:
            known = ", ".join(before) or "none"
            raise InputError(
                "a variant is forked from one that stands before it",
                field=f"variants.{name}.fork",
                value=scenario.fork,
                remedy=f"variants before it: {known}",
            )
        before.append(name)


def has_variants(path: Path) -> bool:
    """Whether a folder is that of a scenario with variants."""
    return (path / VARIANTS).is_file()


def _is_finished(path: Path) -> bool:
    """Whether a run's log goes to its end and its report is written."""
    folder = Folder.of(path)
    with Reader(folder.events) as reader:
        for _ in reader:
            pass
    return reader.end is not None and folder.report.is_file()
