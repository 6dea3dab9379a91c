"""Running, resuming and replaying: what each gives to the one engine loop, and what it makes of the outcome."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import structlog

from simengine import llm
from simengine.data import Dataset
from simengine.errors import InputError, LogError, RunStopped
from simengine.kernel import Restored
from simengine.llm import CallStore, LanguageModel, LLMSettings
from simengine.llm.backends.endpoint import is_portable, is_portable_url
from simengine.llm.layers.inherit import Parent
from simengine.runlog import Comparer, Header, Provenance, Reader, Writer
from simengine.scenario.drive import Observer, drive
from simengine.scenario.folder import Folder
from simengine.scenario.person import Company, Person, with_person
from simengine.scenario.report import Report, make_report
from simengine.scenario.schema import Scenario, read
from simengine.scenario.setup import Setup
from simengine.scenario.tools import tools_of
from simengine.scenario.yamlfile import dump

log = structlog.get_logger("simengine")

KEY_VARIABLE = "SIMENGINE_API_KEY"
URL_VARIABLE = "SIMENGINE_BASE_URL"
"""What stands in a run's scenario for an API key, or an address with a login, that was given in plain text."""

_MAY_CHANGE = (
    f"what may change is name, data.path, {', '.join(f'llm.{name}' for name in sorted(LLMSettings.OUTCOME_NEUTRAL))}, "
    "llm.roles.*.mode, engine.window, engine.on_error, and k and rankers of rank and bias stages"
)
_PACKAGES = ("simengine", "aiohttp", "msgspec", "networkx", "numpy", "openai")


@dataclass(frozen=True)
class Finished:
    """A finished run: its folder and its report."""

    path: Path
    report: Report


async def run(
    scenario: Scenario,
    plain: Mapping[str, Any],
    *,
    data: Dataset | None = None,
    out: Path | None = None,
    reuse: Sequence[Path] = (),
    backend: LanguageModel | None = None,
    environ: Mapping[str, str] = os.environ,
    observe: Observer | None = None,
    interruptible: bool = False,
    person: Person | None = None,
) -> Finished:
    """Run a scenario into a new folder. ``plain`` is the scenario as plain data, kept in the folder.

    ``data`` stands in for the data set that the scenario names, ``backend`` for its own model. ``reuse`` are folders of
    other runs, whose answers serve deterministic calls (temperature 0) in place of the model; ``person`` speaks in a
    stage `chat`. Raises :class:`InputError` before anything is made, and :class:`RunStopped`, with the command that
    resumes, where the run was stopped.
    """
    if person is None and with_person(scenario):
        raise InputError(
            "a person speaks in the stage `chat`, and nobody is asked here",
            field="stages",
            remedy="talk in the terminal: simengine chat SCENARIO",
        )
    setup = Setup.of(scenario, data)
    setup.check()
    chosen = backend or llm.make_backend(scenario.llm, environ)
    sources = [Folder.of(path).calls for path in reuse]
    folder = Folder.new(scenario.name, out)
    with folder.held(), ExitStack() as opened:
        stores = [opened.enter_context(CallStore(path, read_only=True)) for path in sources]
        folder.scenario.write_text(dump(portable(plain)), encoding="utf-8")
        writer = Writer(folder.events, setup.header, provenance(scenario.llm.limits.concurrency))
        return await go_on(setup, folder, writer, chosen, [], (), observe, interruptible, stores, person=person)


async def resume(
    path: Path,
    sets: Sequence[str] = (),
    *,
    data: Dataset | None = None,
    repair: bool = False,
    backend: LanguageModel | None = None,
    environ: Mapping[str, str] = os.environ,
    observe: Observer | None = None,
    interruptible: bool = False,
    person: Person | None = None,
) -> Finished:
    """Go on with a run that was stopped or killed; an answer that is in its journal is not asked for again.

    Refuses with :class:`LogError`, naming the difference, where scenario, data, prompts or schema have changed; and a
    log that is damaged in the middle, unless ``repair`` says to take it up before the damage. Where a ``person`` would
    have to speak and there is none, the run stops again.
    """
    folder = Folder.of(path)
    with folder.held():
        with Reader(folder.events, repair=repair) as reader:
            scenario, _ = read(folder.scenario, sets)
            setup = Setup.of(scenario, data)
            same(reader.header, setup, folder)
            history = [line.restored() for line in reader]
        setup.check()
        if reader.end is not None:
            return await _report_again(setup, folder, history)
        if reader.torn is not None:
            log.warning("torn tail cut", file=str(folder.events), line=reader.torn)
        chosen = backend or llm.make_backend(scenario.llm, environ)
        writer = Writer.again(
            folder.events, sum=reader.sum, size=reader.size, events=reader.events, failed=reader.failed
        )
        with ExitStack() as opened:
            parent = _parent(reader.provenance, opened)
            return await go_on(
                setup, folder, writer, chosen, history, sets, observe, interruptible, parent=parent, person=person
            )


def _parent(made: Provenance, opened: ExitStack) -> Parent | None:
    """The journal of the run that this one was forked from, as long as it is there: else its calls are made anew."""
    if made.parent is None:
        return None
    try:
        journal = opened.enter_context(CallStore(Path(made.parent) / "calls.sqlite", read_only=True))
    except LogError as error:
        log.warning("the parent's journal is not there: its calls are asked anew", parent=made.parent, why=str(error))
        return None
    return Parent(journal, made.retry_failed)


