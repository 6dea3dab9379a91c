"""Advertising: a draft, three critics, a refined version, and users who say which of the two they prefer (AgentCF)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
from pydantic import PositiveInt

from simengine.data import Case
from simengine.errors import UnitFailed
from simengine.kernel import Agent, Branch, Context, Event, Version, stream
from simengine.llm.prompts import Slot
from simengine.llm.task import (
    ADVERTISING_CRITIQUE,
    ADVERTISING_DRAFT,
    ADVERTISING_JUDGE,
    ADVERTISING_REFINE,
    Task,
)
from simengine.methods.method import Handler
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import Causes, Fit, remember, tell
from simengine.world import Edge, item, user

DRAFT, REFINED = "draft", "refined"
"""The slots of a venue in which the advertisements stand."""
ASPECTS = ("personal", "creative", "attractive")
"""What each of the critics is best at (section C.5)."""
LABELS = ("Advertisement 1", "Advertisement 2")
"""What advertisements are called where they are chosen from: both are of one item, whose title tells nothing."""


class AdvertisingSettings(StudySettings):
    """``items`` are advertised, each to ``judges`` users; fewer where the data have no more.

    The word limits of draft, critique and refined version are those of the paper (section C.5).
    """

    items: PositiveInt = 20
    judges: PositiveInt = 5
    draft_words: PositiveInt = 150
    critique_words: PositiveInt = 40
    refined_words: PositiveInt = 200


class Drafted(msgspec.Struct, frozen=True):
    """A draft: the item's memory, the message that showed it, the advertisement, and the message that told it."""

    memory: Version
    shown: str
    advertisement: Version
    told: str


