"""Carries plans out where a run's local computations are done, so that what tools found is recorded like an answer.

Scores of trained rankers differ in their last digits between machines, and how long a query takes does anyhow. So a
plan, the bus and a number to draw by go into a request for the local model ``local:workshop``, and the bus as it is
then comes back and into the journal: a replay needs no table, no training and no clock.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

import msgspec

from simengine.data import Dataset
from simengine.kernel import Context
from simengine.llm.layers.local import LOCAL
from simengine.llm.request import Request
from simengine.methods.interec.bus import Bus, Snapshot
from simengine.methods.interec.plan import Plan, execute
from simengine.methods.interec.settings import InteRecSettings
from simengine.methods.interec.similar import CoOccurrence, preference_of
from simengine.methods.interec.sql import Fence
from simengine.methods.interec.table import build
from simengine.methods.interec.tools import Shop
from simengine.methods.turn import Asker
from simengine.rankers import RANKERS, Ranker
from simengine.rankers.trained import SASRec

WORKSHOP = "workshop"
"""The task of such a request."""
MODEL = f"{LOCAL}{WORKSHOP}"


class Workshop:
    """The tools of one run. The table is built and the ranker fitted when the first plan comes, beside the event loop:
    whoever asks meanwhile waits, and all else goes on.

    Raises :class:`~simengine.errors.InputError` where the library of the ranker is not installed.
    """

    def __init__(self, settings: InteRecSettings, dataset: Dataset, seed: int) -> None:
        self._dataset = dataset
        self._ranker = _ranker(settings.preference, seed)
        self._opening = asyncio.Lock()
        self._shop: Shop | None = None

    async def shop(self) -> Shop:
        """What the tools work with."""
        async with self._opening:
            if self._shop is None:
                table = build(self._dataset)
                similar = await asyncio.to_thread(self._train)
                self._shop = Shop(table, Fence(table), similar, preference_of(self._ranker))
            return self._shop

    def _train(self) -> CoOccurrence:
        self._ranker.fit(self._dataset)
        return CoOccurrence(self._dataset)

    async def __call__(self, request: Request) -> str:
        """The bus after the plan of the request, as JSON."""
        plan = msgspec.json.decode(str(request.slots["plan"]), type=Plan)
        at = msgspec.json.decode(str(request.slots["bus"]), type=Snapshot)
        shop = await self.shop()
        bus = Bus(len(shop.table), at)
        execute(plan, bus, shop, random.Random(str(request.slots["draws"])))
        return msgspec.json.encode(bus.snapshot()).decode()


def _ranker(name: str, seed: int) -> Ranker:
    """A ranker by its name. SASRec goes without embeddings of positions (section 4.1): titles come in no order."""
    return SASRec(positions=False, seed=seed) if name == SASRec.name else RANKERS[name](seed=seed)


async def carry_out(context: Context, asker: Asker, plan: Plan, at: Snapshot, said: Mapping[str, str]) -> Snapshot:
    """The bus after a plan. ``said`` tells this run's data and ranker from others'."""
    slots = {
        "plan": msgspec.json.encode(plan).decode(),
        "bus": msgspec.json.encode(at).decode(),
        "draws": str(context.random("draws").getrandbits(64)),
        **said,
    }
    answer = await asker.compute(context, "tools", WORKSHOP, MODEL, slots)
    return msgspec.json.decode(answer, type=Snapshot)
