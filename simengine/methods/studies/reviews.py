"""Reviews: past adopters praise and blame an item, and a test user decides before and after reading them (AgentCF)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Literal, TypeAlias, get_args

from pydantic import PositiveInt

from simengine.data import Case
from simengine.errors import UnitFailed
from simengine.kernel import Agent, Branch, Context, Event, Version
from simengine.llm.task import DECIDE_REVIEWED
from simengine.methods.method import Handler
from simengine.methods.ranking import about
from simengine.methods.studies.opinions import BEFORE, Decided, Look, Opinions, Sign
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import keep, tell
from simengine.world import Edge, ident, item, user

Side: TypeAlias = Literal["similar", "dissimilar"]

SIGNS: tuple[Sign, ...] = get_args(Sign)
SIDES: tuple[Side, ...] = get_args(Side)


class ReviewsSettings(StudySettings):
    """``writers`` past adopters of a target write reviews of at most ``words`` words (the paper's values, 5 and 50).

    A test user reads those of at most ``read`` writers at once.
    """

    writers: PositiveInt = 5
    words: PositiveInt = 50
    read: PositiveInt = 2


class Reviews:
    """The study on one data set (sections 3.4.1 and C.2.1).

    A target's writers are drawn for the stage, so that test users who share a target share its reviews. Each writes a
    positive and a negative one from its own memory and the item's. The test user decides before reading, then anew
    under each of four conditions, none of which knows of the others: the positive or the negative reviews of writers
    whose memories are similar or dissimilar to its own. Similar is the half of the writers that is nearest, dissimilar
    the half that is farthest; with an odd number the one in the middle is read by nobody. A case with fewer than two
    writers has no halves: its event only says so.
    """

    def __init__(self, name: str, settings: ReviewsSettings, ground: Ground) -> None:
        self._stage = name
        self._settings = settings
        self._data = ground.dataset
        self._asker = ground.asker
        self._known_by = ground.method.known_by
        self._opinions = Opinions(name, settings.words, ground)
        self.handlers: Mapping[str, Handler] = {
            f"{name}.write": self.write,
            f"{name}.read": self.read,
            f"{name}.skip": self.skip,
        }
        decisions = 1 + len(SIGNS) * len(SIDES)
        self.calls: Mapping[str, tuple[int, int]] = {
            f"{name}.write": (len(SIGNS), len(SIGNS)),
            f"{name}.read": (decisions, decisions),
            f"{name}.skip": (0, 0),
        }

    # -- what there is ----------------------------------------------------------------------------------------------

    def events(self, phase: int) -> Iterator[Event]:
        """The reviews of each target, before the first test user who reads them; the test users at their cases' times.

        The order is by time, writing before reading, positions of item and writer or of the case.
        """
        users, items = ({name: at for at, name in enumerate(names)} for names in (self._data.users, self._data.items))
        since: dict[tuple[str, str], int | float] = {}
        found: list[Event] = []
        for at, case in enumerate(self._data.cases):
            writers = self._opinions.adopters(case.target, case.user, case.target)[: self._settings.writers]
            found.append(self._case((phase, case.time, 1, at, 0), case, writers))
            for writer in writers if len(writers) > 1 else ():
                since[case.target, writer] = min(case.time, since.get((case.target, writer), case.time))
        for (thing, writer), time in since.items():
            found.append(self._writing((phase, time, 0, items[thing], users[writer]), thing, writer))
        yield from sorted(found, key=attrgetter("order"))

    def _writing(self, order: tuple[Any, ...], thing: str, writer: str) -> Event:
        venue = self._venue(thing)
        return Event(
            id=f"{self._stage}/write/{thing}/{writer}",
            kind=f"{self._stage}.write",
            order=order,
            time=order[1],
            writes=(venue,),
            reads=(user(writer), item(thing)),
            data={"item": thing, "writer": writer, "words": self._settings.words},
            facts=(Edge(user(writer), venue, "attendance", order[1]),),
        )

    def _case(self, order: tuple[Any, ...], case: Case, writers: Sequence[str]) -> Event:
        who, venue, thing = user(case.user), self._venue(case.target), item(case.target)
        contrast = len(writers) > 1
        kind = "read" if contrast else "skip"
        return Event(
            id="/".join((self._stage, kind, case.user, *case.again)),
            kind=f"{self._stage}.{kind}",
            order=order,
            time=case.time,
            reads=(who, thing, venue, *map(user, writers)) if contrast else (),
            data={**about(case), "item": case.target, "writers": list(writers)},
            facts=(Edge(who, venue, "attendance", case.time),) if contrast else (),
        )

    def _venue(self, thing: str) -> Agent:
        """Where an item is reviewed."""
        return f"venue:{self._stage}/{thing}"

    # -- what happens -----------------------------------------------------------------------------------------------

    async def skip(self, context: Context) -> None:
        """Nothing: a case without a contrast is only put on record."""

    async def write(self, context: Context) -> None:
        """One adopter writes both reviews, side by side; what comes of them is added to the item's thread."""
        (venue,), (who, thing) = context.event.writes, context.event.reads
        look = await self._opinions.look(context, who, thing)
        written = await context.together(
            *(
                Branch(f"review/{sign}", (), partial(self._opinions.review, look=look, sign=sign, venue=venue))
                for sign in SIGNS
            )
        )
        for sign, outcome in zip(SIGNS, written, strict=True):
            if outcome.ok:
                text, message = outcome.value
                keep(context, venue, _slot(sign, context.event.data["writer"]), text, because=[message])

    async def read(self, context: Context) -> None:
        """A test user decides, and then under each condition again."""
        data = context.event.data
        look = await self._opinions.look(context, user(data["user"]), item(data["item"]))
        first = await context.unit("decide/before", partial(self._opinions.decide, look=look, when=BEFORE))
        if not first.ok:
            return
        order = await context.unit("nearest", partial(self._by_similarity, look=look))
        if not order.ok:
            return
        half = min(self._settings.read, len(order.value) // 2)
        sides: dict[Side, Sequence[Version]] = {"similar": order.value[:half], "dissimilar": order.value[-half:]}
        again = partial(self._again, look=look, first=first.value, compared=order.value)
        await context.together(
            *(
                Branch(f"decide/{sign}/{side}", (), partial(again, sign=sign, side=side, memories=memories))
                for sign in SIGNS
                for side, memories in sides.items()
            )
        )

    async def _by_similarity(self, context: Context, look: Look) -> list[Version]:
        """The memories of the writers, the one that is nearest to the test user's first."""
        slot = self._known_by["user"]
        memories = [await context.read(user(name), slot, by=look.user) for name in context.event.data["writers"]]
        near = await self._asker.nearest(context, look.mine.value, [version.value for version in memories])
        return [memories[at] for at in near]

    async def _again(
        self,
        context: Context,
        look: Look,
        first: Decided,
        compared: Sequence[Version],
        sign: Sign,
        side: Side,
        memories: Sequence[Version],
    ) -> None:
        """The test user reads reviews of one sign by the writers of some memories, and decides anew.

        All memories that were ``compared`` are causes of what is shown, as they say whose reviews these are.
        """
        venue = self._venue(context.event.data["item"])
        writers = [ident(version.agent) for version in memories]
        entries = [entry for name in writers for entry in await context.entries(venue, _slot(sign, name), by=look.user)]
        if not entries:
            problem = f"none of the {side} writers has a {sign} review"
            raise UnitFailed(problem, reason="no_review", event=context.event.id)
        shown = tell(context, venue, look.user, "reviews", None, because=[look.mine, *compared, *entries])
        more = {**first.slots, "side": side, "reviews": tuple(entry.value for entry in entries)}
        because = [first.message, shown]
        await self._opinions.decide(context, look, f"{sign} {side}", DECIDE_REVIEWED, more, because)


def _slot(sign: Sign, writer: str) -> str:
    """Where in the thread of an item a writer's review of one sign stands."""
    return f"{sign}:{writer}"
