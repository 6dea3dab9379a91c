"""The Python face: run, resume, fork, replay and more by path, blocking; what asks a model has an awaitable twin."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from simengine.data import Dataset
from simengine.llm import LanguageModel
from simengine.scenario import comparison, forking, replaying, running
from simengine.scenario.check import Plan, plan
from simengine.scenario.opened import Run
from simengine.scenario.propagation import measure_spread, pairs
from simengine.scenario.schema import Scenario, read, read_all
from simengine.scenario.spread import Spread
from simengine.scenario.variants import run_many

T = TypeVar("T")
Sets = Mapping[str, object]


async def run_async(
    scenario: str | Path,
    set: Sets | None = None,
    *,
    data: Dataset | None = None,
    out: str | Path | None = None,
    reuse: Sequence[str | Path | Run] = (),
    model: LanguageModel | None = None,
) -> Run:
    """Run a scenario's YAML file and open what it made.

    ``set`` lays values over it, as in ``{"data.users": 20}``; ``data`` is a data set of one's own (:func:`from_frame`),
    for a scenario that says ``data: {format: frame}``; ``out`` is the folder to make; ``reuse`` are runs whose answers
    at temperature 0 are taken in place of asking again; ``model`` stands in for the scenario's own backend. Raises
    :class:`~simengine.errors.InputError` before anything is made, and :class:`~simengine.errors.RunStopped` where the
    run was stopped, with the way to resume it.
    """
    read_scenario, plain = read(scenario, _entries(set))
    finished = await running.run(
        read_scenario,
        plain,
        data=data,
        out=_path(out),
        reuse=[_folder(run) for run in reuse],
        backend=model,
        interruptible=_in_main_thread(),
    )
    return Run(finished.path)


async def run_variants_async(
    scenario: str | Path, set: Sets | None = None, *, out: str | Path | None = None, model: LanguageModel | None = None
) -> dict[str, Run]:
    """Run every variant of a scenario file; the runs by the names of the variants."""
    reads = read_all(scenario, _entries(set))
    common, _ = await run_many(reads, out=_path(out), backend=model, interruptible=_in_main_thread())
    return {name: Run(common / name) for name in reads}


async def resume_async(
    run: str | Path | Run, set: Sets | None = None, *, data: Dataset | None = None, model: LanguageModel | None = None
) -> Run:
    """Go on with an unfinished run; see :func:`simengine.scenario.running.resume`.

    ``set`` may change what cannot change the outcome, ``{"llm.budget.usd": 9}`` for instance.
    """
    finished = await running.resume(
        _folder(run), _entries(set), data=data, backend=model, interruptible=_in_main_thread()
    )
    return Run(finished.path)


async def fork_async(
    run: str | Path | Run,
    set: Sets | None = None,
    *,
    at: str | None = None,
    retry_failed: bool = False,
    out: str | Path | None = None,
    data: Dataset | None = None,
    model: LanguageModel | None = None,
) -> Run:
    """Run a scenario again with something changed, and pay only for what the change reaches; the new run, opened.

    ``set`` lays values over the scenario of ``run`` as in :func:`run_async`. ``at`` is the id of an event (that of an
    :meth:`Run.events` entry, such as ``interaction/u3/i5/2``): what comes before it is taken over as it is; without it
    the fork goes from the start. Calls that ``run`` has made in the same words keep their outcomes, with
    ``retry_failed`` all but those that failed; ``report.costs.reused`` counts them. ``run`` may be unfinished; ``out``,
    ``data`` and ``model`` are those of :func:`run_async`. Raises :class:`~simengine.errors.InputError`, before anything
    is made, where there is no such event or the change does not leave the events before it as they are, and
    :class:`~simengine.errors.RunStopped` where the fork was stopped.
    """
    finished = await forking.fork(
        _folder(run),
        _entries(set),
        at=at,
        retry_failed=retry_failed,
        out=_path(out),
        data=data,
        backend=model,
        interruptible=_in_main_thread(),
    )
    return Run(finished.path)


async def replay_async(run: str | Path | Run, *, data: Dataset | None = None) -> replaying.Replayed:
    """Execute a run again without a model call and compare it; see :func:`simengine.scenario.replaying.replay`."""
    return await replaying.replay(_folder(run), data=data)


def run(
    scenario: str | Path,
    set: Sets | None = None,
    *,
    data: Dataset | None = None,
    out: str | Path | None = None,
    reuse: Sequence[str | Path | Run] = (),
    model: LanguageModel | None = None,
) -> Run:
    """:func:`run_async`, blocking; also inside a running loop (a notebook), in a thread of its own."""
    return _blocking(run_async(scenario, set, data=data, out=out, reuse=reuse, model=model))


def run_variants(
    scenario: str | Path, set: Sets | None = None, *, out: str | Path | None = None, model: LanguageModel | None = None
) -> dict[str, Run]:
    """:func:`run_variants_async`, blocking."""
    return _blocking(run_variants_async(scenario, set, out=out, model=model))


def resume(
    run: str | Path | Run, set: Sets | None = None, *, data: Dataset | None = None, model: LanguageModel | None = None
) -> Run:
    """:func:`resume_async`, blocking."""
    return _blocking(resume_async(run, set, data=data, model=model))


def fork(
    run: str | Path | Run,
    set: Sets | None = None,
    *,
    at: str | None = None,
    retry_failed: bool = False,
    out: str | Path | None = None,
    data: Dataset | None = None,
    model: LanguageModel | None = None,
) -> Run:
    """:func:`fork_async`, blocking."""
    return _blocking(fork_async(run, set, at=at, retry_failed=retry_failed, out=out, data=data, model=model))


def replay(run: str | Path | Run, *, data: Dataset | None = None) -> replaying.Replayed:
    """:func:`replay_async`, blocking."""
    return _blocking(replay_async(run, data=data))


def decay(
    runs: str | Path | Run | Sequence[str | Path | Run],
    control: str | Path | Run | None = None,
    *,
    data: Dataset | None = None,
) -> Spread:
    """How the preferences that were planted in runs (or folders of variants) travelled and faded.

    Each run is held against its control: the run among them without plantings that it was forked from or that was
    forked from it, else ``control``. ``data`` are those of runs of :func:`from_frame`. The result has all numbers,
    ``to_pandas()`` and ``plot()``. Raises :class:`~simengine.errors.InputError` where nothing was planted.
    """
    several = [runs] if isinstance(runs, (str, Path, Run)) else runs
    found = pairs([_folder(run) for run in several], None if control is None else _folder(control))
    return _blocking(measure_spread(found, data=data))


def compare(first: str | Path | Run, second: str | Path | Run) -> comparison.Comparison:
    """Two runs side by side: results, paired differences with intervals, and where their logs part.

    Of the result, ``results`` are both reports' rows, each ranker under its run's name; ``rows`` have a list of
    ``metrics`` for each stage and strategy that both have: means of ``first`` and ``second``, ``difference`` (second
    less first) with ``low`` and ``high`` over the ``n`` users of both; ``changed`` names what they were made with
    differently; ``parting`` is the first difference of their logs, or ``None``; ``notes`` say what is missing, such as
    differences where the data are not here. Raises :class:`~simengine.errors.InputError` for what is no run's folder.
    """
    return comparison.compare(_folder(first), _folder(second))


def check(scenario: str | Path, set: Sets | None = None, *, dependencies: bool = False) -> Plan:
    """What a scenario would run; see :func:`simengine.scenario.check.plan`."""
    return plan(read_scenario(scenario, set), dependencies=dependencies)


def read_scenario(scenario: str | Path, set: Sets | None = None) -> Scenario:
    """The scenario in a YAML file. Raises :class:`~simengine.errors.InputError` that names all that is wrong."""
    return read(scenario, _entries(set))[0]


def _entries(set: Sets | None) -> list[str]:
    # JSON is YAML with all texts quoted, so that each value is read as what it is. Paths become texts.
    return [f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in (set or {}).items()]


def _path(out: str | Path | None) -> Path | None:
    return None if out is None else Path(out)


def _folder(run: str | Path | Run) -> Path:
    return run.path if isinstance(run, Run) else Path(run)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1, thread_name_prefix="simengine") as pool:
        return pool.submit(asyncio.run, coroutine).result()
