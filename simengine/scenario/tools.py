"""The local computations of a run, by the task that asks for each; what they find is recorded as a call's answer is."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence

import msgspec

from simengine.embed import Corpus, Embedder, cluster_texts, make_embedder, nearest_texts
from simengine.errors import CallFailed, UnitFailed
from simengine.llm import Request, Stack
from simengine.llm.layers.local import Tool
from simengine.llm.stack import Tools
from simengine.methods import corpora
from simengine.methods import tools as tools_of_method
from simengine.methods.studies.chat import SPEAK
from simengine.scenario.person import nobody
from simengine.scenario.setup import Setup


def tools_of(setup: Setup, speak: Tool = nobody) -> Tools:
    """What makes the tools for a run, once there is a model to be asked for embeddings; ``speak`` asks a person."""
    scenario = setup.scenario
    own = tools_of_method(scenario.method, setup.dataset, scenario.seed)
    texts = corpora(scenario.method, setup.dataset)

    def tools(stack: Stack) -> Mapping[str, Tool]:
        embedder = make_embedder(scenario.embed, stack if scenario.llm.backend == "openai" else None)

        async def cluster(request: Request) -> str:
            pool, count = request.slots["pool"], int(str(request.slots["count"]))
            return await _told(cluster_texts(embedder, list(pool), count))

        return {
            "nearest": nearing(embedder),
            "cluster": cluster,
            "search": searching(embedder, texts),
            SPEAK: speak,
            **own,
        }

    return tools


def nearing(embedder: Embedder) -> Tool:
    """What tells the places of the texts of a request, the nearest to its query first."""

    async def near(request: Request) -> str:
        query, pool = request.slots["query"], request.slots["pool"]
        return await _told(nearest_texts(embedder, str(query), list(pool)))

    return near


def searching(embedder: Embedder, texts: Mapping[str, Sequence[str]]) -> Tool:
    """What tells the places of the texts that are nearest to a query, of the named corpus, at most ``count``."""
    found = {name: Corpus(embedder, of) for name, of in texts.items()}

    async def search(request: Request) -> str:
        query, corpus, count = (str(request.slots[name]) for name in ("query", "corpus", "count"))
        return await _told(found[corpus].nearest(query, int(count)))

    return search


async def _told(numbers: Awaitable[list[int]]) -> str:
    """What was found, as a call's answer; a failure as a call's failure."""
    try:
        return msgspec.json.encode(await numbers).decode()
    except UnitFailed as failed:
        raise CallFailed(failed.problem, reason=failed.reason, remedy=failed.remedy) from failed
