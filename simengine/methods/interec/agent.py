"""InteRecAgent: a recommender that plans how to use tools, does so, replies, and reflects (arXiv 2308.16505).

One such agent belongs to one conversation. What it remembers are slots of the conversation's venue: the ``dialogue`` of
accepted exchanges, the ``profile`` that each has added to, what is left ``long_term`` of those that are forgotten, the
``bus`` and the ``tracker`` of the last attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simengine.data import Dataset
from simengine.kernel import Agent, Context, Event, Version
from simengine.llm.prompts import Slot
from simengine.methods.interec.bare import Bare
from simengine.methods.interec.baseline import Recommender
from simengine.methods.interec.chat_rec import ChatRec
from simengine.methods.interec.demonstrations import Demonstrations
from simengine.methods.interec.exchange import STEPS, Answer, Desk, Exchange, Heard
from simengine.methods.interec.memory import PIECES, USER, Memory
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
        self._histories = histories(dataset, self.table)
        said = {"data": dataset.kept(), "preference": f"{settings.preference} {seed}"}
        self._recommender = _recommender(Desk(settings, asker, self.table, said), dataset)
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
        return self._recommender.turn_calls()

    async def answer(self, context: Context, heard: Heard) -> Answer | None:
        """What is said to the user in a turn; none where no reply could be had."""
        return await self._recommender.answer(context, heard)


class Planner:
    """The agent itself: it plans, uses tools, replies and reflects."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._demonstrations = Demonstrations(desk.settings.pairs)
        self._memory = Memory(desk.asker, desk.settings.window, long_term=desk.settings.long_term)

    def turn_calls(self) -> tuple[int, int]:
        """The fewest and the most model calls of one turn, where every reply can be read."""
        settings = self._desk.settings
        critic = min(settings.reflection, 1)
        step = settings.planning == "step_by_step"
        distilled = PIECES if settings.long_term else 0
        return 2 + critic, distilled + (1 + settings.reflection) * ((STEPS if step else 1) + 1 + critic)

    async def answer(self, context: Context, heard: Heard) -> Answer | None:
        """What is said to the user in a turn; none where no reply could be had. See :class:`Exchange`."""
        recalled = await self._memory.recall(context, heard.venue)
        own = [line for line in recalled.lines if line.startswith(USER)]
        shown: dict[str, Slot] = {
            "dialogue": recalled.lines,
            "request": heard.text,
            "columns": tuple(map(str, self._desk.table.describe(" ".join([*own, heard.text])))),
            "demonstrations": await self._demonstrations.near(
                context, self._desk.asker, heard.text, self._desk.settings.demonstrations
            ),
        }
        because: list[str | Version] = [heard.message, *recalled.versions]
        return await Exchange(self._desk, context, heard, shown, recalled.profile, because).run()


def _recommender(desk: Desk, dataset: Dataset) -> Recommender:
    """Who answers in the talks of this method."""
    match desk.settings.recommender:
        case "agent":
            return Planner(desk)
        case "bare":
            return Bare(desk)
        case "chat_rec":
            return ChatRec(desk, dataset)
