"""Exports plans as data to train a small model on, from talks and generated pairs (section 3.5 of InteRecAgent)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from simengine.errors import InputError
from simengine.llm import CallStore, Completion
from simengine.llm.calls import Row
from simengine.llm.prompts import PromptBook
from simengine.llm.request import Message
from simengine.methods import prompts
from simengine.methods.interec import generate
from simengine.methods.interec.exchange import JUDGED, PLANNED
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.tasks import PLAN, read_planned
from simengine.runlog import EventLine, Header, Reader
from simengine.scenario.demonstrations import method_of, pair_of
from simengine.scenario.folder import Folder
from simengine.scenario.newfile import refuse_existing, write_lines
from simengine.scenario.schema import Scenario, read

CONVERSATIONS = "conversations"
"""The source of samples beside the ways in which pairs are generated."""

_CALL = re.compile(r"plan(?:/(\d+))?((?:/(?:reask|longer|cut))*)")  # a talk's plans have numbers, the first being 1

_Calls: TypeAlias = list[tuple[str, Row]]
"""Calls for one plan, in their order: how it was asked for again, and the call."""


class Sample(msgspec.Struct, frozen=True):
    """A plan with what it was asked for by; ``domain`` is what the run's data call an item."""

    domain: str
    source: str
    messages: tuple[Message, ...]
    plan: str

    def line(self) -> str:
        """The sample in the form in which chat models are fine-tuned."""
        said = [*self.messages, Message("assistant", self.plan)]
        return json.dumps({"messages": [msgspec.to_builtins(message) for message in said]}, ensure_ascii=False)


class ExportedPlans(msgspec.Struct, frozen=True):
    """What was exported: samples by domain and source; ``repeated`` are those that came before, and were left out."""

    counts: dict[tuple[str, str], int]
    repeated: int


def export_plans(runs: Sequence[Path], out: Path, domains: Sequence[str] = ()) -> ExportedPlans:
    """Write the plans of runs, a line each, in the order of the runs and their logs; of equal ones the first.

    Of a talk a turn gives a sample where its plan was carried out and a critic accepted it, or there is none. A
    generated pair gives one. ``domains`` names the nouns of the runs to take. Raises :class:`InputError` where there is
    no plan, for a domain that no run has, and where ``out`` is there.
    """
    refuse_existing(out)
    opened = {run: read(Folder.of(run).scenario)[0] for run in runs}
    there = list(dict.fromkeys(scenario.data.noun for scenario in opened.values()))
    for domain in domains:
        if domain not in there:
            raise InputError("no run is of this domain", remedy=f"There are {', '.join(there)}.", value=domain)
    samples = [
        sample
        for run, scenario in opened.items()
        if not domains or scenario.data.noun in domains
        for sample in _samples(run, scenario)
    ]
    if not samples:
        raise InputError(
            "there is no plan in these runs that was made as a whole and accepted",
            remedy="Name runs of interec with `converse` stages, planned first, or `demonstrate` stages.",
            file=", ".join(map(str, runs)),
        )
    kept: dict[tuple[tuple[Message, ...], str], Sample] = {}
    for sample in samples:
        kept.setdefault((sample.messages, sample.plan), sample)
    write_lines(out, [sample.line() for sample in kept.values()])
    return ExportedPlans(dict(Counter((it.domain, it.source) for it in kept.values())), len(samples) - len(kept))


def _samples(run: Path, scenario: Scenario) -> Iterator[Sample]:
    folder = Folder.of(run)
    method_of(scenario, run)
    with CallStore(folder.calls, read_only=True) as store:
        asked = {row.key: row for row in store if row.request.task == PLAN.name}
    with Reader(folder.events) as reader:
        for line in reader:
            pair, noun = pair_of(line), scenario.data.noun
            if pair:
                messages = _of_pair(line, pair, asked, reader.header, scenario)
                yield Sample(noun, pair["way"], messages, _written(pair["plan"]))
            else:
                for messages, plan in _of_talk(line, asked):
                    yield Sample(noun, CONVERSATIONS, messages, plan)


def _of_pair(
    line: EventLine, pair: Mapping[str, Any], asked: Mapping[str, Row], header: Header, scenario: Scenario
) -> tuple[Message, ...]:
    """What a generated plan was asked for by; what would have asked for it, where it was written with its talk."""
    if pair["way"] != generate.DIALOGUES:
        return _prompt(_attempts(line, asked)[""])
    book = PromptBook([prompts(scenario.method.kind)], scenario.prompts)
    if book.hashes() != header.prompts:
        raise InputError(
            "the prompts changed since the run was made, so it cannot be told how a plan would have been asked for",
            remedy="Restore them, or export from a new run.",
            event=line.event,
        )
    shown = (tuple(pair[name]) for name in ("dialogue", "columns", "demonstrations"))
    return book.render(PLAN.template, generate.asking(pair["request"], *shown), scenario.data.noun).messages


def _of_talk(line: EventLine, asked: Mapping[str, Row]) -> Iterator[tuple[tuple[Message, ...], str]]:
    """The plans of one turn that were carried out and accepted, with what each was asked for by."""
    bodies: dict[str, dict[str, Any]] = {PLANNED: {}, JUDGED: {}}
    for message in line.messages:
        if message.kind in bodies:
            bodies[message.kind][str(message.body["attempt"])] = message.body
    judged = any(unit.startswith("critic/") for unit in line.units)  # a fork may have got or lost its critic midway
    for attempt, calls in _attempts(line, asked).items():
        if judged:
            accepted = bodies[JUDGED].get(attempt, {}).get("accepted", False)
        else:
            accepted = line.units.get(f"reply/{attempt}") == "ok"
        learnt = _learnt(calls) if line.units.get(f"plan/{attempt}") == "ok" else None
        if accepted and learnt is not None:
            carried_out = bodies[PLANNED][attempt]
            yield _prompt(calls), _written({**carried_out, "profile": msgspec.to_builtins(learnt)})


def _attempts(line: EventLine, asked: Mapping[str, Row]) -> dict[str, _Calls]:
    """The calls of an event for plans, by the number of the attempt; those that ask for one again come behind."""
    found: dict[str, _Calls] = {}
    for path, stamp in line.calls.items():
        call, row = _CALL.fullmatch(path), asked.get(stamp.partition(" ")[0])
        if call is not None and row is not None:
            found.setdefault(call[1] or "", []).append((call[2], row))
    return found


def _prompt(calls: _Calls) -> tuple[Message, ...]:
    """The prompt that was answered in the end, without what was said of an answer that could not be used."""
    return next(row.request.messages for again, row in reversed(calls) if "reask" not in again)


def _learnt(calls: _Calls) -> Profile | None:
    """The profile beside a plan that was read; none where the plan was refused."""
    outcome = calls[-1][1].outcome
    assert isinstance(outcome, Completion), "a unit whose call has failed is not ok"
    planned = read_planned(outcome.text, {})
    return planned.profile if planned.fault is None else None


def _written(plan: Mapping[str, Any]) -> str:
    return json.dumps({name: plan[name] for name in ("thought", "profile", "steps")}, ensure_ascii=False)
