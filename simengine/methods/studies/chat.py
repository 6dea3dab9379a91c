"""A talk in which a person speaks, turn by turn, with InteRecAgent; all of it is in the run's log and journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Annotated, Literal, TypeAlias

import msgspec
from pydantic import Field, PositiveInt

from simengine.errors import InputError
from simengine.kernel import Context, Event, Lookahead, Version
from simengine.llm.layers.local import LOCAL
from simengine.llm.prompts import Slot
from simengine.llm.replies.lines import one_line
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.exchange import Heard
from simengine.methods.interec.memory import PROFILE, RECOMMENDER, USER
from simengine.methods.interec.profile import Profile
from simengine.methods.interec.seeker import SAY
from simengine.methods.interec.tools import FETCHED
from simengine.methods.method import Handler
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import keep, tell
from simengine.world import Edge, user

PERSON = user("person")
"""The agent that stands for whoever speaks."""
SPEAK = "speak"
"""The task of the request that a person answers."""
MODEL = f"{LOCAL}person"
END = "end"
"""The kind of the message that says how the talk ended."""
TALK = "talk"
"""The slot of the venue that keeps all that was said, whatever a critic made of it."""

_End: TypeAlias = Literal["farewell", "limit"]


class ChatSettings(StudySettings):
    """A talk has at most ``turns`` turns, in each of which at most ``k`` items are recommended."""

    turns: PositiveInt = 50
    k: Annotated[int, Field(ge=1, le=FETCHED)] = 5


class Chat:
    """One conversation at ``venue:<stage>/1``, a turn an event that goes on, as in the stage ``converse``.

    What the person says is the answer of the local model ``local:person``, and the request holds all that he can see:
    so it is in the journal, a replay needs nobody, and a fork asks him again only where he would see something else.
    An empty answer is a farewell. He hears the last reply in the turn behind the last, in which he cannot speak.
    """

    def __init__(self, name: str, settings: ChatSettings, ground: Ground) -> None:
        if not isinstance(ground.method, InteRec):
            raise InputError("only the method interec converses", field="method.kind", remedy="say `kind: interec`")
        self._stage = name
        self._settings = settings
        self._recommender = ground.method
        self._asker = ground.asker
        self._about: Mapping[str, Slot] = {"noun": ground.dataset.noun, "size": str(len(ground.dataset.items))}
        self._titles = dict(zip(ground.method.table.items, ground.method.table.titles, strict=True))
        kind = f"{name}.turn"
        self.handlers: Mapping[str, Handler] = {kind: self.turn}
        self.calls: Mapping[str, tuple[int, int]] = {kind: (0, settings.turns * ground.method.turn_calls()[1])}

    def events(self, phase: int) -> Iterator[Event]:
        """The first turn."""
        venue = f"venue:{self._stage}/1"
        yield Event(
            id=f"{self._stage}/talk/1",
            kind=f"{self._stage}.turn",
            order=(phase, 0, 0),
            time=0,
            writes=(venue, PERSON),
            data={"turn": 1, "turns": self._settings.turns, "k": self._settings.k, "items": []},
            facts=(Edge(PERSON, venue, "attendance", 0),),
            lookahead=Lookahead(0, (venue, PERSON)),
        )

    async def turn(self, context: Context) -> None:
        """The person speaks and is answered; then the talk goes on, until nothing more is said."""
        data, (venue, who) = context.event.data, context.event.writes
        heard = await context.entries(venue, TALK, by=venue)
        said = one_line(await self._ask(context, [str(entry.value) for entry in heard]))
        over = data["turn"] > data["turns"]
        if over or not said:
            self._end(context, "limit" if over else "farewell", heard[-1:])
            return
        message = tell(context, who, venue, SAY, {"turn": data["turn"], "text": said}, because=heard)
        keep(context, venue, TALK, f"{USER}{said}", because=[message])
        items = await self._answer(context, Heard(venue, data["turn"], said, message, data["k"]))
        context.go_on(delay=0, data={**data, "turn": data["turn"] + 1, "items": items})

    async def _ask(self, context: Context, talk: Sequence[str]) -> str:
        """What the person says to all that he has seen so far; empty where he says no more."""
        data, (venue, _) = context.event.data, context.event.writes
        learnt = [msgspec.convert(entry.value, Profile) for entry in await context.entries(venue, PROFILE, by=venue)]
        slots: dict[str, Slot] = {
            **self._about,
            "venue": venue,
            "left": str(data["turns"] - data["turn"] + 1),
            "talk": tuple(talk),
            "items": tuple(self._titles[item] for item in data["items"]),
            "profile": str(reduce(Profile.merged, learnt, Profile())),
        }
        return await self._asker.compute(context, SPEAK, SPEAK, MODEL, slots)

    async def _answer(self, context: Context, heard: Heard) -> list[str]:
        """The ids of what the recommender answers with; where he finds no answer, the talk goes on all the same."""
        answer = await self._recommender.answer(context, heard)
        if answer is None:
            return []
        keep(context, heard.venue, TALK, f"{RECOMMENDER}{answer.text}", because=[answer.message])
        return list(answer.items)

    def _end(self, context: Context, how: _End, because: Sequence[Version]) -> None:
        venue, who = context.event.writes
        tell(context, venue, who, END, {"how": how, "turns": context.event.data["turn"] - 1}, because=because)
