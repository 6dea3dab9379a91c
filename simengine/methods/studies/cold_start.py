"""Cold start: a new item reads what popular ones say of themselves, and users rank it among trained ones (AgentCF)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from pydantic import PositiveInt, model_validator

from simengine.data import Case
from simengine.errors import InputError, UnitFailed
from simengine.kernel import Agent, Context, Event, Version, stream
from simengine.llm.prompts import Slot
from simengine.llm.task import COLD_START_ADAPT, RANK
from simengine.methods.method import Handler
from simengine.methods.ranking import about, announce
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import Fit, remember, tell
from simengine.world import Edge, ident, item, user

COLD, SIMILAR, DISTINCT, WARM = "cold", "similar", "distinct", "warm"
ADAPTED = (SIMILAR, DISTINCT)
CONDITIONS = (COLD, SIMILAR, DISTINCT, WARM)
OTHERS = 9
"""How many trained items stand beside the new one (section 3.4.2)."""
MEMORY = "memory"


class ColdStartSettings(StudySettings):
    """A new item reads ``read`` of the ``pool`` most popular ones, and describes itself in at most ``words`` words."""

    read: PositiveInt = 3
    pool: PositiveInt = 30
    words: PositiveInt = 50

    @model_validator(mode="after")
    def _parts(self) -> ColdStartSettings:
        if self.pool < 2 * self.read:
            raise ValueError("similar and distinct items are to be different ones, so `pool` is at least twice `read`")
        return self


class ColdStart:
    """The study on one data set (sections 3.4.2 and C.3): the target of each test case is taken for a new item.

    Under the condition ``cold`` its memory is only its identity; under ``similar`` and ``distinct`` it has read those
    popular items whose identities are nearest to and farthest from its own, and described itself, once for all users
    whose target it is; under ``warm`` it is the item as training has left it. Each user ranks it under each condition
    among the same trained items, unknown to him, in the same places. Trained are items with training interactions,
    which are counted for popularity too; where fewer than nine are left, there are fewer beside the new one.
    """

    def __init__(self, name: str, settings: ColdStartSettings, ground: Ground) -> None:
        self._stage = name
        self._settings = settings
        self._data = ground.dataset
        self._asker = ground.asker
        self._seed = ground.seed
        self._known_by = ground.method.known_by
        self._popular = self._by_popularity()
        self.handlers: Mapping[str, Handler] = {f"{name}.adapt": self.adapt, f"{name}.rank": self.rank}
        self.calls: Mapping[str, tuple[int, int]] = {f"{name}.adapt": (1, 1), f"{name}.rank": (1, 1)}

    def _by_popularity(self) -> list[str]:
        """The trained items, the most popular first; enough of them that no new item reads one under both conditions.

        Raises :class:`InputError` where there are too few.
        """
        train = self._data.train
        counts = {train.items[at]: count for at, count in Counter(train.item.tolist()).items()}
        trained = sorted((name for name in self._data.items if name in counts), key=lambda name: -counts[name])
        if len(trained) <= 2 * self._settings.read:
            raise InputError(
                f"{len(trained)} items have training interactions, too few for a new one to read "
                f"{self._settings.read} similar ones and as many distinct ones",
                field=f"stages.{self._stage}.read",
                remedy="read fewer, or give more interactions",
            )
        return trained

    # -- what there is ----------------------------------------------------------------------------------------------

    def events(self, phase: int) -> Iterator[Event]:
        """The adaptations of each new item, before the first ranking of it; the rankings at their cases' times.

        The order is by time, adaptations before rankings, positions of item or user, conditions.
        """
        place = {name: at for at, name in enumerate(self._data.items)}
        since: dict[str, int | float] = {}
        for case in self._data.cases:
            since[case.target] = min(case.time, since.get(case.target, case.time))
        found = [
            self._adaptation((phase, time, 0, place[name], number), name, condition)
            for name, time in since.items()
            for number, condition in enumerate(ADAPTED)
        ]
        for at, case in enumerate(self._data.cases):
            shown = self._laid_out(case)
            found += [
                self._ranking((phase, case.time, 1, at, number), case, condition, shown)
                for number, condition in enumerate(CONDITIONS)
            ]
        yield from sorted(found, key=attrgetter("order"))

    def _adaptation(self, order: tuple[Any, ...], name: str, condition: str) -> Event:
        pool = [other for other in self._popular if other != name][: self._settings.pool]
        # items that are equally far are told apart by their place in the pool, which is to say nothing of popularity
        stream(self._seed, "pool", self._stage, name).shuffle(pool)
        return Event(
            id=f"{self._stage}/adapt/{name}/{condition}",
            kind=f"{self._stage}.adapt",
            order=order,
            time=order[1],
            writes=(self._venue(name, condition),),
            reads=tuple(map(item, pool)),
            data={"item": name, "condition": condition},
        )

    def _ranking(self, order: tuple[Any, ...], case: Case, condition: str, shown: list[str]) -> Event:
        who, venue = user(case.user), self._venue(case.target, condition)
        new = {COLD: (), WARM: (item(case.target),)}.get(condition, (venue,))
        return Event(
            id="/".join((self._stage, "rank", case.user, condition, *case.again)),
            kind=f"{self._stage}.rank",
            order=order,
            time=case.time,
            reads=(who, *(item(name) for name in shown if name != case.target), *new),
            data={**about(case), "target": case.target, "condition": condition, "candidates": shown},
            facts=(Edge(who, venue, "attendance", case.time),) if condition in ADAPTED else (),
        )

    def _laid_out(self, case: Case) -> list[str]:
        """The new item among the others, in the order in which the user is shown them under every condition."""
        draws = stream(self._seed, "candidates", self._stage, case.user, *case.again)
        known = self._data.own[case.user]
        pool = [name for name in self._popular if name not in known and name != case.target]
        shown = draws.sample(pool, min(OTHERS, len(pool)))
        shown.insert(draws.randrange(len(shown) + 1), case.target)
        return shown

    # -- what happens -----------------------------------------------------------------------------------------------

    async def adapt(self, context: Context) -> None:
        """A new item reads popular ones and describes itself."""
        await context.unit("adapt", self._adapt)

    async def rank(self, context: Context) -> None:
        """A user puts the new item and the trained ones in order."""
        await context.unit("rank", self._rank)

    async def _adapt(self, context: Context) -> None:
        data, pool, venue = context.event.data, context.event.reads, context.event.writes[0]
        identity = self._identity(data["item"])
        order = await self._asker.nearest(context, identity, [self._identity(ident(agent)) for agent in pool])
        first = order if data["condition"] == SIMILAR else order[::-1]
        slot = self._known_by["item"]
        read = [await context.read(pool[at], slot, by=venue) for at in first[: self._settings.read]]
        says = [tell(context, version.agent, venue, "description", None, because=[version]) for version in read]
        slots: dict[str, Slot] = {
            "memory": identity,
            "options": tuple(version.value for version in read),
            "limit": str(self._settings.words),
        }
        text = await self._asker.ask(context, COLD_START_ADAPT, slots, Fit(self._settings.words, "keep"))
        remember(context, venue, MEMORY, text, because=says)

    async def _rank(self, context: Context) -> None:
        who, candidates = user(context.event.data["user"]), context.event.data["candidates"]
        mine = await context.read(who, self._known_by["user"], by=who)
        shown = [await self._shows(context, who, name) for name in candidates]
        slots: dict[str, Slot] = {
            "memory": mine.value,
            "retrieved": "",
            "history": (),
            "options": tuple(text for text, _ in shown),
            "titles": tuple(self._data.items[name].title for name in candidates),
        }
        answer = await self._asker.ask(context, RANK, slots)
        announce(context, ident(who), list(map(item, candidates)), answer, [mine, *(says for _, says in shown)])

    async def _shows(self, context: Context, who: Agent, name: str) -> tuple[str, str]:
        """What an item says of itself under the event's condition, and the message by which it says so to the user."""
        data = context.event.data
        condition = data["condition"] if name == data["target"] else WARM
        if condition == COLD:
            text = self._identity(name)
            return text, tell(context, self._venue(name, COLD), who, "description", text, because=[])
        version = await (
            context.read(item(name), self._known_by["item"], by=who)
            if condition == WARM
            else self._adapted(context, who, name)
        )
        return version.value, tell(context, version.agent, who, "description", None, because=[version])

    async def _adapted(self, context: Context, who: Agent, name: str) -> Version:
        written = await context.entries(self._venue(name, context.event.data["condition"]), MEMORY, by=who)
        if not written:
            raise UnitFailed(
                "the new item has not described itself", reason="not_adapted", event=context.event.id, item=name
            )
        return written[-1]

    def _identity(self, name: str) -> str:
        thing = self._data.items[name]
        return self._asker.text("item", {"title": thing.title, "category": thing.category})

    def _venue(self, name: str, condition: str) -> Agent:
        """The new item under a condition."""
        return f"venue:{self._stage}/{name}/{condition}"
