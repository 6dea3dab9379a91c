"""AgentCF++: users with two layers of memory in each domain, and interest groups that share what is popular with them.

The paper is arXiv 2502.13843; sections are named where a rule comes from.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from simengine.data import Dataset, Interaction, PopularityNegatives
from simengine.errors import InputError
from simengine.kernel import Agent, Context, Event, Order, Version, stream
from simengine.llm.prompts import Slot
from simengine.llm.task import DOMAIN_CHOOSE, DOMAIN_REFLECT_ITEM, DOMAIN_REFLECT_USER, FUSE_EXTRACT, FUSE_MERGE
from simengine.methods.agentcf import CHOICE, INTERACTION
from simengine.methods.agentcf_rank import described
from simengine.methods.agentcfpp_groups import Groups
from simengine.methods.agentcfpp_memory import SELF, Memories, fused, separate
from simengine.methods.agentcfpp_rank import AgentCFppRanking
from simengine.methods.agentcfpp_settings import AgentCFppSettings
from simengine.methods.agentcfpp_views import Views
from simengine.methods.method import Handler, Ranks
from simengine.methods.ranking import RANKING
from simengine.methods.turn import Asker, Causes, Fit, remember, tell
from simengine.world import Edge, ident, item, kind, user


class Seen(msgspec.Struct, frozen=True):
    """What a user saw and did in one choice: the items' versions, the message that says what was taken, and why."""

    shown: tuple[Version, Version]
    right: bool
    explanation: str
    message: str


