"""The local computations of a run, by the task that asks for each; what they find is recorded as a call's answer is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from simengine.embed import make_embedder, nearest_texts
from simengine.errors import CallFailed, UnitFailed
from simengine.llm import Request, Stack
from simengine.llm.layers.local import Tool
from simengine.llm.stack import Tools
from simengine.scenario.schema import Scenario


def tools_of(scenario: Scenario) -> Tools:
    """What makes the tools for a scenario, once there is a model that can be asked for embeddings."""

    def tools(stack: Stack) -> Mapping[str, Tool]:
        embedder = make_embedder(scenario.embed, stack if scenario.llm.backend == "openai" else None)

        async def near(request: Request) -> str:
            query, pool = request.slots["query"], request.slots["pool"]
            try:
                found = await nearest_texts(embedder, str(query), list(pool))
            except UnitFailed as failed:
                raise CallFailed(failed.problem, reason=failed.reason, remedy=failed.remedy) from failed
            return msgspec.json.encode(found).decode()

        return {"nearest": near}

    return tools
