"""The local computations of a run, by the task that asks for each; what they find is recorded as a call's answer is."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

import msgspec

from simengine.embed import cluster_texts, make_embedder, nearest_texts
from simengine.errors import CallFailed, UnitFailed
from simengine.llm import Request, Stack
from simengine.llm.layers.local import Tool
from simengine.llm.stack import Tools
from simengine.methods import tools as tools_of_method
from simengine.scenario.setup import Setup


def tools_of(setup: Setup) -> Tools:
    """What makes the tools for a run, once there is a model that can be asked for embeddings."""
    scenario = setup.scenario
    own = tools_of_method(scenario.method, setup.dataset, scenario.seed)

    def tools(stack: Stack) -> Mapping[str, Tool]:
        embedder = make_embedder(scenario.embed, stack if scenario.llm.backend == "openai" else None)

        async def near(request: Request) -> str:
            query, pool = request.slots["query"], request.slots["pool"]
            return await _told(nearest_texts(embedder, str(query), list(pool)))

        async def cluster(request: Request) -> str:
            pool, count = request.slots["pool"], int(str(request.slots["count"]))
            return await _told(cluster_texts(embedder, list(pool), count))

        return {"nearest": near, "cluster": cluster, **own}

    return tools


async def _told(numbers: Awaitable[list[int]]) -> str:
    """What was found, as a call's answer; a failure as a call's failure."""
    try:
        return msgspec.json.encode(await numbers).decode()
    except UnitFailed as failed:
        raise CallFailed(failed.problem, reason=failed.reason, remedy=failed.remedy) from failed
