"""Probes: at chosen times every user is asked whether it holds the planted preferences; the asking changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import Field

from simengine.kernel import Context, Event
from simengine.llm.task import PROBE
from simengine.methods.method import Handler
from simengine.methods.planting import START_PHASE
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import tell
from simengine.world import user

ANSWER = "probe"
"""The kind of the message that holds an answer."""
_BEHIND_ROWS = math.inf  # behind the interactions of its time


class ProbeSettings(StudySettings):
    """When users are asked: at ``start`` (behind what is planted there), at times of the data's clock, at the ``end``.

    A time stands behind all interactions of that time.
    """

    at: tuple[Literal["start", "end"] | int | float, ...] = Field(default=("end",), min_length=1)


class Probe:
    """The questions of one stage: to every user, of every planted preference, at every time."""

    def __init__(self, name: str, settings: ProbeSettings, ground: Ground) -> None:
        self._name = name
        self._settings = settings
        self._ground = ground
        self._slot = ground.method.known_by["user"]
        kind = f"{name}.ask"
        self.handlers: Mapping[str, Handler] = {kind: self.ask}
        self.calls: Mapping[str, tuple[int, int]] = {kind: (1, 1)}

    def events(self, phase: int) -> Iterator[Event]:
        """One event per time, user and preference; a time counts in the stage before."""
        dataset = self._ground.dataset
        times = dataset.train.time.tolist()
        first, last = min(times, default=0), max(times, default=0)
        found = []
        for at in dict.fromkeys(self._settings.at):
            time = first if at == "start" else last if at == "end" else at
            assert not isinstance(time, str)
            stands = START_PHASE if at == "start" else phase if at == "end" else phase - 1
            for place, name in enumerate(dataset.users):
                for number, statement in enumerate(self._ground.plant.statements):
                    data: dict[str, Any] = {"stage": self._name, "user": name, "statement": number, "at": at}
                    found.append(
                        Event(
                            id=f"{self._name}/{at}/{name}/{number}",
                            kind=f"{self._name}.ask",
                            order=(stands, time, _BEHIND_ROWS, place, self._name, number),
                            time=time,
                            reads=(user(name),),
                            data={**data, "preference": statement.preference},
                        )
                    )
        yield from sorted(found, key=lambda event: event.order)

    async def ask(self, context: Context) -> None:
        """The user answers from what it says of itself, and from nothing else."""
        await context.unit("probe", partial(self._ask, data=context.event.data))

    async def _ask(self, context: Context, data: Mapping[str, Any]) -> None:
        who = user(data["user"])
        mine = await context.read(who, self._slot, by=who)
        slots = {"memory": mine.value, "preference": data["preference"]}
        answer = await self._ground.asker.ask(context, PROBE, slots)
        body = {"holds": answer.yes, "explanation": answer.explanation}
        tell(context, who, "venue:probe", ANSWER, body, because=[mine])
