"""How AgentCF++ ranks: by both layers of memory in the candidates' domain and by what the user's groups took lately."""

from __future__ import annotations

from collections.abc import Sequence

from simengine.data import Case, Dataset
from simengine.kernel import Agent, Context
from simengine.llm.prompts import Slot
from simengine.llm.task import DOMAIN_RANK
from simengine.methods import ranking
from simengine.methods.agentcf_rank import AgentCFRanking, described
from simengine.methods.agentcfpp_memory import Memories
from simengine.methods.turn import Asker
from simengine.world import user

STRATEGIES = {"B": "agentcfpp B", "LLMRank": "LLMRank"}
"""What a scenario may ask for, and what reports call it."""


class AgentCFppRanking(AgentCFRanking):
    """The rankings of one data set: AgentCF's, but for what a user goes by (section 3.2)."""

    def __init__(self, dataset: Dataset, asker: Asker, memories: Memories) -> None:
        super().__init__(dataset, asker)
        self._memories = memories

    def reads(self, strategy: str, case: Case) -> Sequence[Agent]:
        """The agents that a ranking looks at."""
        found = super().reads(strategy, case)
        return found if strategy == "LLMRank" else (*found, *self._memories.reads)

    async def by_memories(self, context: Context, case: Case, candidates: list[Agent]) -> None:
        """The user goes by what it, its groups and the candidates remember."""
        who = user(case.user)
        recalled = await self._memories.recall(context, who, self._memories.domains_of(candidates))
        versions = [await context.read(agent, "memory", by=who) for agent in candidates]
        slots: dict[str, Slot] = {
            **recalled.slots,
            **self.shown([version.value for version in versions], candidates),
        }
        answer = await self._asker.ask(context, DOMAIN_RANK, slots)
        because = [*recalled.because, *described(context, who, versions)]
        ranking.announce(context, case.user, candidates, answer, because)
