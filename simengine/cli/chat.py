"""The command chat: a person talks in the terminal with the recommender of a scenario, and the talk is a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from simengine import scenario as scenarios
from simengine.cli.terminal import Terminal
from simengine.errors import InputError
from simengine.scenario.folder import Folder
from simengine.scenario.person import read_chat, with_person
from simengine.scenario.wording import counted


def chat(
    what: Annotated[
        Path, typer.Argument(metavar="SCENARIO|RUN", help="A scenario's YAML file, or the folder of a stopped talk.")
    ],
    sets: Annotated[
        list[str], typer.Option("--set", metavar="A.B=C", help="Lay a value over the scenario; repeatable.")
    ] = [],  # noqa: B006
    variant: Annotated[str | None, typer.Option(metavar="NAME", help="Take one of the scenario's variants.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to make; default replays/<name>-chat.")] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Show with each answer how it came about.")] = False,
) -> None:
    """Talk with the recommender of a scenario.

    The method is interec, and its stages give way to a talk with you. The talk is a run: it can be traced, replayed,
    forked, and taken up where it was stopped (simengine chat RUN).
    """
    if what.is_dir():
        if out is not None or variant is not None:
            raise InputError("a talk that is taken up has its folder and its variant", remedy=f"simengine chat {what}")
        scenario = scenarios.read(Folder.of(what).scenario, sets)[0]
        if not with_person(scenario):
            raise InputError(
                "no person speaks in this run", file=str(what), remedy=f"simengine run --resume {what} goes on with it"
            )
        person = Terminal(_model(scenario), steps=steps)
        finished = asyncio.run(scenarios.resume(what, sets, interruptible=True, person=person))
    else:
        scenario, plain = read_chat(what, sets, variant)
        person = Terminal(_model(scenario), steps=steps)
        finished = asyncio.run(scenarios.run(scenario, plain, out=out, interruptible=True, person=person))
    report = finished.report
    turns = sum(map(len, report.talks.values()))
    calls = sum(report.costs.calls.values())
    print(f"{counted(turns, 'turn')}, {counted(calls, 'model call')}, hash {report.hash}")
    print(f"run: {finished.path}")


def _model(scenario: scenarios.Scenario) -> str:
    """What one talks with."""
    said = scenario.llm
    return "rule-based text, not a language model" if said.backend == "lexical" else f"the model {said.model}"
