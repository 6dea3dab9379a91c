"""Who speaks in a stage `chat`: somebody who is here; or nobody, where the run stops until somebody takes it up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from simengine.errors import InputError, RunStopped
from simengine.kernel import Committed, Sink
from simengine.llm import Request
from simengine.methods.studies.chat import PERSON
from simengine.scenario.attempts import Attempt, attempts
from simengine.scenario.compose import VARIANTS, composed, variants, without
from simengine.scenario.schema import Read, Scenario
from simengine.scenario.yamlfile import validate, with_sets

CHAT = "stages=[{chat: {}}]"
"""What makes a talk with a person of a scenario, as an entry of ``--set``."""


class Seen(msgspec.Struct, frozen=True):
    """What a person knows when he is to speak: the catalogue that is talked of, and the talk so far.

    ``talk`` are its lines, which begin with ``User: `` or ``Recommender: ``; the last is his own where no reply could
    be had. ``items`` are the titles that the last reply recommended, ``attempts`` how it came about (none where that
    was before the talk was taken up, or is not yet in the log), ``profile`` what was learnt of him, ``left`` how many
    turns there still are.
    """

    noun: str
    size: int
    talk: tuple[str, ...]
    items: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    profile: str
    left: int


class Person(Protocol):
    """Somebody who is here to speak."""

    async def speak(self, seen: Seen) -> str:
        """What he says to it, empty where he says no more."""

    def leave(self) -> None:
        """The run is being stopped: whoever waits in :meth:`speak` is to give up with :class:`RunStopped`."""


class Company:
    """A log's writer, beside which a person hears what is written and is asked to speak. Without one, a run stops."""

    def __init__(self, log: Sink, person: Person | None) -> None:
        self._log = log
        self._person = person
        self._heard: tuple[str, int, tuple[Attempt, ...]] = ("", 0, ())  # venue, turns left behind it, attempts

    def commit(self, record: Committed) -> None:
        """Write a turn down; the person is told of it when he speaks next."""
        self._log.commit(record)
        event = record.event
        if self._person is not None and PERSON in event.writes:
            left = event.data["turns"] - event.data["turn"]
            self._heard = event.writes[0], left, tuple(attempts(note.body for note in record.notes))

    async def speak(self, request: Request) -> str:
        """What the person says to a request; :class:`RunStopped` where nobody is here."""
        if self._person is None:
            return await nobody(request)
        talk, items = (_texts(request, name) for name in ("talk", "items"))
        noun, venue, profile = (str(request.slots[name]) for name in ("noun", "venue", "profile"))
        size, left = (int(str(request.slots[name])) for name in ("size", "left"))
        *told, heard = self._heard
        return await self._person.speak(
            Seen(noun, size, talk, items, heard if told == [venue, left] else (), profile, left)
        )

    def leave(self) -> None:
        """Let the person give up."""
        if self._person is not None:
            self._person.leave()


async def nobody(request: Request) -> str:
    """In the place of a person where there is none."""
    raise RunStopped("a person is to speak here, and nobody is asked", call=request.call)


def _texts(request: Request, slot: str) -> tuple[str, ...]:
    value = request.slots[slot]
    return (value,) if isinstance(value, str) else tuple(value)


def with_person(scenario: Scenario) -> bool:
    """Whether a person is to speak in a scenario."""
    return any(stage.chat is not None for stage in scenario.stages)


def read_chat(path: Path, sets: Sequence[str] = (), variant: str | None = None) -> Read:
    """A scenario of a file as a talk with a person, and its plain data: its stages give way to a stage `chat`.

    ``variant`` names one of the file's; without it the scenario is taken as it stands beside its variants. Raises
    :class:`InputError` where the method does not converse.
    """
    root = composed(path)
    trees = {"": without(root, VARIANTS)} if variant is None else dict(variants(root))
    if (variant or "") not in trees:
        known = ", ".join(filter(None, trees)) or "none"
        raise InputError("there is no such variant", file=str(path), value=variant, remedy=f"its variants: {known}")
    tree = without(trees[variant or ""], "fork")
    scenario, plain = validate(with_sets(tree, sets), Scenario)
    if scenario.method.kind != "interec":
        raise InputError(
            f"the method {scenario.method.kind} does not converse with people",
            file=str(path),
            field="method.kind",
            remedy="name a scenario whose method is interec, such as scenarios/interec.yaml",
        )
    if with_person(scenario):
        return scenario, plain
    return validate(with_sets(tree, [f"name={scenario.name}-chat", CHAT, *sets]), Scenario)
