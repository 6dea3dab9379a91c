"""Conversations: users look for an item in a talk with a recommender of their own (section 4.1 of InteRecAgent)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from simengine.data import Case
from simengine.errors import InputError
from simengine.kernel import Branch, Context, Event, Lookahead, Version
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.exchange import Heard
from simengine.methods.interec.memory import RECOMMENDER, USER, accept
from simengine.methods.interec.seeker import CHAT, DESCRIBE, NAMED, SHARE, Said, Seekers
from simengine.methods.interec.tools import FETCHED
from simengine.methods.method import Handler
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import keep, tell
from simengine.world import Edge, user

END = "end"
"""The kind of the message that says how a conversation ended."""
DAY = "day"
"""The kind of the messages of talks of earlier days."""
TALK = "talk"
"""The slot of a conversation's venue that keeps all that was said, whatever a critic made of it."""

_SHORT, _LONG = 5, 50  # turns
_ALTERNATE = 5  # turns for which the user of a long chat informs, or just chats
_DAY_WORDS = 120  # of the talk of an earlier day

_End: TypeAlias = Literal["hit", "farewell", "limit", "error"]


class ConverseSettings(StudySettings):
    """``mode: session`` is a talk of which nothing else is known; it has at most 5 ``turns``. In a ``long_chat``, of at
    most 50, the user gives information for five turns, just chats for five, and so on. Before a ``long_context`` talk,
    which goes on like a session, stand talks of as many earlier ``days``, in which the user told what he has had.

    In each turn at most ``k`` items are recommended. A talk keeps the ``turns`` and the ``k`` that it began with, even
    in a fork from the middle of it.

    ``users`` says how many test users talk, all where it is not said; they are the first ones. ``user_words`` is the
    length that is asked of what users say. A message of a user that names the target, or tells too much, is asked for
    at most ``tries`` times.
    """

    mode: Literal["session", "long_chat", "long_context"] = "session"
    turns: PositiveInt | None = None
    k: Annotated[int, Field(ge=1, le=FETCHED)] = 5
    users: PositiveInt | None = None
    user_words: PositiveInt = 60
    tries: PositiveInt = 5
    days: PositiveInt = 3

    @model_validator(mode="after")
    def _days_count(self) -> ConverseSettings:
        if "days" in self.model_fields_set and self.mode != "long_context":
            error = ValueError(f"there are no earlier days before a talk of the mode {self.mode}")
            error.add_note("Leave `days` out, or say `mode: long_context`.")
            raise error
        return self

    @property
    def most_turns(self) -> int:
        """How many turns a conversation has at most."""
        return self.turns or (_LONG if self.mode == "long_chat" else _SHORT)


