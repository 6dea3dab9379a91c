"""How AgentCF ranks (section 2.3): by memories alone, with a retrieved one, with those of past items; and LLMRank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from simengine.data import Case, Dataset
from simengine.kernel import Agent, Context, Event, Version
from simengine.llm.prompts import Slot
from simengine.llm.task import RANK, RANK_BY_TITLES
from simengine.methods import ranking
from simengine.methods.method import Ranks
from simengine.methods.turn import Asker, Causes, tell
from simengine.world import ident, item, user

STRATEGIES = {"B": "agentcf B", "B+R": "agentcf B+R", "B+H": "agentcf B+H", "LLMRank": "LLMRank"}
"""What a scenario may ask for, and what reports call it."""


class AgentCFRanking:
    """The strategies on one data set: equations 6 to 8 of the paper, and LLMRank beside them (section 3.1.3).

    ``B+R`` adds the entry of the long-term memory that is nearest to the candidates' memories. The first entry is what
    every user starts with and says nothing, so it is left out, as the authors' code does. ``LLMRank`` has no agents: it
    shows the titles and categories of what the user has taken, and those of the candidates.
    """

    def __init__(self, dataset: Dataset, asker: Asker) -> None:
        self._data = dataset
        self._asker = asker
        self._cases = {case.key: case for case in dataset.cases}

    def events(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """See :func:`simengine.methods.ranking.events`."""
        return ranking.events(phase, stage, self._data, self.reads)

    async def handle(self, context: Context) -> None:
        """One user puts the candidates of one case in order."""
        case = self._cases[ranking.case_of(context.event.data)]
        candidates = ranking.laid_out(context, case)
        strategy = self._by_titles if context.event.data["strategy"] == "LLMRank" else self.by_memories
        await context.unit("rank", partial(strategy, case=case, candidates=candidates))

    def reads(self, strategy: str, case: Case) -> Sequence[Agent]:
        """The agents that a ranking looks at."""
        if strategy == "LLMRank":
            return (user(case.user),)
        past = map(item, case.history) if strategy == "B+H" else ()
        return (user(case.user), *map(item, case.candidates or ()), *past)

    async def by_memories(self, context: Context, case: Case, candidates: list[Agent]) -> None:
        """The user goes by what it and the candidates remember."""
        who, strategy = user(case.user), context.event.data["strategy"]
        mine = await context.read(who, "short", by=who)
        shown = [await context.read(agent, "memory", by=who) for agent in candidates]
        says = described(context, who, shown)
        former = await self._retrieved(context, who, shown) if strategy == "B+R" else []
        taken = case.history if strategy == "B+H" else ()
        past = [await context.read(item(name), "memory", by=who) for name in taken]
        because: Causes = [mine, *says, *former, *described(context, who, past)]
        slots = {
            "memory": mine.value,
            "retrieved": former[0].value if former else "",
            "history": tuple(version.value for version in past),
            **self.shown([version.value for version in shown], candidates),
        }
        answer = await self._asker.ask(context, RANK, slots)
        ranking.announce(context, case.user, candidates, answer, because)

    async def _retrieved(self, context: Context, who: Agent, shown: Sequence[Version]) -> list[Version]:
        """The former preference that is nearest to the candidates (equation 7); empty where there is none yet."""
        pool = (await context.entries(who, "long", by=who))[1:]
        if not pool:
            return []
        query = "\n".join(version.value for version in shown)
        near = await self._asker.nearest(context, query, [version.value for version in pool])
        return [pool[near[0]]]

    async def _by_titles(self, context: Context, case: Case, candidates: list[Agent]) -> None:
        texts = [self._identity(agent) for agent in candidates]
        history = tuple(self._identity(item(name)) for name in case.history)
        answer = await self._asker.ask(context, RANK_BY_TITLES, {"history": history, **self.shown(texts, candidates)})
        ranking.announce(context, case.user, candidates, answer, [])

    def _identity(self, agent: Agent) -> str:
        thing = self._data.items[ident(agent)]
        return self._asker.text("item", {"title": thing.title, "category": thing.category})

    def shown(self, texts: Sequence[str], agents: Sequence[Agent]) -> dict[str, Slot]:
        """The slots that show candidates: their texts and their titles."""
        titles = tuple(self._data.items[ident(agent)].title for agent in agents)
        return {"options": tuple(texts), "titles": titles}


def described(context: Context, who: Agent, versions: Sequence[Version]) -> list[str]:
    """Each item shows its memory to the user; returns the messages' ids."""
    return [tell(context, version.agent, who, "description", None, because=[version]) for version in versions]
