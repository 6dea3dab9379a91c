"""The commands (run, check, estimate, trace and others): each calls one function and prints what came of it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from simengine import scenario as scenarios
from simengine.cli import beside, live, show
from simengine.cli.chat import chat
from simengine.cli.compare import compare
from simengine.cli.data import data
from simengine.cli.decay import decay
from simengine.cli.export import export
from simengine.cli.trace import trace
from simengine.errors import Divergence, InputError, RunStopped, SimengineError
from simengine.scenario.check import Plan, plan
from simengine.scenario.dependencies import Dependencies
from simengine.scenario.drive import Observer, Snapshot
from simengine.scenario.estimate import estimate as estimated
from simengine.scenario.propagation import has_plantings
from simengine.scenario.wording import counted

T = TypeVar("T")

INTERRUPTED = 130

BEFORE, RUNNING, AFTER = "Before a run", "Running", "What came of it"
STATUS = (
    "Exit status: 0 where all went well; 1 where a run stopped, a replay differs, or a log is damaged or does not fit; "
    "2 where what was given is wrong: an option, a scenario, data, a path that is no run; 130 where it was interrupted."
)

app = typer.Typer(
    help="Re-enact recommender-system interactions with language-model agents.",
    epilog=STATUS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Sets = Annotated[list[str], typer.Option("--set", metavar="A.B=C", help="Lay a value over the scenario; repeatable.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario's YAML file.")]


@app.callback(invoke_without_command=True)
def simengine(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Re-enact recommender-system interactions with language-model agents."""
    if show_version:
        print(f"simengine {version('simengine')}")
        raise typer.Exit


@app.command(rich_help_panel=BEFORE)
def check(
    file: ScenarioFile,
    sets: Sets = [],  # noqa: B006
    dependencies: Annotated[bool, typer.Option(help="Say how much can run side by side.")] = False,
) -> None:
    """Validate a scenario and its data, and say what would run."""
    for name, (scenario, _) in scenarios.read_all(file, sets).items():
        if name:
            print(f"variant {name}")
        _print_plan(plan(scenario, dependencies=dependencies))


@app.command(rich_help_panel=BEFORE)
def estimate(file: ScenarioFile, sets: Sets = []) -> None:  # noqa: B006
    """Say what a run would cost: calls, tokens, dollars.

    A sample of the events is played out with the embedded rules; no model is asked.
    """
    for name, (scenario, _) in scenarios.read_all(file, sets).items():
        if name:
            print(f"variant {name}")
        show.estimated(estimated(scenario))


@app.command(rich_help_panel=BEFORE)
def schema() -> None:
    """Print the JSON schema of scenarios, for editors."""
    print(json.dumps(scenarios.ScenarioFile.model_json_schema(), indent=2))


@app.command(rich_help_panel=RUNNING)
def run(
    file: Annotated[Path | None, typer.Argument(metavar="SCENARIO", help="A scenario's YAML file.")] = None,
    sets: Sets = [],  # noqa: B006  (typer reads the default, nothing changes it)
    out: Annotated[Path | None, typer.Option(help="The folder to make; default replays/<name>.")] = None,
    reuse: Annotated[
        list[Path], typer.Option(metavar="RUN", help="Take answers at temperature 0 from another run; repeatable.")
    ] = [],  # noqa: B006
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with an unfinished run.")] = None,
    repair: Annotated[bool, typer.Option(help="With --resume: take a damaged log up before the damage.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell of each wait, retry and learned limit.")] = False,
) -> None:
    """Run a scenario, or go on with a run that was stopped."""
    if (file is None) == (resume is None) or (resume is not None and out is not None) or (repair and resume is None):
        raise InputError(
            "say either a scenario or --resume RUN",
            remedy="simengine run SCENARIO [--out FOLDER], or simengine run --resume RUN [--repair]",
        )
    if verbose:
        live.log_to_stderr(logging.INFO)
    if resume is not None and scenarios.has_variants(resume):
        with _Shown() as shown:
            many = asyncio.run(
                scenarios.resume_many(resume, sets, repair=repair, observe=shown.variant, interruptible=True)
            )
        _print_many(*many)
    elif resume is not None:
        with _Shown() as shown:
            finished = asyncio.run(
                scenarios.resume(resume, sets, repair=repair, observe=shown.observe, interruptible=True)
            )
        _print_run(finished)
    else:
        assert file is not None
        reads = scenarios.read_all(file, sets)
        with _Shown() as shown:
            if list(reads) == [""]:
                one = scenarios.run(*reads[""], out=out, reuse=reuse, observe=shown.observe, interruptible=True)
                _print_run(asyncio.run(one))
            else:
                all_of_them = scenarios.run_many(reads, out=out, reuse=reuse, observe=shown.variant, interruptible=True)
                _print_many(*asyncio.run(all_of_them))


