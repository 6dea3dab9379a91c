"""Discussion: one who has an item and one who thinks of buying it talk, and the buyer decides before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from pydantic import PositiveInt

from simengine.data import Case
from simengine.kernel import Context, Event
from simengine.llm.prompts import Slot
from simengine.llm.replies.lines import one_line
from simengine.llm.replies.talk import Turn
from simengine.llm.task import DECIDE_DISCUSSED, TALK_BUYER, TALK_OWNER, Task
from simengine.methods.method import Handler
from simengine.methods.ranking import about
from simengine.methods.studies.opinions import BEFORE, Decided, Look, Opinions
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import Causes, keep, tell
from simengine.world import Edge, item, user

AFTER = "after"
TALK = "talk"
"""The slot of a venue that holds a talk, a line for each turn; and the kind of the messages that are its turns."""


class DiscussionSettings(StudySettings):
    """A talk has at most ``turns`` turns, counted over both, of ``turn_words`` words; ``words`` are the review's."""

    turns: PositiveInt = 8
    turn_words: PositiveInt = 80
    words: PositiveInt = 50


class Speaker(msgspec.Struct, frozen=True):
    """One who talks: his name in the talk, how he looks at the item, what asks for his turns, and what he knows more.

    ``because`` are the causes of that.
    """

    name: str
    look: Look
    task: Task[Turn]
    more: Mapping[str, Slot] = {}
    because: tuple[str, ...] = ()


class Discussion:
    """The study on one data set (section C.2.2).

    The test user of a case is the buyer; an adopter of the target, drawn for the case, is the owner, who writes a
    positive review first. They speak by turns, the buyer first, until one says goodbye or the limit is reached. A case
    without an adopter has nobody to talk to: its event only says so.
    """

    def __init__(self, name: str, settings: DiscussionSettings, ground: Ground) -> None:
        self._stage = name
        self._settings = settings
        self._cases = ground.dataset.cases
        self._asker = ground.asker
        self._opinions = Opinions(name, settings.words, ground)
        self.handlers: Mapping[str, Handler] = {f"{name}.talk": self.talk, f"{name}.skip": self.skip}
        beside = 3  # the review, and the decisions before and after
        self.calls: Mapping[str, tuple[int, int]] = {
            f"{name}.talk": (beside + 1, beside + settings.turns),
            f"{name}.skip": (0, 0),
        }

    # -- what there is ----------------------------------------------------------------------------------------------

    def events(self, phase: int) -> Iterator[Event]:
        """One talk a case, by the cases' times and then by their positions."""
        for time, at in sorted((case.time, at) for at, case in enumerate(self._cases)):
            yield self._event((phase, time, at), self._cases[at])

    def _event(self, order: tuple[Any, ...], case: Case) -> Event:
        data = {**about(case), "item": case.target}
        name = "/".join((case.user, *case.again))
        adopters = self._opinions.adopters(case.target, case.user, name)
        if not adopters:
            kind = f"{self._stage}.skip"
            return Event(id=f"{self._stage}/skip/{name}", kind=kind, order=order, time=case.time, data=data)
        venue, both = f"venue:{self._stage}/{name}", (user(case.user), user(adopters[0]))
        return Event(
            id=f"{self._stage}/talk/{name}",
            kind=f"{self._stage}.talk",
            order=order,
            time=case.time,
            writes=(venue,),
            reads=(*both, item(case.target)),
            data={**data, "adopter": adopters[0]},
            facts=tuple(Edge(who, venue, "attendance", case.time) for who in both),
        )

    # -- what happens -----------------------------------------------------------------------------------------------

    async def skip(self, context: Context) -> None:
        """Nothing: a case without an adopter is only put on record."""

    async def talk(self, context: Context) -> None:
        """The buyer decides, the owner writes a review, they talk, the buyer decides again."""
        (venue,), (buyer, owner, thing) = context.event.writes, context.event.reads
        look = await self._opinions.look(context, buyer, thing)
        first = await context.unit("decide/before", partial(self._opinions.decide, look=look, when=BEFORE))
        if not first.ok:
            return
        other = await self._opinions.look(context, owner, thing)
        review = await context.unit("review", partial(self._opinions.review, look=other, sign="positive", venue=venue))
        if not review.ok:
            return
        text, message = review.value
        speakers = (
            Speaker("Buyer", look, TALK_BUYER),
            Speaker("Owner", other, TALK_OWNER, {"review": text}, (message,)),
        )
        if await self._converse(context, speakers):
            await context.unit("decide/after", partial(self._again, look=look, first=first.value))

    async def _converse(self, context: Context, speakers: tuple[Speaker, Speaker]) -> bool:
        """The talk, a unit for each turn; whether it came to its end, by a goodbye or at the limit."""
        for number in range(self._settings.turns):
            goodbye = await context.unit(f"turn/{number + 1}", partial(self._say, speaker=speakers[number % 2]))
            if not goodbye.ok:
                return False
            if goodbye.value:
                break
        return True

    async def _say(self, context: Context, speaker: Speaker) -> bool:
        """One turn: what is said goes to the venue; whether it was a goodbye."""
        (venue,), who = context.event.writes, speaker.look.user
        said = await context.entries(venue, TALK, by=who)
        slots: dict[str, Slot] = {
            **self._opinions.slots(speaker.look),
            **speaker.more,
            "dialogue": tuple(entry.value for entry in said),
            "limit": str(self._settings.turn_words),
        }
        turn = await self._asker.ask(context, speaker.task, slots)
        because: Causes = [speaker.look.mine, speaker.look.shown, *speaker.because, *said]
        message = tell(context, who, venue, TALK, {"text": turn.text, "goodbye": turn.goodbye}, because=because)
        keep(context, venue, TALK, f"{speaker.name}: {one_line(turn.text)}", because=[message])
        return turn.goodbye

    async def _again(self, context: Context, look: Look, first: Decided) -> None:
        """The buyer decides in the light of the talk."""
        said = await context.entries(context.event.writes[0], TALK, by=look.user)
        more = {**first.slots, "dialogue": tuple(entry.value for entry in said)}
        await self._opinions.decide(context, look, AFTER, DECIDE_DISCUSSED, more, [first.message, *said])
