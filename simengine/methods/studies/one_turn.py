"""One-turn recommendation: one request at the end of a written talk, and its answer (section 4.1, appendix B.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt

from simengine.data import Case, Dataset
from simengine.errors import InputError
from simengine.kernel import Context, Event, stream
from simengine.llm.prompts import Slot
from simengine.llm.replies import dialogue
from simengine.llm.replies.dialogue import Exchange
from simengine.llm.task import Json, Slots, Task
from simengine.methods.interec import naming
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.exchange import Heard
from simengine.methods.interec.memory import accept
from simengine.methods.interec.seeker import SAY, had, titles
from simengine.methods.interec.tools import FETCHED
from simengine.methods.method import Handler
from simengine.methods.study import Ground, StudySettings
from simengine.methods.turn import tell
from simengine.world import Edge, user

RETRIEVAL: Final = "retrieval"
RANKING: Final = "ranking"
"""What is asked for: some items of the whole catalogue, or an order of those that the user lists."""
DIALOGUE = "dialogue"
"""The unit in which the talk is written, and the kind of the messages that it is made of."""
END = "end"
"""The kind of the message that says whether there was an answer, and whether the talk named the target by chance."""

_WISHES = {RETRIEVAL: "recommendations.", RANKING: "an order for a list of things."}
_AMBIGUOUS = "the target shares its title with another item"
_ALONE = "there is nothing to rank the target among"

_TaskName: TypeAlias = Literal["retrieval", "ranking"]
_Listed: TypeAlias = tuple[list[str], str]
"""The items of a list; where there are none, why."""


def _history(slots: Slots) -> str:
    return "\n".join(slots["history"])


TALK = Task(
    "converse.dialogue",
    "one_turn.dialogue",
    lambda text, slots: dialogue.read(text, _history(slots)),
    Json(dialogue.JSON, lambda text, slots: dialogue.read_json(text, _history(slots))),
)


def _each_once(tasks: tuple[_TaskName, ...]) -> tuple[_TaskName, ...]:
    if len(set(tasks)) < len(tasks):
        raise ValueError("a task stands here twice")
    return tasks


class OneTurnSettings(StudySettings):
    """``tasks`` are what is asked for: ``retrieval`` of ``k`` items from the whole catalogue, and ``ranking`` of so
    many ``candidates``, the target among them.

    ``users`` says of how many test users the cases are played, all where it is not said; they are the first ones.
    ``words`` is the length that is asked of a written talk.
    """

    tasks: Annotated[tuple[_TaskName, ...], Field(min_length=1), AfterValidator(_each_once)] = (RETRIEVAL, RANKING)
    k: Annotated[int, Field(ge=1, le=FETCHED)] = 5
    candidates: Annotated[int, Field(ge=2, le=FETCHED)] = 20
    users: PositiveInt | None = None
    words: PositiveInt = 200


class OneTurn:
    """The study on one data set: one event a task and test case, with a talk and a venue of its own.

    The talk is written by the model from what the user has had before the target, in the order of the data, and from
    nothing else; each task has its own, as in the paper. It enters the recommender's dialogue as if accepted. Then the
    user makes his one request, and the recommender answers it as it would in a conversation.

    The negatives of a ranking are drawn uniformly from what is not known of the user, where items have domains from the
    target's, by a stream of the test case: every run with the same seed and data has the same list, in the same order.
    No negative shares its title with another item; where the target does, nothing can be asked, and the event says so.
    """

    def __init__(self, name: str, settings: OneTurnSettings, ground: Ground) -> None:
        if not isinstance(ground.method, InteRec):
            raise InputError("only the method interec converses", field="method.kind", remedy="say `kind: interec`")
        of_method = ground.method.settings
        if of_method.long_term:
            problem = "a one-turn evaluation has no long-term memory (section 4.1)"
            raise InputError(problem, field="method.long_term", remedy="Leave it out, or say false.")
        ranks = of_method.recommender != "chat_rec"
        if not ranks and settings.tasks == (RANKING,):
            problem = "Chat-Rec retrieves candidates by itself, so it has no list to rank (section 4.3)"
            raise InputError(problem, field="stages.one_turn.tasks", remedy="Let it retrieve, or take `bare`.")
        self._stage, self._settings = name, settings
        self._recommender, self._asker = ground.method, ground.asker
        table = ground.method.table
        self._titles = titles(ground.dataset, table)
        self._tasks = tuple(task for task in settings.tasks if ranks or task != RANKING)
        self._left_out = [task for task in settings.tasks if task not in self._tasks]
        cases = ground.dataset.cases
        users = frozenset(list(dict.fromkeys(case.user for case in cases))[: settings.users])
        self._cases = [case for case in cases if case.user in users]
        self._lists = self._laid_out(ground.dataset, ground.seed) if RANKING in self._tasks else {}
        least, most = (1 + calls for calls in ground.method.turn_calls())
        self.handlers: Mapping[str, Handler] = {f"{name}.{task}": self.answer for task in self._tasks}
        self.calls: Mapping[str, tuple[int, int]] = {
            f"{name}.{task}": (0 if task == RANKING and any(why for _, why in self._lists.values()) else least, most)
            for task in self._tasks
        }

    def events(self, phase: int) -> Iterator[Event]:
        """The events of all tasks, by the cases' times and then by their positions."""
        for time, at in sorted((case.time, at) for at, case in enumerate(self._cases)):
            for place, task in enumerate(self._tasks):
                yield self._event((phase, time, at, place), task, at)

    def _event(self, order: tuple[Any, ...], task: str, at: int) -> Event:
        case = self._cases[at]
        venue = f"venue:{self._stage}/{task}/{case.user}/{case.number}"
        listed, skip = self._lists[at] if task == RANKING else ([], "")
        k = self._settings.candidates if task == RANKING else self._settings.k
        data = {"user": case.user, "item": case.target, "case": at, "k": k, "candidates": listed, "skip": skip}
        return Event(
            id=f"{self._stage}/{task}/{case.user}/{case.number}",
            kind=f"{self._stage}.{task}",
            order=order,
            time=case.time,
            writes=(venue,),
            data={**data, "left_out": self._left_out},
            facts=(Edge(user(case.user), venue, "attendance", case.time),),
        )

    def _laid_out(self, dataset: Dataset, seed: int) -> dict[int, _Listed]:
        """For each case the items to rank, in the order in which they are listed; or why there are none."""
        table = self._recommender.table
        clear = [it for at, it in enumerate(table.items) if table.by_title.find(self._titles[it]).named == (at,)]
        known = frozenset(clear)
        return {
            at: self._list(case, dataset, clear, seed) if case.target in known else ([], _AMBIGUOUS)
            for at, case in enumerate(self._cases)
        }

    def _list(self, case: Case, dataset: Dataset, pool: Sequence[str], seed: int) -> _Listed:
        domain, out = dataset.items[case.target].domain, {*dataset.own[case.user], case.target}
        others = [it for it in pool if it not in out and dataset.items[it].domain == domain]
        draws = stream(seed, "candidates", self._stage, case.user, *case.again)
        listed = draws.sample(others, min(self._settings.candidates - 1, len(others)))
        listed.insert(draws.randrange(len(listed) + 1), case.target)
        return (listed, "") if len(listed) > 1 else ([], _ALONE)

    # -- what happens -----------------------------------------------------------------------------------------------

    async def answer(self, context: Context) -> None:
        """A talk is written and taken in, the user makes his request, and the recommender answers."""
        data, (venue,) = context.event.data, context.event.writes
        if data["skip"]:
            return
        case, who = self._cases[data["case"]], user(data["user"])
        told = had(case, self._titles)
        written = await context.unit(DIALOGUE, partial(self._write, had=told))
        if not written.ok:
            return
        causes: list[str] = []
        number = len(written.value) + 1
        for said, answered in written.value:
            first = tell(context, who, venue, DIALOGUE, {"text": said}, because=causes)
            causes = [tell(context, venue, who, DIALOGUE, {"text": answered}, because=[first])]
            accept(context, venue, (said, answered), (first, causes[0]))
        request = self._request(data)
        asked = tell(context, who, venue, SAY, {"turn": number, "text": request}, because=causes)
        heard = Heard(venue, number, request, asked, len(data["candidates"]) or data["k"])
        answer = await self._recommender.answer(context, heard)
        spoken = " ".join(text for exchange in written.value for text in exchange)
        named = naming.names(spoken, self._titles[case.target], told)
        body = {"how": "error" if answer is None else "answer", "named": named}
        tell(context, venue, who, END, body, because=[asked if answer is None else answer.message])

    async def _write(self, context: Context, had: Sequence[str]) -> tuple[Exchange, ...]:
        wish = _WISHES[context.event.kind.rpartition(".")[2]]
        slots: dict[str, Slot] = {"history": tuple(had), "wish": wish, "limit": str(self._settings.words)}
        return await self._asker.ask(context, TALK, slots)

    def _request(self, data: Mapping[str, Any]) -> str:
        """What the user asks for in his one turn."""
        if not data["candidates"]:
            return self._asker.text("one_turn.retrieval", {"count": str(data["k"])})
        listed = [f"- {self._titles[it]}" for it in data["candidates"]]
        return self._asker.text("one_turn.ranking", {"count": str(len(listed)), "listed": "\n".join(listed)})
