"""One turn of a talk on the recommender's side: plan, use the tools, reply, be judged, and all again while rejected."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from simengine.kernel import Agent, Context, Outcome, Version
from simengine.llm.prompts import Slot
from simengine.llm.replies.decision import Decision
from simengine.llm.replies.lines import one_line
from simengine.llm.task import Task
from simengine.methods.interec import reply
from simengine.methods.interec.bus import Bus, Candidates, Record, Snapshot
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.memory import accept
from simengine.methods.interec.plan import Plan, Step, refuse
from simengine.methods.interec.profile import Profile, with_profile
from simengine.methods.interec.results import Fetched, Narrowed, Rows
from simengine.methods.interec.settings import InteRecSettings
from simengine.methods.interec.table import ItemTable
from simengine.methods.interec.tasks import CRITIC, PLAN, REPLY, STEP, Planned
from simengine.methods.interec.workshop import carry_out
from simengine.methods.turn import Asker, remember, tell

PLANNED, REPLIED, JUDGED = "plan", "reply", "verdict"
"""The kinds of the messages that an agent leaves: a plan and what came of it, a reply, the critic's verdict on both."""
BUS, TRACKER = "bus", "tracker"
"""Slots of a conversation's venue: the candidates and the records of the last attempt."""
STEPS = 5
"""Calls that the step-by-step way may make for one attempt."""


@dataclass(frozen=True)
class Desk:
    """What a recommender works with: its settings, a model to ask, the catalogue, what tells its run from others."""

    settings: InteRecSettings
    asker: Asker
    table: ItemTable
    said: Mapping[str, str]


class Heard(msgspec.Struct, frozen=True):
    """What a user says in a turn at a venue, and the message that says it; at most ``k`` items may be recommended."""

    venue: Agent
    number: int
    text: str
    message: str
    k: int


class Answer(msgspec.Struct, frozen=True):
    """What the agent says: the text, the items recommended (ids of the data set), the message that says both."""

    text: str
    items: tuple[str, ...]
    message: str