async def go_on(
    setup: Setup,
    folder: Folder,
    writer: Writer,
    backend: LanguageModel,
    history: list[Restored],
    sets: Sequence[str],
    observe: Observer | None,
    interruptible: bool,
    reuse: Sequence[CallStore] = (),
    parent: Parent | None = None,
    person: Person | None = None,
) -> Finished:
    """Drive a setup to its end behind ``history``, into the writer's log; ``parent`` is the run it was forked from."""
    company = Company(writer, person)
    try:
        with CallStore(folder.calls) as store, _batches_told(store):
            stack = llm.build(
                setup.scenario.llm,
                store,
                backend=backend,
                reuse=reuse,
                parent=parent,
                tools=tools_of(setup, company.speak),
            )
            driven = await drive(
                setup,
                stack,
                company,
                history=history,
                tick=writer.flush,
                observe=observe,
                interruptible=interruptible,
                stopping=company.leave,
            )
            writer.end()
            report = make_report(setup, folder, store, driven)
    except RunStopped as stopped:
        told = (f"--set={_without_secrets(entry, setup.scenario)}" for entry in sets)
        command = ["chat"] if with_person(setup.scenario) else ["run", "--resume"]
        again = shlex.join(["simengine", *command, str(folder.path), *told])
        stopped.remedy = f"{stopped.remedy}\n  Go on with: {again}".strip()
        raise
    finally:
        writer.close()
    return Finished(folder.path, report)


@contextmanager
def _batches_told(store: CallStore) -> Iterator[None]:
    """Where the run stops, say which batches of calls go on without it."""
    try:
        yield
    except RunStopped as stopped:
        if batches := store.outstanding():
            stopped.remedy = (
                f"{stopped.remedy}\n  At the server these batches go on: {', '.join(batches)}. A resumed run collects "
                "their answers, and pays for none of them twice."
            ).strip()
        raise


async def _report_again(setup: Setup, folder: Folder, history: list[Restored]) -> Finished:
    """The report of a log that goes to the run's end: the run was killed before it was written."""
    if folder.report.is_file():
        raise InputError("this run is finished", file=str(folder.path), remedy="replay it, or start a new run")
    with CallStore(folder.calls, read_only=True) as store, Reader(folder.events) as reader:
        driven = await drive(setup, llm.replay(store), Comparer(reader), history=history)
        return Finished(folder.path, make_report(setup, folder, store, driven))


def same(logged: Header, setup: Setup, folder: Folder) -> None:
    """Refuse to go on with a log that something else was written by."""
    changed = [f"the {name}" for name in logged.changes(setup.header)]
    if not changed:
        return
    fields = ", ".join(_parted(read(folder.scenario)[0].semantic(), setup.scenario.semantic(), ""))
    problem = f"{', '.join(changed)} changed since this run was made"
    raise LogError(
        f"{problem}: {fields}" if fields else problem,
        file=str(folder.path),
        remedy=f"restore what it was made with, or start a new run; {_MAY_CHANGE}",
    )


def _parted(one: Any, other: Any, path: str) -> Iterator[str]:
    """The fields, dotted, in which two scenarios differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            yield from _parted(one.get(name), other.get(name), f"{path}.{name}".removeprefix("."))
    elif one != other:
        yield path


def portable(data: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario's data as a run keeps it: paths absolute, so that it can be resumed from anywhere, and no secret."""
    kept = {key: dict(value) if isinstance(value, dict) else value for key, value in data.items()}
    if "path" in kept["data"]:
        kept["data"]["path"] = _absolute(kept["data"]["path"])
    if kept["data"].get("format") == "audience":
        items = kept["data"]["items"]
        kept["data"]["items"] = {**items, "path": _absolute(items["path"])}
    for field, (_, variable) in _secrets(kept.get("llm") or {}).items():
        kept["llm"][field] = variable
    if kept.get("method", {}).get("store"):
        kept["method"]["store"] = _absolute(kept["method"]["store"])
    if kept.get("prompts"):
        kept["prompts"] = {name: _absolute(path) for name, path in kept["prompts"].items()}
    return kept


def _absolute(path: str) -> str:
    return str(Path(path).resolve())


def _secrets(settings: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The fields of a model's settings that hold a secret in plain text: each with the text and what is told instead.

    No file and no console may show a key, or an address that has a password or a key in it.
    """
    key, url = settings.get("api_key") or "", settings.get("base_url") or ""
    found = {}
    if not is_portable(key):
        found["api_key"] = key, f"${{{KEY_VARIABLE}}}"
    if not is_portable_url(url):
        found["base_url"] = url, f"${{{URL_VARIABLE}}}"
    return found


def _without_secrets(entry: str, scenario: Scenario) -> str:
    """An entry for ``--set`` with variables in place of what no console may show."""
    field = entry.partition("=")[0].strip()
    for name, (secret, variable) in _secrets(scenario.llm.model_dump(include={"api_key", "base_url"})).items():
        if field in ("llm", f"llm.{name}"):
            entry = entry.replace(secret, variable)
    return entry


def provenance(concurrency: int, parent: Path | None = None, retry_failed: bool = False) -> Provenance:
    """How the log of a run comes about, here and now."""
    packages = {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(
        date=date,
        packages=packages,
        concurrency=concurrency,
        parent=None if parent is None else str(parent),
        retry_failed=retry_failed,
    )