@app.command(rich_help_panel=RUNNING)
def replay(folder: RunFolder, sets: Sets = []) -> None:  # noqa: B006
    """Execute a run again without a model call, and compare it with its log.

    Answers come from the journal of the run; the first event that differs is shown.
    """
    with _Shown() as shown:
        replayed = asyncio.run(scenarios.replay(folder, sets, observe=shown.observe))
    extent = "" if replayed.finished else " (the run is unfinished: compared as far as it goes)"
    compared = f"{counted(replayed.events, 'event')}, {counted(replayed.calls, 'model call')}"
    print(f"identical: {compared}, hash {replayed.hash}{extent}")


@app.command(rich_help_panel=RUNNING)
def fork(
    folder: RunFolder,
    sets: Sets = [],  # noqa: B006
    at: Annotated[str | None, typer.Option(metavar="EVENT", help="Keep what comes before this event.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for calls that failed.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The folder of the new run.")] = None,
) -> None:
    """Run again with something changed, and pay only for what that reaches.

    From the start, or from an event on (--at), before which everything stays as it was.
    """
    with _Shown() as shown:
        one = scenarios.fork(
            folder, sets, at=at, retry_failed=retry_failed, out=out, observe=shown.observe, interruptible=True
        )
        finished = asyncio.run(one)
    _print_run(finished)


app.command(rich_help_panel=RUNNING)(chat)
app.add_typer(data, name="data", rich_help_panel=BEFORE)
app.command(rich_help_panel=AFTER)(trace)
app.command(rich_help_panel=AFTER)(compare)
app.command(rich_help_panel=AFTER)(decay)
app.add_typer(export, name="export", rich_help_panel=AFTER)


