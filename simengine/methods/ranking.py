"""Rankings as events: which there are, in which order, what their log lines hold, and how candidates are laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from simengine.data import Case, Dataset
from simengine.kernel import Agent, Context, Event, Order, Version
from simengine.llm.replies.ranking import Ranking
from simengine.methods.method import Ranks, Trial
from simengine.methods.turn import tell
from simengine.world import ident, item, user

RANKING = "ranking"
"""The kind of these events, and of the message that holds the order. Reports know rankings by it."""
VENUE = "venue:ranking"


def events(
    phase: int, stage: Ranks, dataset: Dataset, reads: Callable[[str, Case], Sequence[Agent]]
) -> Iterator[Event]:
    """The rankings of a stage, in the total order: by the time of their target, before the interactions of that time.

    A live ranking shares the phase of the stage before, any other has its own. ``reads(strategy, case)`` are the agents
    that a ranking looks at, its user and candidates included.
    """
    place = {name: at for at, name in enumerate(dataset.users)}
    found = [
        _event(phase, stage.name, strategy, trial, place[trial.case.user], reads(strategy, trial.case))
        for trial in stage.trials
        for strategy in stage.strategies
    ]
    yield from sorted(found, key=attrgetter("order"))


def _event(phase: int, stage: str, strategy: str, trial: Trial, place: int, reads: Sequence[Agent]) -> Event:
    case = trial.case
    condition = [trial.group] if trial.group else []
    # -1 lets a live ranking stand before the interactions of its time
    order: Order = (phase, case.time, -1, place, stage, strategy, trial.group, trial.repeat)
    return Event(
        id="/".join((stage, case.user, strategy, *condition, *case.again, str(trial.repeat))),
        kind=RANKING,
        order=order if case.number == 1 else (*order, case.number),
        time=case.time,
        reads=tuple(dict.fromkeys(reads)),
        data=_data(stage, strategy, trial),
    )


def _data(stage: str, strategy: str, trial: Trial) -> dict[str, Any]:
    data = {"stage": stage, **about(trial.case), "strategy": strategy, "repeat": trial.repeat}
    if trial.group:
        data["group"] = trial.group
    if trial.drawn:
        data["candidates"] = list(trial.case.candidates or ())
    if trial.place is not None:
        data |= {"target": trial.case.target, "place": trial.place}
    return data


def about(case: Case) -> dict[str, Any]:
    """What the data of an event that is about a case say of it: the user and, unless it is his first, its number."""
    return {"user": case.user} if case.number == 1 else {"user": case.user, "case": case.number}


def case_of(data: Mapping[str, Any]) -> tuple[str, int]:
    """The key of the case that an event with these data is about."""
    return data["user"], data.get("case", 1)


def laid_out(context: Context, case: Case) -> list[Agent]:
    """The candidates in the order in which they are shown: the event's stream draws it.

    Where the event says at which place the target is to stand, it stands there.
    """
    data = context.event.data
    candidates = [item(name) for name in data.get("candidates") or case.candidates or ()]
    context.random("candidates").shuffle(candidates)
    if "place" in data:
        target = item(data["target"])
        candidates.remove(target)
        candidates.insert(data["place"], target)
    return candidates


def announce(
    context: Context, who: str, candidates: Sequence[Agent], ranking: Ranking, because: Sequence[str | Version]
) -> None:
    """Put a user's order into the log, as item ids; what the reply has left out is named apart."""
    body = {
        "order": [ident(candidates[at]) for at in ranking.order],
        "missing": [ident(candidates[at]) for at in ranking.missing],
    }
    tell(context, user(who), VENUE, RANKING, body, because=because)