class AgentCFpp:
    """The method on one data set.

    A negative is drawn from the domain of the item taken, in proportion to popularity, and stands first (section 3.2).
    A step's updates come one after the other, each from what the one before has written (section 3.3).
    """

    def __init__(self, settings: AgentCFppSettings, dataset: Dataset, asker: Asker, seed: int) -> None:
        self._settings = settings
        self._data = dataset
        self._asker = asker
        self._seed = seed
        self._views = Views(dataset)
        self._memories = Memories(settings, dataset, asker, self._views)
        self._groups = Groups(settings, dataset, asker, self._memories)
        self._ranking = AgentCFppRanking(dataset, asker, self._memories)
        self._negatives = {domain: PopularityNegatives(dataset, domain) for domain in self._memories.domains}
        self._learnt_in: str | None = None
        self.handlers: Mapping[str, Handler] = {
            INTERACTION: self.interact,
            RANKING: self._ranking.handle,
            **self._groups.handlers,
        }
        self.calls: Mapping[str, tuple[int, int]] = {
            INTERACTION: _calls(settings, len(self._memories.domains)),
            RANKING: (1, 1),
            **self._groups.calls,
        }
        self.word_limits: Mapping[tuple[str, str], int] = {
            **{("user", slot): settings.user_words for slot in self._memories.written},
            ("item", "memory"): settings.item_words,
        }
        self.known_by: Mapping[str, str] = {"user": self._memories.known_by, "item": "memory"}

    # -- what there is ----------------------------------------------------------------------------------------------

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """First memories: of an item its title and category, of users and groups nothing (section 3.1)."""
        if kind(agent) == "item":
            thing = self._data.items[ident(agent)]
            return {"memory": self._asker.text("item", {"title": thing.title, "category": thing.category})}
        if kind(agent) == "user":
            return self._memories.initial()
        return self._groups.initial() if kind(agent) == "grouping" else {}

    def optimize(self, phase: int) -> Iterator[Event]:
        """One event per training interaction, and those that form groups between them."""
        train = self._data.train

        def order(row: int) -> Order:
            return (phase, *train.order(row))

        steps = (self._interaction(INTERACTION, row, order(place)) for place, row in enumerate(train))
        if not self._settings.shared:
            return steps
        self._views.add("train", train, order)
        return heapq.merge(steps, self._groups.events(phase, train), key=attrgetter("order"))

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """The rankings of a stage; with ``online`` also the interactions that its targets are.

        Raises :class:`InputError` where targets would be learnt from before another stage ranks them.
        """
        rankings = self._ranking.events(phase, stage)
        return heapq.merge(rankings, self._online(phase, stage), key=attrgetter("order"))

    def _online(self, phase: int, stage: Ranks) -> Sequence[Event]:
        """The targets of a stage as interactions, each behind the rankings of its time."""
        if not self._settings.online:
            return ()
        if self._learnt_in not in (None, stage.name):
            raise InputError(
                f"with `online` targets are learnt from in {self._learnt_in}, and {stage.name} would rank them again",
                field="method.online",
                remedy="keep one stage of rankings, or say `online: false`",
            )
        self._learnt_in = stage.name
        places = ({name: at for at, name in enumerate(names)} for names in (self._data.users, self._data.items))
        users, items = places
        cases = {trial.case.key: trial.case for trial in stage.trials}
        seen: Counter[tuple[str, str, int | float]] = Counter()
        rows = []
        for case in cases.values():
            again = seen[case.user, case.target, case.time]
            seen[case.user, case.target, case.time] += 1
            order = (phase, case.time, users[case.user], items[case.target], again, 0)
            rows.append((order, Interaction(case.user, case.target, case.time, again)))
        rows.sort()
        self._views.add("online", [row for _, row in rows], lambda place: rows[place][0])
        return [self._interaction("online", row, order) for order, row in rows]

    def _interaction(self, name: str, row: Interaction, order: Order) -> Event:
        again = f"/{row.occurrence}" if row.occurrence else ""
        name = f"{name}/{row.user}/{row.item}/{row.time}{again}"
        negative = self._negative(row, name)
        who, taken, left = user(row.user), item(row.item), item(negative)
        return Event(
            id=name,
            kind=INTERACTION,
            order=order,
            time=row.time,
            writes=(who, taken, left),
            reads=self._memories.reads,
            data={"user": row.user, "item": row.item, "negative": negative},
            facts=(Edge(who, taken, "interaction", row.time), Edge(who, left, "exposure", row.time)),
            source=True,
        )

    def _negative(self, row: Interaction, event: str) -> str:
        """The recorded negative, where the data have one; else one of the same domain, drawn by popularity.

        Where the user has had all of the domain that anybody has taken in training, it is drawn by lot from the rest.
        """
        recorded = (self._data.recorded_negatives or {}).get(row)
        if recorded is not None:
            return recorded
        domain = self._data.items[row.item].domain
        random = stream(self._seed, event, "negative")
        drawn = self._negatives[domain].draw(row.user, random)
        own = self._data.own[row.user]
        rest = [] if drawn else [it.id for it in self._data.items.values() if it.domain == domain and it.id not in own]
        if not drawn and not rest:
            raise InputError(
                "there is no item left that could be this user's negative",
                remedy="leave the user or the domain out, or give more items",
                user=row.user,
                domain=domain,
            )
        return drawn[0] if drawn else random.choice(rest)

    # -- one step: inference (section 3.2), then updates (section 3.3) ------------------------------------------------

    async def interact(self, context: Context) -> None:
        """Choose, be told, update; once more, up to the limit, while the choice is wrong."""
        who = context.event.writes[0]
        domain = self._data.items[context.event.data["item"]].domain
        for number in range(1, self._settings.rounds + 1):
            chosen = await context.unit(f"choose/r{number}", self._choose)
            if not chosen.ok:
                return
            seen = chosen.value
            last = seen.right or number == self._settings.rounds
            await context.unit(f"reflect.user/r{number}", partial(self._reflect_user, seen=seen, domain=domain))
            if self._settings.dual:
                await context.unit(f"fuse/r{number}", partial(self._fuse, domain=domain, seen=seen))
            if last:
                context.release(who)
            mine = await context.read(who, self._memories.passed_on(domain), by=who)
            if mine.value:  # else there is nothing that an item could learn
                await context.unit(f"reflect.item/r{number}", partial(self._reflect_item, seen=seen, mine=mine))
            if last:
                return

    async def _choose(self, context: Context) -> Seen:
        """The user takes one of two items and says why."""
        who, pair = self._parties(context)
        recalled = await self._memories.recall(context, who, self._memories.domains_of(pair))
        first, second = [await context.read(agent, "memory", by=who) for agent in pair]
        says = described(context, who, (first, second))
        choice = await self._asker.ask(context, DOMAIN_CHOOSE, {**recalled.slots, **self._shown((first, second), pair)})
        because = [*recalled.because, *says]
        message = tell(context, who, pair[choice.index], CHOICE, choice.explanation, because=because)
        return Seen((first, second), choice.index == 1, choice.explanation, message)

    async def _reflect_user(self, context: Context, seen: Seen, domain: str) -> None:
        """The user learns from both items what it likes and dislikes in this domain (step 1)."""
        who, pair = self._parties(context)
        slot = self._memories.learnt(domain)
        mine = await context.read(who, slot, by=who)
        slots = self._told(seen, seen.shown, pair, domain, mine, self._settings.user_words)
        text = await self._asker.ask(context, DOMAIN_REFLECT_USER, slots, self._user_fit())
        remember(context, who, slot, text, because=[seen.message, mine, *seen.shown])

    async def _fuse(self, context: Context, domain: str, seen: Seen) -> None:
        """What other domains tell of this one joins what the user knows of it (step 2); others then know it too."""
        who, _ = self._parties(context)
        own = await context.read(who, separate(domain), by=who)
        others = [
            (other, version)
            for other in self._memories.domains
            if other != domain and (version := await context.read(who, separate(other), by=who)).value
        ]
        if not own.value and not others:
            return
        extracted = await self._extracted(context, domain, others) if others else ""
        former = await context.read(who, fused(domain), by=who)
        slots: dict[str, Slot] = {
            "domain": domain,
            "memory": former.value,
            "separate": own.value,
            "extracted": extracted,
            "limit": str(self._settings.user_words),
        }
        text = await self._asker.ask(context, FUSE_MERGE, slots, self._user_fit())
        because: Causes = [seen.message, former, own, *(version for _, version in others)]
        remember(context, who, fused(domain), text, because=because)
        found = [await context.read(who, fused(other), by=who) for other in self._memories.domains]
        layers = [version for version in found if version.value]
        remember(context, who, SELF, "\n".join(version.value for version in layers), because=layers)

    async def _extracted(self, context: Context, domain: str, others: Sequence[tuple[str, Version]]) -> str:
        """What the memories of other domains tell of the taste in this one."""
        texts = (self._asker.text("other", {"domain": other, "memory": version.value}) for other, version in others)
        slots: dict[str, Slot] = {"domain": domain, "others": tuple(texts), "limit": str(self._settings.user_words)}
        return (await context.unit("extract", partial(self._asker.ask, task=FUSE_EXTRACT, slots=slots))).value

    async def _reflect_item(self, context: Context, seen: Seen, mine: Version) -> None:
        """The item taken learns whom it attracts, the other whom it does not, from the user's memory as it is now
        (step 3). An item knows itself at latest."""
        _, pair = self._parties(context)
        domain = self._data.items[ident(pair[1])].domain
        shown = [await context.read(agent, "memory", by=agent) for agent in pair]
        words = self._settings.item_words
        fit: Fit[tuple[str, str]] = Fit(words, self._settings.over_limit)
        slots = self._told(seen, shown, pair, domain, mine, words)
        texts = await self._asker.ask(context, DOMAIN_REFLECT_ITEM, slots, fit)
        for agent, text in zip(pair, texts, strict=True):
            remember(context, agent, "memory", text, because=[seen.message, mine, *shown])

    # -- prompts ------------------------------------------------------------------------------------------------------

    def _parties(self, context: Context) -> tuple[Agent, tuple[Agent, Agent]]:
        """The user, and the two items in the order in which they are shown: the negative first."""
        data = context.event.data
        return user(data["user"]), (item(data["negative"]), item(data["item"]))

    def _title(self, agent: Agent) -> str:
        return self._data.items[ident(agent)].title

    def _shown(self, shown: Sequence[Version], pair: Sequence[Agent]) -> dict[str, Slot]:
        return {"options": tuple(version.value for version in shown), "titles": tuple(map(self._title, pair))}

    def _told(
        self, seen: Seen, shown: Sequence[Version], pair: tuple[Agent, Agent], domain: str, mine: Version, limit: int
    ) -> dict[str, Slot]:
        """What a reflection is told: a memory, the items, the choice, and which of them the user really took."""
        rejected, preferred = map(self._title, pair)
        return {
            **self._shown(shown, pair),
            "domain": domain if self._settings.dual else "",
            "memory": mine.value,
            "chosen": preferred if seen.right else rejected,
            "explanation": seen.explanation,
            "preferred": preferred,
            "rejected": rejected,
            "limit": str(limit),
        }

    def _user_fit(self) -> Fit[str]:
        return Fit(self._settings.user_words, self._settings.over_limit)


def _calls(settings: AgentCFppSettings, domains: int) -> tuple[int, int]:
    """The fewest and the most model calls of one step: a choice, the user's memories, the items'."""
    once = 3 + settings.dual
    longer = (2 + settings.dual) * (settings.over_limit == "reask")  # each update may be asked for a shorter text
    return once, (once + (settings.dual and domains > 1) + longer) * settings.rounds
