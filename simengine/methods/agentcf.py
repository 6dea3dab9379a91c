"""AgentCF: users and items learn from each interaction by choosing and reflecting, then rank (arXiv 2310.09233)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from pydantic import PositiveInt, model_validator

from simengine.data import Dataset, Interaction, PopularityNegatives, RecordedNegatives
from simengine.errors import InputError
from simengine.kernel import Agent, Branch, Context, Event, Version, stream
from simengine.llm.prompts import Slot
from simengine.llm.task import (
    ANALYSE_ITEM,
    ANALYSE_USER,
    CHOOSE,
    REFLECT_ITEM_RIGHT,
    REFLECT_ITEM_TOLD,
    REFLECT_ITEM_WRONG,
    REFLECT_USER_RIGHT,
    REFLECT_USER_TOLD,
    REFLECT_USER_WRONG,
    Task,
)
from simengine.methods.agentcf_rank import AgentCFRanking
from simengine.methods.method import Handler, Ranks, Settings
from simengine.methods.ranking import RANKING
from simengine.methods.turn import Asker, Fit, OverLimit, keep, remember, tell
from simengine.world import Edge, ident, item, kind, user

INTERACTION = "interaction"
CHOICE, CHECK = "choice", "check"
"""The kinds of message that say what a user took: in a round of its step, and once more behind the last reflection."""


class AgentCFSettings(Settings):
    """``rounds``: most rounds of choosing and reflecting in one step (section 2.2.3; the paper's value is 2).

    ``user_words`` and ``item_words`` are the lengths that the prompts ask for (appendix C.1); ``over_limit`` says what
    becomes of longer texts: ``keep`` them (the report counts them), ``reask`` once, or ``cut``. ``update_negative``
    lets the reflection rewrite the negative item's description too, which the paper leaves alone (section 2.2.3).
    ``item_reads: updated`` shows the reflecting item the memory that its user has just written, as the authors' code
    does, and so lets the item wait for the user; ``old`` is the paper's equation 4. ``reflection_calls: 2`` asks for
    the thoughts behind an update in a call of their own before it. ``recheck`` lets the user choose once more behind
    the last reflection, which changes nothing (section 3.3.3).

    The others take out parts (section 3.3.1). Without ``autonomous`` nobody chooses: what the user really took is told
    at once. Without ``user_agents`` a user is the list of what he has taken, without ``item_agents`` an item stays what
    it is called.
    """

    kind: Literal["agentcf"]
    rounds: PositiveInt = 2
    user_words: PositiveInt = 180
    item_words: PositiveInt = 50
    over_limit: OverLimit = "keep"
    update_negative: bool = False
    item_reads: Literal["old", "updated"] = "old"
    reflection_calls: Literal[1, 2] = 1
    recheck: bool = False
    autonomous: bool = True
    user_agents: bool = True
    item_agents: bool = True

    @model_validator(mode="after")
    def _fits(self) -> AgentCFSettings:
        if not self.autonomous and (self.recheck or self.reflection_calls == 2):
            raise ValueError("without `autonomous` there is no choice to check again or to reflect on in its own call")
        if not self.item_agents and self.update_negative:
            raise ValueError("`update_negative` rewrites an item, which there is no agent for without `item_agents`")
        return self


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
        self._before = {} if settings.user_agents else _before(dataset)
        self._ranking = AgentCFRanking(dataset, asker)
        self.handlers: Mapping[str, Handler] = {INTERACTION: self.interact, RANKING: self._ranking.handle}
        self.calls: Mapping[str, tuple[int, int]] = {INTERACTION: _calls(settings), RANKING: (1, 1)}
        self.word_limits: Mapping[tuple[str, str], int] = {
            **({("user", "short"): settings.user_words} if settings.user_agents else {}),
            **({("item", "memory"): settings.item_words} if settings.item_agents else {}),
        }
        self.known_by: Mapping[str, str] = {"user": "short", "item": "memory"}

    # -- what there is ----------------------------------------------------------------------------------------------

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """Short-term memory of a user: a general liking; memory of an item: title and category (section 2.2.1)."""
        if kind(agent) == "user" and self._settings.user_agents:
            return {"short": self._asker.text("user", {})}
        if kind(agent) == "user":
            return {"short": self._given(ident(agent))}
        return {"memory": self._identity(agent)}

    def optimize(self, phase: int) -> Iterator[Event]:
        """One event per training interaction; its negative is drawn here, when the event is issued."""
        train = self._data.train
        for row, interaction in enumerate(train):
            yield self._interaction(interaction, (phase, *train.order(row)))

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """The rankings of the test cases; see :mod:`simengine.methods.agentcf_rank`."""
        return self._ranking.events(phase, stage)

    def _interaction(self, row: Interaction, order: tuple[Any, ...]) -> Event:
        again = f"/{row.occurrence}" if row.occurrence else ""
        name = f"{INTERACTION}/{row.user}/{row.item}/{row.time}{again}"
        who, taken = user(row.user), item(row.item)
        negative = self._negative(row, name)
        left = item(negative)
        items = (taken, left) if self._settings.update_negative else (taken,) if self._settings.item_agents else ()
        writes, reads = (who, *items), tuple(agent for agent in (taken, left) if agent not in items)
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

    def _given(self, name: str) -> str:
        """The list of what a user took before the first interaction that is re-enacted."""
        text = self._asker.text("taken.none", {})
        for taken in self._before.get(name, ()):
            text = self._asker.text("taken", {"memory": text, "item": self._identity(item(taken))})
        return text

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

    # -- one step of the optimisation (section 2.2) -----------------------------------------------------------------

    async def interact(self, context: Context) -> None:
        """Choose, be told, reflect on both sides; once more, up to the limit, while the choice is wrong."""
        who, before = user(context.event.data["user"]), None
        rounds = self._settings.rounds if self._settings.autonomous else 1
        for number in range(1, rounds + 1):
            name = f"choose/r{number}" if self._settings.autonomous else "told"
            chosen = await context.unit(name, self._choose if self._settings.autonomous else self._told_at_once)
            if not chosen.ok:
                return
            seen = chosen.value
            before = before or seen.mine
            last = seen.right or number == rounds
            await self._reflect(context, number, seen, self._user_side(who, number, seen, seen.mine is before, last))
            if last:
                break
        if self._settings.recheck:
            await context.unit("choose/check", partial(self._choose, kind=CHECK))

    def _user_side(self, who: Agent, number: int, seen: Seen, first: bool, last: bool) -> Branch[None]:
        if self._settings.user_agents:
            reflect = partial(self._reflect_user, seen=seen, first=first, last=last)
            return Branch(f"reflect.user/r{number}", (who,), reflect)
        return Branch(f"list/r{number}", (who,), partial(self._list, seen=seen, last=last))

    async def _reflect(self, context: Context, number: int, seen: Seen, mine: Branch[None]) -> None:
        """Both sides reflect, side by side; one after the other where the item is to read what the user has written."""
        who, items = context.event.writes[0], context.event.writes[1:]
        if not self._settings.item_agents:
            await context.together(mine)
            return
        if self._settings.item_reads == "old":
            other = Branch(f"reflect.item/r{number}", items, partial(self._reflect_item, seen=seen))
            await context.together(mine, other)
            return
        await context.together(mine)
        updated = msgspec.structs.replace(seen, mine=await context.read(who, "short", by=who))
        await context.together(Branch(f"reflect.item/r{number}", items, partial(self._reflect_item, seen=updated)))

    async def _told_at_once(self, context: Context) -> Seen:
        """Without autonomous interaction: the real choice is told, and no other was made (section 3.3.1)."""
        who, pair = self._parties(context)
        mine, shown, says = await self._looked(context, who, pair)
        message = tell(context, who, pair[1], "taken", None, because=[mine, *says])
        return Seen(mine, shown, True, "", message)

    async def _looked(
        self, context: Context, who: Agent, pair: tuple[Agent, Agent]
    ) -> tuple[Version, tuple[Version, Version], list[str]]:
        """What the user knows of itself and of both items, and the messages by which these show themselves."""
        mine = await context.read(who, "short", by=who)
        shown = (await context.read(pair[0], "memory", by=who), await context.read(pair[1], "memory", by=who))
        says = [
            tell(context, agent, who, "description", None, because=[version])
            for agent, version in zip(pair, shown, strict=True)
        ]
        return mine, shown, says

    async def _choose(self, context: Context, kind: str = CHOICE) -> Seen:
        """The user takes one of two items and says why (equations 1 and 2)."""
        who, pair = self._parties(context)
        mine, shown, says = await self._looked(context, who, pair)
        choice = await self._asker.ask(context, CHOOSE, self._shown(mine, shown, pair))
        message = tell(context, who, pair[choice.index], kind, choice.explanation, because=[mine, *says])
        return Seen(mine, shown, choice.index == 1, choice.explanation, message)

    async def _list(self, context: Context, seen: Seen, last: bool) -> None:
        """Without a user agent: the user is the list of what he took, this item on its top (section 3.3.1)."""
        if last:
            who, pair = self._parties(context)
            text = self._asker.text("taken", {"memory": seen.mine.value, "item": self._identity(pair[1])})
            remember(context, who, "short", text, because=[seen.message, seen.mine])
            context.release(who)

    async def _reflect_user(self, context: Context, seen: Seen, first: bool, last: bool) -> None:
        """The user corrects the short-term memory (equation 3).

        ``first``: it is the one that the step began with, which joins the long-term ones (equation 5). ``last``: no
        other round follows, and whoever waits for the user may go on.
        """
        who, pair = self._parties(context)
        told = REFLECT_USER_RIGHT if self._settings.autonomous else REFLECT_USER_TOLD
        task = told if seen.right else REFLECT_USER_WRONG
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
        told = REFLECT_ITEM_RIGHT if self._settings.autonomous else REFLECT_ITEM_TOLD
        task = told if seen.right else REFLECT_ITEM_WRONG
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

    # -- prompts ----------------------------------------------------------------------------------------------------

    def _parties(self, context: Context) -> tuple[Agent, tuple[Agent, Agent]]:
        """The user, and the two items in the order in which they are shown: the negative first."""
        data = context.event.data
        return user(data["user"]), (item(data["negative"]), item(data["item"]))

    def _identity(self, agent: Agent) -> str:
        thing = self._data.items[ident(agent)]
        return self._asker.text("item", {"title": thing.title, "category": thing.category})

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


def _calls(settings: AgentCFSettings) -> tuple[int, int]:
    """The fewest and the most model calls of one step."""
    sides = settings.user_agents + settings.item_agents
    choice = int(settings.autonomous)
    once = choice + sides * settings.reflection_calls
    most = once + sides * (settings.over_limit == "reask")  # either side may be asked for a shorter text
    rounds = settings.rounds if settings.autonomous else 1
    return once + settings.recheck, most * rounds + settings.recheck


def _before(dataset: Dataset) -> Mapping[str, list[str]]:
    """What each user is known to have taken, without being re-enacted; validation items are not among it."""
    part = dataset.training_part
    reenacted = set(dataset.train)
    found: dict[str, list[str]] = {}
    for row in part:
        if row not in reenacted:
            found.setdefault(row.user, []).append(row.item)
    return found
