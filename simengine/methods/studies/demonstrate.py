"""Generating requests with the plans that serve them, as demonstrations and for imitation (sections 3.3 and 3.5)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import NonNegativeInt, PositiveInt, model_validator

from simengine.errors import InputError
from simengine.kernel import Context, Event
from simengine.llm.prompts import Slot
from simengine.llm.task import Task
from simengine.methods.interec import cards, dialogues, generate, reply
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.demonstrations import Demonstrations
from simengine.methods.interec.dialogues import Written
from simengine.methods.interec.generate import DIALOGUES, INPUT_FIRST, NO_TOOLS, OUTPUT_FIRST, WAYS
from simengine.methods.interec.memory import USER
from simengine.methods.interec.tasks import PLAN, Planned
from simengine.methods.method import Handler
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import tell

EXAMPLES = 3
"""Requests, or talks of our own writing, that are shown to whoever writes another (section 3.5)."""
ITEMS = 5
"""Items of the catalogue that are shown, to be talked about."""


class DemonstrateSettings(StudySettings):
    """How many pairs are to be generated in each way; ``words`` is the length that is asked of a request or a line.

    ``input_first``: a request unlike a few others, then its plan. ``output_first``: a request for each combination of
    tools in turn, then its plan, which must take these. ``dialogues``: a talk and the plan for its last message.
    """

    input_first: NonNegativeInt = 0
    output_first: NonNegativeInt = 0
    dialogues: NonNegativeInt = 0
    words: PositiveInt = 60

    @model_validator(mode="after")
    def _some(self) -> DemonstrateSettings:
        if not any(getattr(self, way) for way in WAYS):
            raise ValueError(f"say how many pairs are to be generated: {', '.join(f'{way}: N' for way in WAYS)}")
        return self


class Demonstrate:
    """The study on one data set: one event a pair. It touches no agent: what comes of it is a message in the log.

    What is shown to whoever writes a request is drawn by the event's stream: examples, and items of the catalogue. A
    plan is made as in a talk, without a critic. One that cannot be carried out, or takes other tools than it was to, is
    a failure of its unit, and makes no pair. Whether a pair is new is asked when pairs are exported.
    """

    def __init__(self, name: str, settings: DemonstrateSettings, ground: Ground) -> None:
        if not isinstance(ground.method, InteRec):
            raise InputError("only the method interec makes plans", field="method.kind", remedy="say `kind: interec`")
        method = ground.method
        self._stage = name
        self._settings = settings
        self._asker = ground.asker
        self._table = method.table
        self._facts = cards.lines(ground.dataset, method.table)
        self._shelf = Demonstrations(method.settings.pairs)
        self._shown = method.settings.demonstrations
        self._time = max(ground.dataset.train.time.tolist(), default=0)
        self.handlers: Mapping[str, Handler] = {
            f"{name}.{INPUT_FIRST}": self.input_first,
            f"{name}.{OUTPUT_FIRST}": self.output_first,
            f"{name}.{DIALOGUES}": self.dialogue,
        }
        self.calls: Mapping[str, tuple[int, int]] = {
            f"{name}.{INPUT_FIRST}": (2, 2),
            f"{name}.{OUTPUT_FIRST}": (2, 2),
            f"{name}.{DIALOGUES}": (1, 1),
        }

    def events(self, phase: int) -> Iterator[Event]:
        """One event a pair, way by way, behind all training interactions."""
        for place, way in enumerate(WAYS):
            for number in range(getattr(self._settings, way)):
                tools = generate.COMBINATIONS[number % len(generate.COMBINATIONS)]
                yield Event(
                    id=f"{self._stage}/{way}/{number + 1}",
                    kind=f"{self._stage}.{way}",
                    order=(phase, self._time, place, number),
                    time=self._time,
                    data={"way": way, "tools": list(tools)} if way == OUTPUT_FIRST else {"way": way},
                )

    # -- what happens -----------------------------------------------------------------------------------------------

    async def input_first(self, context: Context) -> None:
        """A request unlike a few others that there are, and its plan."""
        draws = context.random()
        examples = draws.sample(self._shelf.requests, EXAMPLES)
        slots = {"examples": tuple(examples), **self._wares(draws)}
        await self._planned(context, generate.REQUEST_LIKE, slots)

    async def output_first(self, context: Context) -> None:
        """A request that takes the tools of the event, and its plan."""
        combination = ", ".join(context.event.data["tools"]) or NO_TOOLS
        slots = {"combination": combination, "columns": self._columns(""), **self._wares(context.random())}
        await self._planned(context, generate.REQUEST_FOR, slots)

    async def dialogue(self, context: Context) -> None:
        """A talk like three of ours, with the plan for what the user says last."""
        draws = context.random()
        examples = draws.sample(dialogues.handmade(), EXAMPLES)
        slots = {"examples": tuple(examples), "columns": self._columns(""), **self._wares(draws)}
        written = await context.unit("dialogue", partial(self._write, slots=slots))
        if not written.ok:
            return
        talk = written.value
        own = [line for line in talk.dialogue if line.startswith(USER)]
        columns = self._columns(" ".join([*own, talk.request]))
        # no call has asked for this plan alone, so the log holds what the prompt would have shown
        near = await self._near(context, talk.request)
        shown = {"dialogue": talk.dialogue, "columns": columns, "demonstrations": near}
        self._tell(context, talk.request, talk.planned, shown)

    async def _planned(self, context: Context, task: Task[str], slots: Mapping[str, Slot]) -> None:
        invented = await context.unit("request", partial(self._invent, task=task, slots=slots))
        if not invented.ok:
            return
        request = invented.value
        slots = generate.asking(request, (), self._columns(request), await self._near(context, request))
        planned = await context.unit("plan", partial(self._plan, slots=slots))
        if planned.ok:
            self._tell(context, request, planned.value, {})

    async def _invent(self, context: Context, task: Task[str], slots: Mapping[str, Slot]) -> str:
        return await self._asker.ask(context, task, {**slots, "limit": str(self._settings.words)})

    async def _plan(self, context: Context, slots: Mapping[str, Slot]) -> Planned:
        planned = await self._asker.ask(context, PLAN, slots)
        generate.require(planned, context.event.id, context.event.data.get("tools"))
        return planned

    async def _write(self, context: Context, slots: Mapping[str, Slot]) -> Written:
        written = await self._asker.ask(context, generate.TALK, {**slots, "limit": str(self._settings.words)})
        generate.require(written.planned, context.event.id)
        return written

    # -- what is shown, and what is left ----------------------------------------------------------------------------

    def _wares(self, draws: random.Random) -> dict[str, Slot]:
        """Some items of the catalogue, and what is known of each."""
        places = draws.sample(range(len(self._table)), min(ITEMS, len(self._table)))
        titles, facts = (tuple(of[place] for place in places) for of in (self._table.titles, self._facts))
        return {"titles": titles, "facts": facts}

    def _columns(self, request: str) -> tuple[str, ...]:
        return tuple(map(str, self._table.describe(request)))

    async def _near(self, context: Context, request: str) -> tuple[str, ...]:
        return await self._shelf.near(context, self._asker, request, self._shown)

    def _tell(self, context: Context, request: str, planned: Planned, shown: Mapping[str, Any]) -> None:
        """Put the pair into the log, as a message that nobody is to read."""
        venue = f"venue:{context.event.id}"
        plan = json.loads(reply.write(planned.plan, planned.profile))
        body = {"way": context.event.data["way"], "request": request, "plan": plan, **shown}
        tell(context, venue, venue, generate.DEMONSTRATION, body, because=[])
