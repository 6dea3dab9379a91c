"""Planting: some users are given a preference that they would not have come by, so that it can be followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from simengine.data import Dataset
from simengine.errors import InputError
from simengine.kernel import Context, Event, stream
from simengine.methods.method import Handler, Method
from simengine.methods.turn import remember
from simengine.world import user

PLANT = "plant"
"""The kind of the events by which a preference enters a memory."""
START_PHASE = -1
"""Before every stage."""
_BEFORE_ROWS = -2  # before the interactions, and the live rankings, of its time


class Seeds(BaseModel):
    """Who is given a preference: these users, or so many of the most active, or so many drawn by the seed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    users: Annotated[list[str], Field(min_length=1)] | None = None
    most_active: PositiveInt | None = None
    random: PositiveInt | None = None

    @model_validator(mode="after")
    def _one(self) -> Seeds:
        if sum(value is not None for value in (self.users, self.most_active, self.random)) != 1:
            raise ValueError("say one of `users: [...]`, `most_active: N` and `random: N`")
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
    """The events of the plantings: each puts a statement before what its user says of itself."""

    def __init__(self, settings: PlantSettings, dataset: Dataset, method: Method, seed: int) -> None:
        self._statements = settings.statements if settings.enabled else []
        self._data = dataset
        self._method = method
        self._seed = seed
        self.handlers: Mapping[str, Handler] = {PLANT: self.plant}
        self.calls: Mapping[str, tuple[int, int]] = {PLANT: (0, 0)}

    def events(self) -> Iterator[Event]:
        """The plantings in the total order."""
        first = min(self._data.train.time.tolist(), default=0)
        place = {name: at for at, name in enumerate(self._data.users)}
        found = []
        for number, statement in enumerate(self._statements):
            for name in seeds_of(statement, number, self._data, self._seed):
                start = statement.at == "start"
                time = first if start else statement.at
                assert not isinstance(time, str)
                phase = START_PHASE if start else 0
                found.append(
                    Event(
                        id=f"{PLANT}/{number}/{name}",
                        kind=PLANT,
                        order=(phase, time, _BEFORE_ROWS, number, place[name]),
                        time=time,
                        writes=(user(name),),
                        data={"user": name, "statement": number, "preference": statement.preference},
                    )
                )
        yield from sorted(found, key=lambda event: event.order)

    async def plant(self, context: Context) -> None:
        """The statement comes first in every memory that a user starts with: that is where what is new stands."""
        data: dict[str, Any] = context.event.data
        who = user(data["user"])
        for slot in self._method.initial(who):
            mine = await context.read(who, slot, by=who)
            text = f"{data['preference']}\n{mine.value}" if mine.value else data["preference"]
            remember(context, who, slot, text, because=[mine])


def seeds_of(statement: Statement, number: int, dataset: Dataset, seed: int) -> Sequence[str]:
    """The users who are given the statement of this number. Raises :class:`InputError` for one that is not there."""
    seeds, users = statement.seeds, dataset.users
    field = f"plant.statements[{number}].seeds"
    if seeds.users is not None:
        unknown = [name for name in seeds.users if name not in set(users)]
        if unknown:
            raise InputError("there is no such user in the data", field=f"{field}.users", value=unknown[0])
        return seeds.users
    wanted = seeds.most_active or seeds.random or 0
    if wanted > len(users):
        remedy = f"the data have {len(users)} users"
        raise InputError("more seeds are asked for than there are users", remedy=remedy, field=field, value=wanted)
    if seeds.random is not None:
        return stream(seed, PLANT, str(number)).sample(list(users), wanted)
    active = Counter(users[at] for at in dataset.train.user.tolist())
    return sorted(users, key=lambda name: -active[name])[:wanted]  # stable: equally active ones in the order of users