class Converse:
    """The study on one data set. Nothing is known of a user but what his talk, and those of earlier days, have told.

    The user of a test case knows his history and the target's attributes, and never names the target. The conversation
    ends by a ``hit``, when the target's id is among the items that were fetched for a reply; by a ``farewell`` of the
    user; at the ``limit`` of turns; or by an ``error``, where the model gave nothing that can be read. Each turn is an
    event that writes the venue and the user, and goes on with the next one at the same time, the target's: a talk takes
    no simulated time, so that a user's next one begins when this one is over.
    """

    def __init__(self, name: str, settings: ConverseSettings, ground: Ground) -> None:
        if not isinstance(ground.method, InteRec):
            raise InputError("only the method interec converses", field="method.kind", remedy="say `kind: interec`")
        if settings.mode == "session" and ground.method.settings.long_term:
            raise InputError(
                "a session is told nothing of other talks, and has no long-term memory (section 4.1)",
                field="method.long_term",
                remedy="say `long_term: false`, or `mode: long_chat` or `long_context` of the stage",
            )
        self._stage = name
        self._settings = settings
        self._recommender = ground.method
        self._cases = ground.dataset.cases
        self._users = frozenset(list(dict.fromkeys(case.user for case in self._cases))[: settings.users])
        self._seekers = Seekers(ground.dataset, ground.method.table, ground.asker, settings.user_words, settings.tries)
        kind = f"{name}.turn"
        most = settings.most_turns * (settings.tries + ground.method.turn_calls()[1])
        most += settings.days if settings.mode == "long_context" else 0
        self.handlers: Mapping[str, Handler] = {kind: self.turn}
        self.calls: Mapping[str, tuple[int, int]] = {kind: (1, most)}

    def events(self, phase: int) -> Iterator[Event]:
        """The first turn of one conversation a case, by the cases' times and then by their positions."""
        for time, at in sorted((case.time, at) for at, case in enumerate(self._cases) if case.user in self._users):
            yield self._event((phase, time, at), self._cases[at], at)

    def _event(self, order: tuple[Any, ...], case: Case, at: int) -> Event:
        venue, who = f"venue:{self._stage}/{case.user}/{case.number}", user(case.user)
        first = 0 if self._settings.mode == "long_context" and self._seekers.had(case) else 1
        data = {"user": case.user, "item": case.target, "case": at, "turn": first}
        return Event(
            id=f"{self._stage}/talk/{case.user}/{case.number}",
            kind=f"{self._stage}.turn",
            order=order,
            time=case.time,
            writes=(venue, who),
            data={**data, "turns": self._settings.most_turns, "k": self._settings.k, "marks": []},
            facts=(Edge(who, venue, "attendance", case.time),),
            lookahead=Lookahead(0, (venue, who)),
        )

    async def turn(self, context: Context) -> None:
        """The user speaks and is answered; then the conversation ends, or goes on with the next turn.

        Turn 0 are the talks of earlier days.
        """
        data, (venue, _) = context.event.data, context.event.writes
        if not data["turn"]:
            marks = await self._before(context, self._cases[data["case"]])
            context.go_on(delay=0, data={**data, "turn": 1, "marks": marks})
            return
        case = self._cases[data["case"]]
        heard = await context.entries(venue, TALK, by=venue)
        said = await self._seekers.say(context, case, heard, self._intent(data["turn"]))
        if said is None:
            self._end(context, "error", data["marks"], heard[-1:])
            return
        keep(context, venue, TALK, f"{USER}{said.text}", because=[said.message])
        marks = list(dict.fromkeys([*data["marks"], *said.marks]))
        how, last = await self._answered(context, case, said)
        if how is None:
            context.go_on(delay=0, data={**data, "turn": data["turn"] + 1, "marks": marks})
        else:
            self._end(context, how, marks, [last])

    def _intent(self, turn: int) -> str:
        """What a user's message is for; his own affair, except in a long chat."""
        if self._settings.mode != "long_chat":
            return ""
        block, at = divmod(turn - 1, _ALTERNATE)
        return CHAT if block % 2 else (SHARE, DESCRIBE)[at % 2]

    async def _before(self, context: Context, case: Case) -> list[str]:
        """The talks of earlier days, each about a part of what the user has had, enter the dialogue as if accepted.

        What they mark the conversation with: their writer does not know the target, but may name it by chance.
        """
        venue, who = context.event.writes
        known = await self._seekers.history(context, case)
        titles, days = str(known.value).splitlines(), self._settings.days
        parts = [titles[len(titles) * day // days : len(titles) * (day + 1) // days] for day in range(days)]
        talks = [
            Branch(f"day/{day}", (), partial(self._seekers.day, titles=part, words=_DAY_WORDS))
            for day, part in enumerate(parts, 1)
            if part
        ]
        named = False
        for talk in await context.together(*talks):
            for said, told in talk.value if talk.ok else ():
                first = tell(context, who, venue, DAY, {"text": said}, because=[known])
                accept(context, venue, (said, told), (first, tell(context, venue, venue, DAY, {"text": told}, [first])))
                named = named or self._seekers.named(f"{said} {told}", case)
        return [NAMED] if named else []

    async def _answered(self, context: Context, case: Case, said: Said) -> tuple[_End | None, str]:
        """How the talk ends with this turn, if it does, and the message by which."""
        data, (venue, _) = context.event.data, context.event.writes
        if said.goodbye:
            return "farewell", said.message
        heard = Heard(venue, data["turn"], said.text, said.message, data["k"])
        answer = await self._recommender.answer(context, heard)
        if answer is None:
            return "error", said.message
        keep(context, venue, TALK, f"{RECOMMENDER}{answer.text}", because=[answer.message])
        if case.target in answer.items:
            return "hit", answer.message
        return ("limit" if data["turn"] == data["turns"] else None), answer.message

    def _end(self, context: Context, how: _End, marks: Sequence[str], because: Sequence[str | Version]) -> None:
        venue, who = context.event.writes
        body = {"how": how, "turns": context.event.data["turn"], "named": NAMED in marks, "marks": list(marks)}
        tell(context, venue, who, END, body, because=because)
