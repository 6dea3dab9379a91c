"""Conversations: users look for an item in a talk with a recommender of their own (section 4.1 of InteRecAgent)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import PositiveInt

from simengine.data import Case
from simengine.errors import InputError
from simengine.kernel import Context, Event
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.exchange import RECOMMENDER, USER, Heard
from simengine.methods.interec.seeker import NAMED, Seekers
from simengine.methods.method import Handler
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import tell
from simengine.world import Edge, user

END = "end"
"""The kind of the message that says how a conversation ended."""


class ConverseSettings(StudySettings):
    """A conversation has at most ``turns`` turns, in each of which at most ``k`` items are recommended.

    ``users`` says how many test users talk, all where it is not said; they are the first ones. ``user_words`` is the
    length that is asked of what users say. A message of a user that names the target, or tells too much, is asked for
    at most ``tries`` times.
    """

    turns: PositiveInt = 5
    k: PositiveInt = 5
    users: PositiveInt | None = None
    user_words: PositiveInt = 60
    tries: PositiveInt = 5


class Converse:
    """The study on one data set: session-wise, so that nothing is known of a user but what this talk has told.

    The user of a test case knows his history and the target's attributes, and never names the target. The conversation
    ends by a ``hit``, when the target's id is among the items that were fetched for a reply; by a ``farewell`` of the
    user; at the ``limit`` of turns; or by an ``error``, where the model gave nothing that can be read. All of it is one
    event at the time of the target, which writes the venue alone: user and recommender meet nowhere else.
    """

    def __init__(self, name: str, settings: ConverseSettings, ground: Ground) -> None:
        if not isinstance(ground.method, InteRec):
            raise InputError("only the method interec converses", field="method.kind", remedy="say `kind: interec`")
        self._stage = name
        self._settings = settings
        self._recommender = ground.method
        cases = ground.dataset.cases
        self._cases = cases[: len(cases) if settings.users is None else settings.users]
        self._seekers = Seekers(ground.dataset, ground.method.table, ground.asker, settings.user_words, settings.tries)
        kind = f"{name}.talk"
        most = settings.turns * (settings.tries + ground.method.turn_calls()[1])
        self.handlers: Mapping[str, Handler] = {kind: self.talk}
        self.calls: Mapping[str, tuple[int, int]] = {kind: (1, most)}

    def events(self, phase: int) -> Iterator[Event]:
        """One conversation a case, by the cases' times and then by their positions."""
        seen: Counter[str] = Counter()
        for time, at in sorted((case.time, at) for at, case in enumerate(self._cases)):
            case = self._cases[at]
            seen[case.user] += 1
            yield self._event((phase, time, at), case, at, seen[case.user])

    def _event(self, order: tuple[Any, ...], case: Case, at: int, number: int) -> Event:
        venue, who = f"venue:{self._stage}/{case.user}/{number}", user(case.user)
        return Event(
            id=f"{self._stage}/talk/{case.user}/{number}",
            kind=f"{self._stage}.talk",
            order=order,
            time=case.time,
            writes=(venue, who),  # the user too, since he is in one conversation at a time
            data={
                "user": case.user,
                "item": case.target,
                "case": at,
                "turns": self._settings.turns,
                "k": self._settings.k,
            },
            facts=(Edge(who, venue, "attendance", case.time),),
        )

    async def talk(self, context: Context) -> None:
        """The conversation, to its end."""
        (venue, who), case = context.event.writes, self._cases[context.event.data["case"]]
        lines: list[str] = []
        marks: dict[str, None] = {}
        last = ""
        how: Literal["hit", "farewell", "limit", "error"] = "limit"
        for number in range(1, self._settings.turns + 1):
            said = await self._seekers.say(context, number, case, lines, last)
            if said is None:
                how = "error"
                break
            last = said.message
            marks |= dict.fromkeys(said.marks)
            if said.goodbye:
                how = "farewell"
                break
            answer = await self._recommender.answer(context, Heard(venue, number, said.text, last, self._settings.k))
            if answer is None:
                how = "error"
                break
            lines += [f"{USER}{said.text}", f"{RECOMMENDER}{answer.text}"]
            last = answer.message
            if case.target in answer.items:
                how = "hit"
                break
        body = {"how": how, "turns": number, "named": NAMED in marks, "marks": list(marks)}
        tell(context, venue, who, END, body, because=[last] if last else [])