class Advertising:
    """The study on one data set (sections 3.4.4 and C.5).

    Items are drawn from those with training interactions; an item's judges from the users of test cases who have
    training interactions themselves and did not have the item before their first test. Which of the two advertisements
    a judge sees first goes by turns, within an item and from item to item, so that each order is as frequent.
    """

    def __init__(self, name: str, settings: AdvertisingSettings, ground: Ground) -> None:
        self._stage = name
        self._settings = settings
        self._data = ground.dataset
        self._asker = ground.asker
        self._seed = ground.seed
        self._known_by = ground.method.known_by
        self.handlers: Mapping[str, Handler] = {f"{name}.create": self.create, f"{name}.judge": self.judge}
        critics = len(ASPECTS)
        self.calls: Mapping[str, tuple[int, int]] = {
            f"{name}.create": (2 + critics, 2 + critics),
            f"{name}.judge": (1, 1),
        }

    # -- what there is ----------------------------------------------------------------------------------------------

    def events(self, phase: int) -> Iterator[Event]:
        """The making of each item's advertisements, before its first judge; judges at the times of their test cases.

        The order is by time, making before judging, positions of item and user.
        """
        place = {name: at for at, name in enumerate(self._data.items)}
        place_of_user = {user: at for at, user in enumerate(self._first_cases())}
        first = stream(self._seed, "order", self._stage).randrange(2)
        found = []
        for number, (name, judges) in enumerate(self._drawn()):
            start = min(judge.time for judge in judges)
            found.append(self._making((phase, start, 0, place[name], 0), name))
            for turn, judge in enumerate(judges):
                shown = (DRAFT, REFINED) if (first + number + turn) % 2 else (REFINED, DRAFT)
                order = (phase, judge.time, 1, place[name], place_of_user[judge.user])
                found.append(self._judging(order, name, judge, shown))
        yield from sorted(found, key=attrgetter("order"))

    def _first_cases(self) -> dict[str, Case]:
        """Of each user who has test cases the first, at whose time he judges."""
        first: dict[str, Case] = {}
        for case in self._data.cases:
            first.setdefault(case.user, case)
        return first

    def _drawn(self) -> Iterator[tuple[str, list[Case]]]:
        """The items, each with its judges, as the stage's streams draw them."""
        train = self._data.train
        users = {train.users[at] for at in train.user.tolist()}
        items = {train.items[at] for at in train.item.tolist()}
        cases = [case for name, case in self._first_cases().items() if name in users]
        judges = {
            name: [case for case in cases if name not in case.history] for name in self._data.items if name in items
        }
        eligible = [name for name, found in judges.items() if found]
        drawn = stream(self._seed, "items", self._stage).sample(eligible, min(self._settings.items, len(eligible)))
        for name in drawn:
            number = min(self._settings.judges, len(judges[name]))
            yield name, stream(self._seed, "judges", self._stage, name).sample(judges[name], number)

    def _making(self, order: tuple[Any, ...], name: str) -> Event:
        return Event(
            id=f"{self._stage}/create/{name}",
            kind=f"{self._stage}.create",
            order=order,
            time=order[1],
            writes=(self._venue(name),),
            reads=(item(name),),
            data={"item": name},
        )

    def _judging(self, order: tuple[Any, ...], name: str, judge: Case, shown: Sequence[str]) -> Event:
        who, venue = user(judge.user), self._venue(name)
        return Event(
            id=f"{self._stage}/judge/{name}/{judge.user}",
            kind=f"{self._stage}.judge",
            order=order,
            time=judge.time,
            reads=(who, venue),
            data={"item": name, "user": judge.user, "shown": list(shown)},
            facts=(Edge(who, venue, "attendance", judge.time),),
        )

    # -- what happens -----------------------------------------------------------------------------------------------

    async def create(self, context: Context) -> None:
        """The advertiser writes a draft, critics look at it side by side, and the advertiser writes it anew."""
        drafted = await context.unit("draft", self._draft)
        if not drafted.ok:
            return
        looks = (
            Branch(f"critique/{aspect}", (), partial(self._criticise, aspect=aspect, drafted=drafted.value))
            for aspect in ASPECTS
        )
        suggested = [outcome.value for outcome in await context.together(*looks) if outcome.ok]
        await context.unit("refine", partial(self._refine, drafted=drafted.value, suggested=suggested))

    async def judge(self, context: Context) -> None:
        """A user takes one of an item's two advertisements."""
        await context.unit("judge", self._judge)

    async def _draft(self, context: Context) -> Drafted:
        name, venue = context.event.data["item"], context.event.writes[0]
        memory = await context.read(item(name), self._known_by["item"], by=venue)
        shown = tell(context, memory.agent, venue, "description", None, because=[memory])
        text = await self._asked(context, ADVERTISING_DRAFT, memory, self._settings.draft_words)
        advertisement = remember(context, venue, DRAFT, text, because=[shown])
        return Drafted(memory, shown, advertisement, self._advertised(context, DRAFT, advertisement))

    async def _criticise(self, context: Context, aspect: str, drafted: Drafted) -> tuple[str, str]:
        """A critic's suggestions, and the message that tells them."""
        slots = {"draft": drafted.advertisement.value, "aspect": aspect}
        limit = self._settings.critique_words
        text = await self._asked(context, ADVERTISING_CRITIQUE, drafted.memory, limit, slots)
        because = [drafted.shown, drafted.told]
        return text, tell(context, f"critic:{aspect}", drafted.advertisement.agent, "suggestions", text, because)

    async def _refine(self, context: Context, drafted: Drafted, suggested: Sequence[tuple[str, str]]) -> None:
        if not suggested:
            raise UnitFailed("no critic has suggested anything", reason="no_suggestions", event=context.event.id)
        texts = tuple(text for text, _ in suggested)
        slots: dict[str, Slot] = {"draft": drafted.advertisement.value, "suggestions": texts}
        text = await self._asked(context, ADVERTISING_REFINE, drafted.memory, self._settings.refined_words, slots)
        because: Causes = [drafted.shown, drafted.told, *(message for _, message in suggested)]
        refined = remember(context, drafted.advertisement.agent, REFINED, text, because=because)
        self._advertised(context, REFINED, refined)

    async def _judge(self, context: Context) -> None:
        data, (who, venue) = context.event.data, context.event.reads
        mine = await context.read(who, self._known_by["user"], by=who)
        written = [await context.entries(venue, slot, by=who) for slot in data["shown"]]
        if not all(written):
            raise UnitFailed(
                "there are no two advertisements to judge", reason="no_advertisements", event=context.event.id
            )
        shown = [versions[-1] for versions in written]
        says = [tell(context, venue, who, "advertisement", None, because=[version]) for version in shown]
        slots = {"memory": mine.value, "options": tuple(version.value for version in shown), "titles": LABELS}
        choice = await self._asker.ask(context, ADVERTISING_JUDGE, slots)
        body = {"preferred": data["shown"][choice.index], "explanation": choice.explanation}
        tell(context, who, venue, "verdict", body, because=[mine, *says])

    async def _asked(
        self,
        context: Context,
        task: Task[str],
        memory: Version,
        words: int,
        more: Mapping[str, Slot] | None = None,
    ) -> str:
        """A text about the event's item, of so many words."""
        title = self._data.items[context.event.data["item"]].title
        slots: dict[str, Slot] = {"title": title, "memory": memory.value, "limit": str(words), **(more or {})}
        return await self._asker.ask(context, task, slots, Fit(words, "keep"))

    def _advertised(self, context: Context, kind: str, advertisement: Version) -> str:
        """The advertiser tells what it has written; returns the message's id."""
        sender = f"advertiser:{context.event.data['item']}"
        return tell(context, sender, advertisement.agent, kind, None, because=[advertisement])

    def _venue(self, name: str) -> Agent:
        return f"venue:{self._stage}/{name}"
