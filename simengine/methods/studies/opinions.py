"""What studies of opinions share: past adopters of an item, a user's look at it, decisions on it, reviews of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from simengine.kernel import Agent, Context, Version, stream
from simengine.llm.prompts import Slot
from simengine.llm.replies.decision import Decision, word
from simengine.llm.task import DECIDE, REVIEW, Task
from simengine.methods.study import Ground
from simengine.methods.turn import Causes, Fit, tell
from simengine.world import ident

Sign: TypeAlias = Literal["positive", "negative"]

BEFORE = "before"
DECISION, REVIEWED = "decision", "review"
"""The kinds of the messages by which a user tells what he decides, and what he thinks of an item that he has."""
_VERDICTS: Mapping[Sign, str] = {"positive": "like", "negative": "dislike"}


class Look(msgspec.Struct, frozen=True):
    """A user who looks at an item: what both keep in memory, and the message by which the item shows its own."""

    user: Agent
    item: Agent
    mine: Version
    about: Version
    shown: str


class Decided(msgspec.Struct, frozen=True):
    """A decision, and the message that tells it."""

    decision: Decision
    message: str

    @property
    def slots(self) -> dict[str, Slot]:
        """How a later prompt shows it."""
        return {"former": word(self.decision.yes), "explanation": self.decision.explanation}


class Opinions:
    """How the agents of one stage come by opinions on items. Reviews are asked for in at most ``words`` words."""

    def __init__(self, stage: str, words: int, ground: Ground) -> None:
        self._stage = stage
        self._words = words
        self._data = ground.dataset
        self._asker = ground.asker
        self._seed = ground.seed
        self._known_by = ground.method.known_by
        self._adopters = self._taken_by()

    def _taken_by(self) -> dict[str, list[str]]:
        table = self._data.training_part
        taken: dict[str, dict[int, None]] = {}
        for who, thing in zip(table.user.tolist(), table.item.tolist(), strict=True):
            taken.setdefault(table.items[thing], {})[who] = None
        return {thing: [table.users[who] for who in sorted(by)] for thing, by in taken.items()}

    def adopters(self, thing: str, without: str, about: str) -> list[str]:
        """The users but one who took an item in training, in an order drawn by the stage's stream for ``about``.

        A user's first item, which is given and not re-enacted, counts as well.
        """
        found = list(self._adopters.get(thing, ()))
        stream(self._seed, "adopters", self._stage, about).shuffle(found)
        return [name for name in found if name != without]

    async def look(self, context: Context, who: Agent, thing: Agent) -> Look:
        """What the user knows of itself and of the item, which shows itself."""
        mine = await context.read(who, self._known_by["user"], by=who)
        about = await context.read(thing, self._known_by["item"], by=who)
        shown = tell(context, thing, who, "description", None, because=[about])
        return Look(who, thing, mine, about, shown)

    def slots(self, look: Look) -> dict[str, Slot]:
        """What a prompt shows of the user and the item."""
        title = self._data.items[ident(look.item)].title
        return {"memory": look.mine.value, "options": (look.about.value,), "titles": (title,)}

    async def review(self, context: Context, look: Look, sign: Sign, venue: Agent) -> tuple[str, str]:
        """The user's review of the item; its text, and the message that tells it in ``venue``."""
        slots = {**self.slots(look), "verdict": _VERDICTS[sign], "limit": str(self._words)}
        text = await self._asker.ask(context, REVIEW, slots, Fit(self._words, "keep"))
        return text, tell(context, look.user, venue, REVIEWED, text, because=[look.mine, look.shown])

    async def decide(
        self,
        context: Context,
        look: Look,
        when: str,
        task: Task[Decision] = DECIDE,
        more: Mapping[str, Slot] | None = None,
        because: Causes = (),
    ) -> Decided:
        """Whether the user would buy the item, told to it; ``when`` says in the log under which condition."""
        decision = await self._asker.ask(context, task, {**self.slots(look), **(more or {})})
        body = {"when": when, "yes": decision.yes, "explanation": decision.explanation}
        causes = [look.mine, look.shown, *because]
        return Decided(decision, tell(context, look.user, look.item, DECISION, body, because=causes))
