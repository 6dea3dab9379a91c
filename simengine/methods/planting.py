"""Planting: some users are given a preference that they would not have come by, so that it can be followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from simengine.data import Dataset
from simengine.errors import InputError, UnitFailed
from simengine.kernel import Context, Event, Lookahead, Order, stream
from simengine.methods.method import GROUPING, Handler, Method, Settings
from simengine.methods.turn import remember
from simengine.world import user

log = structlog.get_logger("simengine")

PLANT = "plant"
"""The kind of the events by which a preference enters a memory: one event a seed, whose name is in its data."""
DRAW = f"{PLANT}.draw"
"""The kind of the events that find the seeds in a group. Each schedules a planting for every seed that it finds."""
LARGEST = "largest"
"""Stands for whichever group has most members."""
START_PHASE = -1
"""Before every stage."""
_BEFORE_ROWS = -2  # before the interactions, and the live rankings, of its time


class Seeds(BaseModel):
    """Who is given a preference: these users, or so many of the most active, or so many drawn by the seed, or a group.

    ``in_group`` is ``largest``, or the name of a group (in any case) or its id, among the groups that there are when
    the preference is planted; of several with one name it is the largest. All members are seeds, or ``count`` of them,
    drawn by the seed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    users: Annotated[list[str], Field(min_length=1)] | None = None
    most_active: PositiveInt | None = None
    random: PositiveInt | None = None
    in_group: Annotated[str, Field(min_length=1)] | None = None
    count: PositiveInt | None = None

    @model_validator(mode="after")
    def _one(self) -> Seeds:
        rules = (self.users, self.most_active, self.random, self.in_group)
        if sum(rule is not None for rule in rules) != 1:
            raise ValueError("say one of `users: [...]`, `most_active: N`, `random: N` and `in_group: NAME`")
        if self.count is not None and self.in_group is None:
            raise ValueError("`count` says how many members of a group are seeds, so it goes with `in_group`")
        return self


class Statement(BaseModel):
    """A preference, who is given it, and when: before all else, or at a time of the data's clock."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    preference: Annotated[str, Field(min_length=1)]
    seeds: Seeds
    at: Literal["start"] | int | float = "start"


class PlantSettings(BaseModel):
    """The preferences of a study. With ``enabled: false`` nobody is given them: that is the control.

    Each statement is a planting of its own; intervals of what is measured resample plantings, so give several.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    statements: list[Statement] = []


class Planting:
    """The events of the plantings: each puts a statement before what its user says of itself.

    ``phase`` is that of the interactions. Who is in a group is known only when its preference is planted. So an event
    looks then, reads the groups alone, and schedules a planting for each seed: none takes part in that of another.
    """

    def __init__(self, settings: PlantSettings, dataset: Dataset, method: Method, seed: int, phase: int) -> None:
        self._statements = settings.statements if settings.enabled else []
        self._data = dataset
        self._method = method
        self._seed = seed
        self._phase = phase
        self.handlers: Mapping[str, Handler] = {PLANT: self.plant, DRAW: self.draw}
        self.calls: Mapping[str, tuple[int, int]] = {PLANT: (0, 0), DRAW: (0, 0)}

    def events(self) -> Iterator[Event]:
        """The plantings in the total order."""
        first = min(self._data.train.time.tolist(), default=0)
        found: list[Event] = []
        for number, statement in enumerate(self._statements):
            start = statement.at == "start"
            time = first if start else statement.at
            assert not isinstance(time, str)
            order = (START_PHASE if start else self._phase, time, _BEFORE_ROWS, number)
            grouped = statement.seeds.in_group is not None
            found += [self._draw(number, order)] if grouped else self._plantings(number, order)
        yield from sorted(found, key=lambda event: event.order)

    def _plantings(self, number: int, order: Order) -> Iterator[Event]:
        statement = self._statements[number]
        place = {name: at for at, name in enumerate(self._data.users)}
        for name in _seeds(statement, number, self._data, self._seed):
            yield Event(
                id=f"{PLANT}/{number}/{name}",
                kind=PLANT,
                order=(*order, place[name]),
                time=order[1],
                writes=(user(name),),
                data={"user": name, "statement": number, "preference": statement.preference},
            )

    def _draw(self, number: int, order: Order) -> Event:
        statement = self._statements[number]
        seeds = {"in_group": statement.seeds.in_group, "count": statement.seeds.count}
        return Event(
            id=f"{PLANT}/{number}",
            kind=DRAW,
            order=order,
            time=order[1],
            reads=(GROUPING,),
            data={**seeds, "statement": number, "preference": statement.preference},
            lookahead=Lookahead(0, tuple(map(user, self._data.users))),
        )

    async def draw(self, context: Context) -> None:
        """Find the seeds in a group as the groups are now; fails where there is no such group, or too small a one."""
        data: dict[str, Any] = context.event.data
        groups = (await context.read(GROUPING, "groups", by=GROUPING)).value
        try:
            group = _found(groups, data["in_group"])
            names = _drawn(context, group["members"], data["count"])
        except UnitFailed as failed:
            log.warning("nobody was planted", where=context.event.id, preference=data["preference"], why=failed.problem)
            raise
        told = {"statement": data["statement"], "preference": data["preference"], "group": group["id"]}
        for name in names:
            context.spawn(PLANT, delay=0, writes=(user(name),), data={"user": name, **told})

    async def plant(self, context: Context) -> None:
        """The statement comes first in every memory that a user starts with: that is where what is new stands."""
        data: dict[str, Any] = context.event.data
        who = user(data["user"])
        for slot in self._method.initial(who):
            mine = await context.read(who, slot, by=who)
            text = f"{data['preference']}\n{mine.value}" if mine.value else data["preference"]
            remember(context, who, slot, text, because=[mine])


