"""A method in one file: each user keeps notes and rewrites them after every interaction; items never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveInt

from simengine.data import Case, Dataset, PopularityNegatives
from simengine.kernel import Agent, Context, Event, stream
from simengine.llm.prompts import Slot
from simengine.llm.task import RANK, REFLECT_USER_RIGHT, Task
from simengine.methods import Ranks, ranking
from simengine.methods.catalog import Registered
from simengine.methods.method import Handler, Settings
from simengine.methods.turn import Asker, remember
from simengine.world import Edge, ident, item, kind, user

# The name is what a model is asked to do; the template is ours; the reply has the format of a self-introduction.
NOTE = Task("reflect.user", "note", REFLECT_USER_RIGHT.read, REFLECT_USER_RIGHT.json)


class NotesSettings(Settings):
    """``words``: how long the prompt asks the notes to be."""

    kind: Literal["notes"]
    words: PositiveInt = 60


class Notes:
    """The method on one data set."""

    def __init__(self, settings: NotesSettings, dataset: Dataset, asker: Asker, seed: int) -> None:
        self._settings = settings
        self._data = dataset
        self._asker = asker
        self._seed = seed
        self._negatives = PopularityNegatives(dataset)
        self.handlers: Mapping[str, Handler] = {"interaction": self.interact, ranking.RANKING: self.order}
        self.calls: Mapping[str, tuple[int, int]] = {"interaction": (1, 1), ranking.RANKING: (1, 1)}
        self.known_by: Mapping[str, str] = {"user": "notes", "item": "about"}
        self._cases = {case.user: case for case in dataset.cases}
        self.word_limits: Mapping[tuple[str, str], int] = {("user", "notes"): settings.words}

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """What an agent's slots hold before anything has happened."""
        if kind(agent) == "user":
            return {"notes": self._asker.text("user", {})}
        thing = self._data.items[ident(agent)]
        return {"about": self._asker.text("item", {"title": thing.title, "category": thing.category})}

    def optimize(self, phase: int) -> Iterator[Event]:
        """One event per training interaction: what the user took, beside an item that was left."""
        for row, taken in enumerate(self._data.train):
            name = f"interaction/{taken.user}/{taken.item}/{taken.time}/{taken.occurrence}"
            left = self._negatives.draw(taken.user, stream(self._seed, name, "left"))[0]
            yield Event(
                id=name,
                kind="interaction",
                order=(phase, *self._data.train.order(row)),
                time=taken.time,
                writes=(user(taken.user),),
                reads=(item(taken.item), item(left)),
                data={"user": taken.user, "item": taken.item, "negative": left},
                facts=(Edge(user(taken.user), item(taken.item), "interaction", taken.time),),
                source=True,
            )

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """One event per ranking; a ranking looks at its user and at the candidates."""

        def reads(_: str, case: Case) -> list[Agent]:
            return [user(case.user), *map(item, case.candidates or ())]

        return ranking.events(phase, stage, self._data, reads)

    async def interact(self, context: Context) -> None:
        """The user is shown both items and rewrites the notes; a reply that cannot be read changes nothing."""
        await context.unit("note", self._note)

    async def _note(self, context: Context) -> None:
        data = context.event.data
        who = user(data["user"])
        mine = await context.read(who, "notes", by=who)
        pair = (item(data["item"]), item(data["negative"]))
        shown = [await context.read(agent, "about", by=who) for agent in pair]
        preferred, rejected = (self._data.items[ident(agent)].title for agent in pair)
        slots: dict[str, Slot] = {
            "memory": mine.value,
            "options": tuple(version.value for version in shown),
            "titles": (preferred, rejected),
            "preferred": preferred,
            "rejected": rejected,
            "limit": str(self._settings.words),
        }
        text = await self._asker.ask(context, NOTE, slots)
        remember(context, who, "notes", text, because=[mine, *shown])

    async def order(self, context: Context) -> None:
        """The user puts the candidates in order, shown in an order that the event's stream draws."""
        case = self._cases[context.event.data["user"]]
        await context.unit("rank", partial(self._order, case=case, candidates=ranking.laid_out(context, case)))

    async def _order(self, context: Context, case: Case, candidates: list[Agent]) -> None:
        who = user(case.user)
        mine = await context.read(who, "notes", by=who)
        shown = [await context.read(agent, "about", by=who) for agent in candidates]
        titles = tuple(self._data.items[ident(agent)].title for agent in candidates)
        slots: dict[str, Slot] = {
            "memory": mine.value,
            "options": tuple(version.value for version in shown),
            "titles": titles,
        }
        answer = await self._asker.ask(context, RANK, slots)
        ranking.announce(context, case.user, candidates, answer, because=[mine, *shown])


METHOD = Registered(NotesSettings, Notes, Path(__file__).parent / "prompts")