class Exchange:
    """One turn of one conversation. It keeps what the attempts of this turn share, and is gone when the turn is over.

    The bus begins anew with each attempt, the tracker keeps all of them. The exchange enters the dialogue, and what
    was learnt of the user the profile, only where the critic accepts or there is none (section 3.4): a verdict that
    cannot be read accepts nothing, and advises nothing that one could plan again by.
    """

    def __init__(
        self,
        desk: Desk,
        context: Context,
        heard: Heard,
        shown: Mapping[str, Slot],
        profile: Profile,
        because: Sequence[str | Version],
    ) -> None:
        self._desk = desk
        self._context = context
        self._heard = heard
        self._shown = shown
        self._known = profile
        self._learnt = Profile()
        self._because = list(because)
        self._at = Snapshot()
        self._first = 0  # of the tracker's records, the first of this attempt
        self._plan = Plan()
        self._advice = ""

    async def run(self) -> Answer | None:
        """What is said to the user; none where no reply could be had."""
        answer: Answer | None = None
        for number in range(1, self._desk.settings.reflection + 2):
            name = str(number)
            self._begin_anew()
            await self._act(name)
            message = self._report(number)
            said = await self._reply(number, message)
            if said is None:
                return answer  # what was said before, and rejected, is better than nothing
            answer = said
            if not self._desk.settings.reflection:
                break
            verdict = await self._context.unit(f"critic/{name}", partial(self._judge, answer=answer))
            if not verdict.ok:
                return answer
            judged = self._told(JUDGED, number, {"accepted": verdict.value.yes, "advice": verdict.value.explanation})
            self._because += [answer.message, judged]
            if verdict.value.yes:
                break
            self._advice = verdict.value.explanation
        else:
            return answer
        if answer is not None:
            self._accept(answer)
        return answer

    # -- what the attempts are made of ------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        self._at = Snapshot(records=self._at.records)
        self._first = len(self._at.records)
        self._learnt, self._plan = Profile(), Plan()

    async def _act(self, name: str) -> None:
        """Plan and use the tools: all at once, or step by step until something is fetched."""
        if self._desk.settings.planning == "plan_first":
            planned = await self._context.unit(f"plan/{name}", partial(self._ask, task=PLAN))
            await self._follow(name, planned, whole=True)
            return
        for step in range(1, STEPS + 1):
            planned = await self._context.unit(f"step/{name}.{step}", partial(self._ask, task=STEP))
            if not await self._follow(f"{name}.{step}", planned, whole=False) or self._fetched() is not None:
                break
        if self._at.candidates != Candidates():
            await self._use(f"{name}.fetch", Plan(steps=(Step("fetch", json.dumps({"n": self._heard.k})),)))

    async def _follow(self, name: str, planned: Outcome[Planned], *, whole: bool) -> bool:
        """Carry out what was planned, or track why that cannot be; whether there is something to go on from."""
        failure = planned.failure
        if failure is not None:
            self._refuse("", Fault("unreadable", f"no plan can be read in the reply ({failure.reason})"))
            return False
        said = planned.value
        if said.fault is not None:
            self._refuse(said.text, said.fault)
            return True
        self._learnt = self._learnt.merged(said.profile)
        steps = said.plan.steps if whole else said.plan.steps[:1]
        profile = self._known.merged(self._learnt)
        told = with_profile(msgspec.structs.replace(said.plan, steps=steps), profile, self._desk.table)
        plan = bounded(told, self._heard.k)
        if plan.steps:
            await self._use(name, plan)
        thought = self._plan.thought or plan.thought
        self._plan = Plan(thought, (*self._plan.steps, *plan.steps))
        return bool(plan.steps)

    async def _use(self, name: str, plan: Plan) -> None:
        at, desk = self._at, self._desk

        async def use(inner: Context) -> Snapshot:
            return await carry_out(inner, desk.asker, plan, at, desk.said)

        self._at = (await self._context.unit(f"use/{name}", use)).value

    def _refuse(self, text: str, fault: Fault) -> None:
        bus = Bus(len(self._desk.table), self._at)
        refuse(text, fault, bus)
        self._at = bus.snapshot()

    async def _ask(self, context: Context, task: Task[Planned]) -> Planned:
        slots = {
            **self._shown,
            "profile": str(self._known),
            "advice": self._advice,
            "tracker": tuple(map(line, self._at.records if task is PLAN else self._records())),
            "limit": str(STEPS),
        }
        return await self._desk.asker.ask(context, task, slots)

    async def _reply(self, attempt: int, because: str) -> Answer | None:
        """The reply goes by the results of look-ups and fetches alone; what else the tools did it does not see."""
        records = self._records()
        slots = {
            **self._shown,
            "results": tuple(str(it.result) for it in records if isinstance(it.result, Fetched | Rows)),
            "problems": tuple(f"{it.tool}: {it.output}" for it in records if not it.ok),
            "limit": str(self._desk.settings.reply_words),
        }

        async def write(inner: Context) -> str:
            return await self._desk.asker.ask(inner, REPLY, slots)

        written = await self._context.unit(f"reply/{attempt}", write)
        if not written.ok:
            return None
        fetched = self._fetched()
        items = tuple(it.item for it in fetched.items) if fetched else ()
        text = one_line(written.value)
        self._because.append(because)
        message = self._told(REPLIED, attempt, {"text": text, "items": list(items)})
        return Answer(text, items, message)

    async def _judge(self, context: Context, answer: Answer) -> Decision:
        slots = {
            **self._shown,
            "plan": reply.write(self._plan),
            "tracker": tuple(map(line, self._records())),
            "reply": answer.text,
        }
        return await self._desk.asker.ask(context, CRITIC, slots)

    # -- what is left of them ---------------------------------------------------------------------------------------

    def _report(self, attempt: int) -> str:
        """The plan with what its tools did goes into the log, bus and tracker into the venue's slots."""
        records, venue = self._records(), self._heard.venue
        body = {
            "thought": self._plan.thought,
            "steps": [{"tool": it.tool, "input": json.loads(it.input)} for it in self._plan.steps],
            "work": list(map(_work, records)),
        }
        message = self._told(PLANNED, attempt, body)
        remember(self._context, venue, BUS, msgspec.to_builtins(self._at.candidates), because=[message])
        remember(self._context, venue, TRACKER, msgspec.to_builtins(self._at.records), because=[message])
        return message

    def _accept(self, answer: Answer) -> None:
        heard = self._heard
        because = (heard.message, answer.message)
        accept(self._context, heard.venue, (heard.text, answer.text), because, self._learnt)

    def _told(self, kind: str, attempt: int, body: Mapping[str, object]) -> str:
        """A message of the venue's, who is the recommender, with turn and attempt."""
        venue = self._heard.venue
        said = {"turn": self._heard.number, "attempt": attempt, **body}
        return tell(self._context, venue, venue, kind, said, because=list(self._because))

    def _records(self) -> tuple[Record, ...]:
        """What the tools did in this attempt."""
        return self._at.records[self._first :]

    def _fetched(self) -> Fetched | None:
        """What this attempt fetched last."""
        found = [it.result for it in self._records() if isinstance(it.result, Fetched)]
        return found[-1] if found else None


def bounded(plan: Plan, k: int) -> Plan:
    """The plan with no fetch of more than ``k`` items."""
    return msgspec.structs.replace(plan, steps=tuple(_bounded(step, k) for step in plan.steps))


def line(record: Record) -> str:
    """A record of the tracker as prompts show it."""
    came = f"error {record.code}: {record.output}" if record.code else one_line(record.output)
    return f"{record.tool} {record.input}: {record.before} -> {record.after} candidates; {came}"


def _work(record: Record) -> dict[str, object]:
    """What a message tells of one use of a tool; ``cut`` says which were kept of more than there may be."""
    told = {"tool": record.tool, "before": record.before, "after": record.after, "code": record.code}
    cut = record.result.cut if isinstance(record.result, Narrowed) else ""
    return {**told, "cut": cut} if cut else told


def _bounded(step: Step, k: int) -> Step:
    if step.tool != "fetch":
        return step
    return Step(step.tool, json.dumps({"n": min(json.loads(step.input)["n"], k)}))