def main() -> None:
    """The program's entry: errors become one message on stderr and an exit status, never a traceback."""
    live.log_to_stderr(logging.WARNING)
    try:
        app()
    except RunStopped as stopped:
        show.error(stopped)
        sys.exit(INTERRUPTED if "signal" in stopped.where else 1)
    except Divergence as divergence:
        _print_divergence(divergence)
        sys.exit(1)
    except SimengineError as error:
        show.error(error)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("stopped at once; what was answered is in the journal, and the run can be resumed", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:  # a full disk or a closed pipe behind what is printed
        print(f"cannot print: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _print_run(finished: scenarios.Finished) -> None:
    report = finished.report
    print(f"model: {report.model}")
    show.results_table(report.results, empty=_nothing_ranked(finished.path))
    show.recovered(report.recovered)
    _print_beside(report)
    _print_counts(report)
    for note in report.notes:
        print(f"note: {note}")
    print(f"{_extent(report)}, hash {report.hash}")
    _print_figures(finished.path)
    print(f"run: {finished.path}")


def _nothing_ranked(folder: Path) -> str:
    """What stands in place of results: where preferences were planted, how to measure what became of them."""
    return (
        f"To see how far the preferences spread: simengine decay {folder}" if has_plantings(folder) else "No results."
    )


def _extent(report: scenarios.Report) -> str:
    """How many events and calls a run has, and how many of the calls another run has paid for."""
    calls, reused = sum(report.costs.calls.values()), report.costs.reused
    asked = f" ({reused} reused, {calls - reused} asked anew)" if reused else ""
    return f"{counted(report.events, 'event')}, {counted(calls, 'call')}{asked}"


def _print_beside(report: scenarios.Report, title: str = "", told: set[str] | None = None) -> None:
    beside.compared(report.compared, title)
    beside.published(report.published, title)
    beside.audits(report.audit, title, told)


def _print_counts(report: scenarios.Report) -> None:
    show.failures(report.failures)
    show.skipped(report.skipped)
    show.spent(report.costs)
    for task, count in report.asked_again.items():
        print(f"asked again, as the reply could not be used: {count} x {task}")
    for text, count in report.over_limit.items():
        print(f"longer than asked for: {count} x {text}")
    if report.schedule:
        stale, lost = report.schedule["stale"], report.schedule["lost"]
        print(f"batch schedule: {counted(stale, 'stale read')}, {counted(lost, 'lost write')}")


def _print_many(common: Path, report: scenarios.ManyReport) -> None:
    show.results_table(report.results(), empty=_nothing_ranked(common))
    beside.versus(report.versus)
    told: set[str] = set()
    for name, one in report.variants.items():
        _print_beside(one, f"{name}: ", told)
    for name, one in report.variants.items():
        print(f"variant {name}: {_extent(one)}, hash {one.hash}")
        _print_counts(one)
    _print_figures(common)
    print(f"runs: {common}")


def _print_figures(folder: Path) -> None:
    """Name what was drawn into a folder, where something was."""
    drawn = sorted(path.name for path in folder.glob("*.png"))
    if drawn:
        print(f"figures: {', '.join(drawn)}")


class _Shown:
    """A live line that begins with the first snapshot, and says at the end how long it took, where all went well."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._line: live.LiveLine | None = None

    def variant(self, name: str) -> Observer:
        """Begin anew, for the next variant."""
        self._end()
        print(f"variant {name}", file=sys.stderr)
        return self.observe

    def observe(self, now: Snapshot) -> None:
        if self._line is None:
            self._line = live.LiveLine()
            self._line.__enter__()
        self._line.update(now)

    def __enter__(self) -> _Shown:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._end()
        if error is None:
            print(f"took {timedelta(seconds=round(time.monotonic() - self._began))}", file=sys.stderr)

    def _end(self) -> None:
        if self._line is not None:
            self._line.__exit__()
            self._line = None


def _print_plan(found: Plan) -> None:
    sizes = f"{counted(found.users, 'user')}, {counted(found.items, 'item')}"
    print(f"{found.name}: {sizes}, {counted(found.interactions, 'interaction')} to re-enact")
    for stage in found.stages:
        least = "" if stage.least_calls == stage.most_calls else f"{stage.least_calls} to "
        print(f"stage {stage.name}: {counted(stage.events, 'event')}, {least}{counted(stage.most_calls, 'call')}")
    if found.dependencies is not None:
        print(_dependencies(found.dependencies))
    for note in found.notes:
        print(f"note: {note}")
    print("the scenario is valid")


def _dependencies(found: Dependencies) -> str:
    """How much can run side by side, and what keeps an interaction waiting."""
    batches = f" in batches of {found.batch}" if found.batch else ""
    waits = "; one waits for what earlier batches wrote, never for its own batch" if found.batch else ""
    return (
        f"dependencies of {counted(found.events, 'interaction')}{batches}: critical path {found.critical_path}, "
        f"widest level {found.widest}, mean parallelism {found.parallelism:.2f}{waits}"
    )


def _print_divergence(divergence: Divergence) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    where: dict[str, Any] = divergence.where
    console.print(f"differs: event {where.get('event')}, record {where.get('record')}, agent {where.get('agent')}")
    console.print(f"  expected: {where.get('expected')!r}")
    console.print(f"  found:    {where.get('found')!r}")
    console.print(f"  {divergence.remedy}")


if __name__ == "__main__":
    main()
