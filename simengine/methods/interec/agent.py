"""InteRecAgent: a recommender that plans how to use tools, does so, replies, and reflects (arXiv 2308.16505).

One such agent belongs to one conversation. What it remembers are slots of the conversation's venue: the ``dialogue`` of
accepted exchanges, the ``profile`` of the user, the ``bus`` and the ``tracker`` of the last attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from simengine.data import Dataset
from simengine.kernel import Agent, Context, Event
from simengine.llm.prompts import Slot
from simengine.methods.interec import demonstrations
from simengine.methods.interec.exchange import DIALOGUE, PROFILE, STEPS, USER, Answer, Desk, Exchange, Heard
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.seeker import HISTORY, histories
from simengine.methods.interec.settings import InteRecSettings
from simengine.methods.interec.table import build
from simengine.methods.method import Handler, Ranks
from simengine.methods.turn import Asker
from simengine.world import ident, kind


class InteRec:
    """The method on one data set. It has no interactions of its own and no rankings: it plays ``converse`` stages."""

    def __init__(self, settings: InteRecSettings, dataset: Dataset, asker: Asker, seed: int) -> None:
        self.settings = settings
        self.table = build(dataset)
        self._dataset = dataset
        self._asker = asker
        self._histories = histories(dataset, self.table)
        self._said = {"data": dataset.digest, "preference": f"{settings.preference} {seed}"}
        self.handlers: Mapping[str, Handler] = {}
        self.calls: Mapping[str, tuple[int, int]] = {}
        self.word_limits: Mapping[tuple[str, str], int] = {}
        self.known_by: Mapping[str, str] = {"user": HISTORY, "item": "title"}

    # -- what there is ----------------------------------------------------------------------------------------------

    def initial(self, agent: Agent) -> Mapping[str, Any]:
        """A user knows what he has had before his test case, an item what it is called."""
        name = ident(agent)
        if kind(agent) == "user":
            return {HISTORY: self._histories.get(name, "")}
        return {"title": self._dataset.items[name].title}

    def optimize(self, phase: int) -> Iterator[Event]:
        """None: what these agents go by are the tools' scores, which are fitted on the training part."""
        return iter(())

    def rank(self, phase: int, stage: Ranks) -> Iterator[Event]:
        """None: these agents recommend in talks."""
        return iter(())

    def turn_calls(self) -> tuple[int, int]:
        """The fewest and the most model calls of one turn, where every reply can be read."""
        critic = min(self.settings.reflection, 1)
        step = self.settings.planning == "step_by_step"
        return 2 + critic, (1 + self.settings.reflection) * ((STEPS if step else 1) + 1 + critic)

    # -- one turn ---------------------------------------------------------------------------------------------------

    async def answer(self, context: Context, heard: Heard) -> Answer | None:
        """What is said to the user in a turn; none where no reply could be had. See :class:`Exchange`."""
        venue = heard.venue
        said = await context.entries(venue, DIALOGUE, by=venue)
        kept = await context.entries(venue, PROFILE, by=venue)
        lines = [str(entry.value) for entry in said]
        own = [line for line in lines if line.startswith(USER)]
        shown: dict[str, Slot] = {
            "dialogue": tuple(lines),
            "request": heard.text,
            "columns": tuple(map(str, self.table.describe(" ".join([*own, heard.text])))),
            "demonstrations": await self._demonstrations(context, heard),
        }
        desk = Desk(self.settings, self._asker, self.table, self._said)
        profile = msgspec.convert(kept[-1].value, Profile) if kept else Profile()
        return await Exchange(desk, context, heard, shown, profile, [heard.message, *kept, *said]).run()

    async def _demonstrations(self, context: Context, heard: Heard) -> tuple[str, ...]:
        """The nearest demonstrations; none where there are to be none, or the nearest cannot be told."""
        if not self.settings.demonstrations:
            return ()

        async def find(inner: Context) -> list[int]:
            return await self._asker.nearest(inner, heard.text, demonstrations.REQUESTS)

        found = await context.unit("nearest", find)
        return demonstrations.shown(found.value[: self.settings.demonstrations]) if found.ok else ()
