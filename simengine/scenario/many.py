"""Runs the variants of a scenario: a folder each under a common one, and one report over all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from simengine.errors import InputError, LogError
from simengine.llm import LanguageModel
from simengine.measure import Result, side_by_side
from simengine.runlog import Reader
from simengine.scenario.drive import Observer
from simengine.scenario.folder import Folder
from simengine.scenario.report import Report
from simengine.scenario.running import Finished, resume, run
from simengine.scenario.schema import Read, Scenario
from simengine.scenario.yamlfile import dump, tree, validate

VARIANTS = "variants.yaml"


class ManyReport(msgspec.Struct, frozen=True):
    """The reports of all variants, as the common ``report.json`` holds them."""

    variants: dict[str, Report]

    def results(self) -> list[Result]:
        """All results, each ranker under its variant's name; one that every variant found alike stands there once."""
        return side_by_side({name: report.results for name, report in self.variants.items()})


async def run_many(
    reads: Mapping[str, Read],
    *,
    out: Path | None = None,
    backend: LanguageModel | None = None,
    observe: Callable[[str], Observer | None] = lambda _: None,
    interruptible: bool = False,
) -> tuple[Path, ManyReport]:
    """Run each variant into its folder, one after the other. ``observe`` gives each variant's observer."""
    name = next(iter(reads.values()))[0].name
    common = Folder.new(name, out).path
    (common / VARIANTS).write_text(dump({name: data for name, (_, data) in reads.items()}), encoding="utf-8")
    return common, await _go(common, reads, backend, observe, interruptible)


async def resume_many(
    common: Path,
    *,
    backend: LanguageModel | None = None,
    observe: Callable[[str], Observer | None] = lambda _: None,
    interruptible: bool = False,
) -> tuple[Path, ManyReport]:
    """Go on with a folder of variants: finished ones stay, an unfinished one goes on, the rest is run."""
    root = tree(common / VARIANTS)
    assert isinstance(root.value, dict)
    reads = {name: validate(node, Scenario) for name, node in root.value.items()}
    return common, await _go(common, reads, backend, observe, interruptible)


async def _go(
    common: Path,
    reads: Mapping[str, Read],
    backend: LanguageModel | None,
    observe: Callable[[str], Observer | None],
    interruptible: bool,
) -> ManyReport:
    reports: dict[str, Report] = {}
    for name, (scenario, data) in reads.items():
        path = common / name
        seen: dict[str, Any] = {"backend": backend, "observe": observe(name), "interruptible": interruptible}
        if not path.exists():
            finished = await run(scenario, data, out=path, **seen)
        elif is_finished(path):
            finished = Finished(path, read_report(path))
        else:
            finished = await resume(path, **seen)
        reports[name] = finished.report
    report = ManyReport(reports)
    (common / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    return report


def has_variants(path: Path) -> bool:
    """Whether a folder is that of a scenario with variants."""
    return (path / VARIANTS).is_file()


def is_finished(path: Path) -> bool:
    """Whether a run's log goes to its end and its report is written."""
    folder = Folder.of(path)
    with Reader(folder.events) as reader:
        for _ in reader:
            pass
    return reader.end is not None and folder.report.is_file()


def read_report(path: Path) -> Report:
    """The report of a finished run."""
    folder = Folder.of(path)
    try:
        return msgspec.json.decode(folder.report.read_bytes(), type=Report)
    except FileNotFoundError:
        raise InputError(
            "this run has no report, so it is not finished", file=str(path), remedy="resume it first"
        ) from None
    except msgspec.DecodeError as error:
        raise LogError(
            f"the report cannot be read: {error}", file=str(folder.report), remedy="resume or replay the run"
        ) from error
