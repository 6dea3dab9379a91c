"""AgentCF: users and items learn from each interaction by choosing and reflecting, then rank (arXiv 2310.09233)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from pydantic import PositiveInt

from simengine.data import Case, Dataset, Interaction, PopularityNegatives, RecordedNegatives
from simengine.errors import InputError
from simengine.kernel import Agent, Branch, Context, Event, Version, stream
from simengine.llm.prompts import Slot
from simengine.llm.task import (
    ANALYSE_ITEM,
    ANALYSE_USER,
    CHOOSE,
    RANK,
    REFLECT_ITEM_RIGHT,
    REFLECT_ITEM_WRONG,
    REFLECT_USER_RIGHT,
    REFLECT_USER_WRONG,
    Task,
)
from simengine.methods.method import Handler, Ranks, Settings
from simengine.methods.turn import Asker, Fit, OverLimit, keep, remember, tell
from simengine.world import Edge, ident, item, kind, user

INTERACTION, RANKING = "interaction", "ranking"


class AgentCFSettings(Settings):
    """``rounds``: most rounds of choosing and reflecting in one step (section 2.2.3; the paper's value is 2).

    ``user_words`` and ``item_words`` are the lengths that the prompts ask for (appendix C.1); ``over_limit`` says what
    becomes of longer texts: ``keep`` them (the report counts them), ``reask`` once, or ``cut``. ``update_negative``
    lets the reflection rewrite the negative item's description too, which the paper leaves alone (section 2.2.3).
    ``item_reads: updated`` shows the reflecting item the memory that its user has just written, as the authors' code
    does, and so lets the item wait for the user; ``old`` is the paper's equation 4.
    """

    kind: Literal["agentcf"]
    rounds: PositiveInt = 2
    user_words: PositiveInt = 180
    item_words: PositiveInt = 50
    over_limit: OverLimit = "keep"
    update_negative: bool = False
    item_reads: Literal["old", "updated"] = "old"
    reflection_calls: Literal[1, 2] = 1


class Seen(msgspec.Struct, frozen=True):
    """What a user saw and did in one choice: memory versions, the message that says what was taken, and why."""

    mine: Version
    shown: tuple[Version, Version]
    right: bool
    explanation: str
    message: str


class AgentCF:
    """The method on one data set. Candidates are shown negative first, as the paper has it (appendix B.2)."""

    def __init__(self, settings: AgentCFSettings, dataset: Dataset, asker: Asker, seed: int) -> None:
        self._settings = settings
        self._data = dataset
        self._asker = asker
        self._seed = seed
        recorded = dataset.recorded_negatives is not None
        self._negatives = RecordedNegatives(dataset) if recorded else PopularityNegatives(dataset)
        self.handlers: Mapping[str, Handler] = {INTERACTION: self.interact, RANKING: self.order}
        once = 1 + 2 * settings.reflection_calls
        most = once + 2 * (settings.over_limit == "reask")  # either side may be asked for a shorter text
        self.calls: Mapping[str, tuple[int, int]] = {INTERACTION: (once, most * settings.rounds), RANKING: (1, 1)}
        self.word_limits: Mapping[tuple[str, str], int] = {
            ("user", "short"): settings.user_words,
            ("item", "memory"): settings.item_words,
        }

    # -- what there is ----------------------------------------------------------------------------------------------

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """Short-term memory of a user: a general liking; memory of an item: title and category (section 2.2.1)."""
        if kind(agent) == "user":
            return {"short": self._asker.text("user", {})}
        thing = self._data.items[ident(agent)]
        return {"memory": self._asker.text("item", {"title": thing.title, "category": thing.category})}

    def optimize(self, phase: int) -> Iterator[Event]:
        """One event per training interaction; its negative is drawn here, when the event is issued."""
        train = self._data.train
        for row, interaction in enumerate(train):
            yield self._interaction(interaction, (phase, *train.order(row)))

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """One event per test case, strategy and repeat; the candidates are shuffled by the event's stream."""
        place = {name: at for at, name in enumerate(self._data.users)}
        cases = [case for case in self._data.cases if case.candidates is not None]
        for case in sorted(cases, key=lambda case: (case.time, place[case.user])):
            for strategy in stage.strategies:
                for repeat in range(1, stage.repeats + 1):
                    # -1 lets a live ranking stand before the interactions of its time
                    order = (phase, case.time, -1, place[case.user], stage.name, strategy, repeat)
                    yield self._ranking(stage.name, case, strategy, repeat, order)

    def _interaction(self, row: Interaction, order: tuple[Any, ...]) -> Event:
        again = f"/{row.occurrence}" if row.occurrence else ""
        name = f"{INTERACTION}/{row.user}/{row.item}/{row.time}{again}"
        who, taken = user(row.user), item(row.item)
        negative = self._negative(row, name)
        left = item(negative)
        writes, reads = ((who, taken, left), ()) if self._settings.update_negative else ((who, taken), (left,))
        return Event(
            id=name,
            kind=INTERACTION,
            order=order,
            time=row.time,
            writes=writes,
            reads=reads,
            data={"user": row.user, "item": row.item, "negative": negative},
            facts=(Edge(who, taken, "interaction", row.time), Edge(who, left, "exposure", row.time)),
            source=True,
        )

    def _negative(self, row: Interaction, event: str) -> str:
        if isinstance(self._negatives, RecordedNegatives):
            return self._negatives.of(row)
        drawn = self._negatives.draw(row.user, stream(self._seed, event, "negative"))
        if not drawn:
            raise InputError(
                "there is no item left that could be this user's negative",
                remedy="leave the user out, or give more items",
                user=row.user,
            )
        return drawn[0]

    def _ranking(self, stage: str, case: Case, strategy: str, repeat: int, order: tuple[Any, ...]) -> Event:
        return Event(
            id=f"{stage}/{case.user}/{strategy}/{repeat}",
            kind=RANKING,
            order=order,
            time=case.time,
            reads=(user(case.user), *map(item, case.candidates or ())),
            data={"stage": stage, "user": case.user, "strategy": strategy, "repeat": repeat},
        )

    # -- one step of the optimisation (section 2.2) -----------------------------------------------------------------

    async def interact(self, context: Context) -> None:
        """Choose, be told, reflect on both sides; once more, up to the limit, while the choice is wrong."""
        who, before = user(context.event.data["user"]), None
        for number in range(1, self._settings.rounds + 1):
            chosen = await context.unit(f"choose/r{number}", self._choose)
            if not chosen.ok:
                return
            seen = chosen.value
            before = before or seen.mine
            last = seen.right or number == self._settings.rounds
            reflect = partial(self._reflect_user, seen=seen, first=seen.mine is before, last=last)
            await self._reflect(context, number, seen, Branch(f"reflect.user/r{number}", (who,), reflect))
            if last:
                return

    async def _reflect(self, context: Context, number: int, seen: Seen, mine: Branch[None]) -> None:
        """Both sides reflect, side by side; one after the other where the item is to read what the user has written."""
        who, items = context.event.writes[0], context.event.writes[1:]
        if self._settings.item_reads == "old":
            other = Branch(f"reflect.item/r{number}", items, partial(self._reflect_item, seen=seen))
            await context.together(mine, other)
            return
        await context.together(mine)
        updated = msgspec.structs.replace(seen, mine=await context.read(who, "short", by=who))
        await context.together(Branch(f"reflect.item/r{number}", items, partial(self._reflect_item, seen=updated)))

    async def _choose(self, context: Context) -> Seen:
        """The user takes one of two items and says why (equations 1 and 2)."""
        who, pair = self._parties(context)
        mine = await context.read(who, "short", by=who)
        shown = (await context.read(pair[0], "memory", by=who), await context.read(pair[1], "memory", by=who))
        says = [
            tell(context, agent, who, "description", None, because=[version])
            for agent, version in zip(pair, shown, strict=True)
        ]
        choice = await self._asker.ask(context, CHOOSE, self._shown(mine, shown, pair))
        message = tell(context, who, pair[choice.index], "choice", choice.explanation, because=[mine, *says])
        return Seen(mine, shown, choice.index == 1, choice.explanation, message)

    async def _reflect_user(self, context: Context, seen: Seen, first: bool, last: bool) -> None:
        """The user corrects the short-term memory (equation 3).

        ``first``: it is the one that the step began with, which joins the long-term ones (equation 5). ``last``: no
        other round follows, and whoever waits for the user may go on.
        """
        who, pair = self._parties(context)
        task = REFLECT_USER_RIGHT if seen.right else REFLECT_USER_WRONG
        slots = await self._reflected(
            context, ANALYSE_USER, self._told(seen, seen.shown, pair, self._settings.user_words)
        )
        fit: Fit[str] = Fit(self._settings.user_words, self._settings.over_limit)
        text = await self._asker.ask(context, task, slots, fit)
        if first:
            keep(context, who, "long", seen.mine.value, because=[seen.mine])
        remember(context, who, "short", text, because=[seen.message, seen.mine, *seen.shown])
        if last:
            context.release(who)

    async def _reflect_item(self, context: Context, seen: Seen) -> None:
        """The item takes in its adopter's likes (equation 4); itself it knows at latest, the rest as the user does."""
        _, pair = self._parties(context)
        writes = context.event.writes
        shown = list(seen.shown)
        for at, agent in enumerate(pair):
            if agent in writes:
                shown[at] = await context.read(agent, "memory", by=agent)
        task = REFLECT_ITEM_RIGHT if seen.right else REFLECT_ITEM_WRONG
        words = self._settings.item_words
        fit: Fit[tuple[str, str]] = Fit(words, self._settings.over_limit)
        slots = await self._reflected(context, ANALYSE_ITEM, self._told(seen, shown, pair, words))
        texts = await self._asker.ask(context, task, slots, fit)
        for agent, text in zip(pair, texts, strict=True):
            if agent in writes:
                remember(context, agent, "memory", text, because=[seen.message, seen.mine, *shown])

    async def _reflected(self, context: Context, task: Task[str], slots: dict[str, Slot]) -> dict[str, Slot]:
        """The slots with the reflection that comes before an update, where that is a call of its own."""
        if self._settings.reflection_calls == 1:
            return {**slots, "reflection": ""}
        thought = await context.unit("analyse", partial(self._asker.ask, task=task, slots=slots))
        return {**slots, "reflection": thought.value}

    # -- ranking (equation 6) ---------------------------------------------------------------------------------------

    async def order(self, context: Context) -> None:
        """Strategy B: the short-term memory and the candidates' memories, in an order that the event's stream draws."""
        case = context.event.data
        who, candidates = user(case["user"]), list(context.event.reads[1:])
        context.random("candidates").shuffle(candidates)
        await context.unit("rank", partial(self._rank, who=who, candidates=candidates))

    async def _rank(self, context: Context, who: Agent, candidates: list[Agent]) -> None:
        mine = await context.read(who, "short", by=who)
        shown = tuple([await context.read(agent, "memory", by=who) for agent in candidates])
        says = [
            tell(context, agent, who, "description", None, because=[version])
            for agent, version in zip(candidates, shown, strict=True)
        ]
        ranking = await self._asker.ask(context, RANK, self._shown(mine, shown, candidates))
        order = [ident(candidates[at]) for at in ranking.order]
        missing = [ident(candidates[at]) for at in ranking.missing]
        tell(context, who, "venue:ranking", RANKING, {"order": order, "missing": missing}, because=[mine, *says])

    # -- prompts ----------------------------------------------------------------------------------------------------

    def _parties(self, context: Context) -> tuple[Agent, tuple[Agent, Agent]]:
        """The user, and the two items in the order in which they are shown: the negative first."""
        data = context.event.data
        return user(data["user"]), (item(data["negative"]), item(data["item"]))

    def _title(self, agent: Agent) -> str:
        return self._data.items[ident(agent)].title

    def _shown(self, mine: Version, shown: Sequence[Version], agents: Sequence[Agent]) -> dict[str, Slot]:
        titles = tuple(self._title(agent) for agent in agents)
        return {"memory": mine.value, "options": tuple(version.value for version in shown), "titles": titles}

    def _told(self, seen: Seen, shown: Sequence[Version], pair: tuple[Agent, Agent], limit: int) -> dict[str, Slot]:
        """What a reflection is told: the options, the choice, and which of them the user really took."""
        slots = self._shown(seen.mine, shown, pair)
        rejected, preferred = map(self._title, pair)
        told = {
            "chosen": preferred if seen.right else rejected,
            "explanation": seen.explanation,
            "preferred": preferred,
            "rejected": rejected,
            "limit": str(limit),
        }
        return {**slots, **told}