def check_plantings(settings: PlantSettings, dataset: Dataset, method: Settings, seed: int, interactions: int) -> None:
    """See beforehand that seeds can be there; ``interactions`` are how many of the training ones are re-enacted.

    Raises :class:`InputError` for users who are not in the data or named twice, more seeds than users, and, unless the
    plantings are switched off, groups that there never are or not yet.
    """
    for number, statement in enumerate(settings.statements):
        if statement.seeds.in_group is None:
            _seeds(statement, number, dataset, seed)
            continue
        _enough(statement.seeds.count or 1, dataset, f"plant.statements[{number}].seeds.count")
        if settings.enabled:
            _check_groups(statement, number, dataset, method, interactions)


def _check_groups(statement: Statement, number: int, dataset: Dataset, method: Settings, interactions: int) -> None:
    """Refuse a planting before the first groups are in force."""
    behind = method.grouped_behind(dataset.train.time[:interactions].tolist(), dataset.unit)
    if behind is None:
        raise InputError(
            f"{method.kind} as it is set forms no groups in {interactions} interactions, so no seeds are found in one",
            field=f"plant.statements[{number}].seeds.in_group",
            value=statement.seeds.in_group,
            remedy="name seeds by `users`, `most_active` or `random`, or let the method form groups, as "
            "`{kind: agentcfpp, every: 200}` does behind every 200 interactions",
        )
    first = dataset.train.time[behind - 1].item()
    if statement.at == "start" or statement.at <= first:
        raise InputError(
            "there are no groups yet when this is planted",
            field=f"plant.statements[{number}].at",
            value=statement.at,
            remedy=f"the first groups are in force behind interactions of time {first}: give a time after it",
        )


def _seeds(statement: Statement, number: int, dataset: Dataset, seed: int) -> Sequence[str]:
    """The users who are given the statement of this number.

    Raises :class:`InputError` for one that is not there, or is named twice.
    """
    seeds, users = statement.seeds, dataset.users
    field = f"plant.statements[{number}].seeds"
    if seeds.users is not None:
        unknown = [name for name in seeds.users if name not in set(users)]
        if unknown:
            raise InputError("there is no such user in the data", field=f"{field}.users", value=unknown[0])
        twice = [name for name, count in Counter(seeds.users).items() if count > 1]
        if twice:
            raise InputError("this user is named twice", remedy="name it once", field=f"{field}.users", value=twice[0])
        return seeds.users
    wanted = seeds.most_active or seeds.random or 0
    _enough(wanted, dataset, field)
    if seeds.random is not None:
        return stream(seed, PLANT, str(number)).sample(list(users), wanted)
    active = Counter(users[at] for at in dataset.train.user.tolist())
    return sorted(users, key=lambda name: -active[name])[:wanted]  # stable: equally active ones in the order of users


def _enough(wanted: int, dataset: Dataset, field: str) -> None:
    there = len(dataset.users)
    if wanted > there:
        remedy = f"the data have {there} users"
        raise InputError("more seeds are asked for than there are users", remedy=remedy, field=field, value=wanted)


def _found(groups: Sequence[Mapping[str, Any]], wanted: str) -> Mapping[str, Any]:
    """The group of this name or id, or the largest. Groups stand in the order of their size."""
    if not groups:
        raise UnitFailed("there are no groups yet", reason="no groups")
    if wanted == LARGEST:
        return groups[0]
    for group in groups:
        if group["id"] == wanted or group["name"].casefold() == wanted.casefold():
            return group
    there = ", ".join(group["name"] for group in groups)
    raise UnitFailed(f"there is no group {wanted!r}; there are {there}", reason="no such group")


def _drawn(context: Context, members: Sequence[str], count: int | None) -> Sequence[str]:
    """All members of a group, or so many of them, drawn by the event's stream."""
    if count is None:
        return members
    if count > len(members):
        problem = f"the group has {len(members)} members, and {count} were to be seeds"
        raise UnitFailed(problem, reason="group too small")
    return context.random("seeds").sample(list(members), count)
