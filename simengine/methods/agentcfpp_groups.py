"""How interest groups of AgentCF++ come to be: tags of every user, clusters of tags, a name for each that is kept.

Behind every so many training interactions, or once in a period, an event forms the groups anew, from all users'
memories as they are there.
It writes one version of the whole grouping. With a lag it writes a draft, which a later event puts in force: whoever
reads the grouping in between goes by the former one and waits for nothing. Then a child event brings the membership
edges into the graph. Groups of former groupings keep their names, so that a log tells who was in which of them when.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from simengine.data import Dataset, Interactions
from simengine.kernel import Agent, Branch, Context, Event, Lookahead, Order, Version
from simengine.llm.prompts import Slot
from simengine.llm.task import GROUP_NAMING, GROUP_TAGS
from simengine.methods.agentcfpp_memory import Memories
from simengine.methods.agentcfpp_settings import AgentCFppSettings
from simengine.methods.method import GROUPING, Handler
from simengine.methods.turn import Asker, Fit, remember, tell
from simengine.world import Edge, user

FORM, ADOPT, JOIN = "grouping.form", "grouping.adopt", "grouping.join"
"""The kinds of event: groups are formed, those formed before are put in force, their members join them."""
DRAFT = "grouping:draft"
"""The agent that keeps what was formed until it is in force."""
TAGS = "tags"
"""The slot with the tags of each user, and the kind of the message in which a user says them."""
NAME_WORDS = 8
"""How long the name of a group may be."""


class Groups:
    """Forms the groups of one data set."""

    def __init__(self, settings: AgentCFppSettings, dataset: Dataset, asker: Asker, memories: Memories) -> None:
        self._settings = settings
        self._data = dataset
        self._asker = asker
        self._memories = memories
        self._target = DRAFT if settings.lag else GROUPING
        self.handlers: Mapping[str, Handler] = {FORM: self.form, ADOPT: self.adopt, JOIN: self.join}
        asked = 0 if settings.groups_by == "history" else len(dataset.users) + settings.kept
        self.calls: Mapping[str, tuple[int, int]] = {FORM: (0, asked), ADOPT: (0, 0), JOIN: (0, 0)}

    @staticmethod
    def initial() -> Mapping[str, Any]:
        """Before groups are formed for the first time there are none, and nobody has said what interests him."""
        return {"groups": [], TAGS: {}}

    # -- events -----------------------------------------------------------------------------------------------------

    def events(self, phase: int, train: Interactions) -> Iterator[Event]:
        """The formations, and where there is a lag the events that put them in force, in the total order."""
        lag, last = self._settings.lag, len(train) - 1
        found = []
        for number, behind in enumerate(self._settings.formed_behind(train.time.tolist(), self._data.unit), 1):
            row = behind - 1
            found.append(self._event(FORM, number, train, row, (phase, *train.order(row), number, 0)))
            if lag:
                row = min(row + lag, last)
                found.append(self._event(ADOPT, number, train, row, (phase, *train.order(row), number, 1)))
        yield from sorted(found, key=lambda event: event.order)

    def _event(self, kind: str, number: int, train: Interactions, row: int, order: Order) -> Event:
        """An event behind a row of the training interactions, whose children make edges and write nothing."""
        everybody = tuple(map(user, self._data.users)) if self._settings.groups_by == "interests" else ()
        forms = kind == FORM
        return Event(
            id=f"{kind}/{number}",
            kind=kind,
            order=order,
            time=train.time[row].item(),
            writes=(self._target if forms else GROUPING,),
            reads=everybody if forms else (DRAFT,),
            data={"formation": number, "behind": row + 1},
            lookahead=None if forms and self._settings.lag else Lookahead(0, ()),
        )

    # -- what happens in them -----------------------------------------------------------------------------------------

    async def form(self, context: Context) -> None:
        """Find the groups (section 3.1); where that fails, the former ones stay."""
        formed = self._by_history if self._settings.groups_by == "history" else self._by_interests
        await formed(context)

    async def adopt(self, context: Context) -> None:
        """Put in force what was formed last."""
        draft = await context.read(DRAFT, "groups", by=GROUPING)
        former = await context.read(GROUPING, "groups", by=GROUPING)
        if draft.value != former.value:
            self._put(context, GROUPING, draft.value, [draft])

    async def join(self, context: Context) -> None:
        """The edges of the event are all there is to it."""

    async def _by_interests(self, context: Context) -> None:
        former = await context.read(self._target, TAGS, by=self._target)
        known = {name: await self._telling(context, user(name)) for name in self._data.users}
        asked = [name for name, memories in known.items() if memories]
        branches = [
            Branch(f"tags/{place}/{name}", (), partial(self._say_tags, who=user(name), memories=known[name]))
            for place, name in enumerate(asked, 1)
        ]
        outcomes = await context.together(*branches)
        said = {name: outcome.value for name, outcome in zip(asked, outcomes, strict=True) if outcome.ok}
        if not said:
            return
        # whose answer cannot be read, or who has nothing to say, keeps the tags of the time before
        told = {**former.value, **{name: list(tags) for name, (tags, _) in said.items()}}
        tags = {name: told[name] for name in self._data.users if name in told}
        clustered = await context.unit("group", partial(self._merge, tags=tags))
        if not clustered.ok:
            return
        named = await self._named(context, clustered.value)
        if named:
            version = remember(context, self._target, TAGS, tags, [former, *(message for _, message in said.values())])
            found = [(name, together, _members(together, tags)) for name, together in named]
            self._put(context, self._target, _groups(context, found), [version])

    async def _telling(self, context: Context, who: Agent) -> list[Version]:
        """The memories that tell a user's interests, as far as he has learnt anything."""
        first = self._memories.initial()
        found = [await context.read(who, slot, by=self._target) for slot in self._memories.telling]
        return [version for version in found if version.value != first[version.slot]]

    async def _say_tags(self, context: Context, who: Agent, memories: Sequence[Version]) -> tuple[Sequence[str], str]:
        """Step 1: a user's tags, and the message that says them."""
        text = "\n".join(version.value for version in memories)
        tags = await self._asker.ask(context, GROUP_TAGS, {"memory": text, "limit": str(self._settings.tags)})
        tags = tags[: self._settings.tags]
        return tags, tell(context, who, self._target, TAGS, list(tags), because=memories)

    async def _merge(self, context: Context, tags: Mapping[str, Sequence[str]]) -> list[list[str]]:
        """Step 2: the clusters that most users have tags in, of each its tags, those of most users first."""
        counts = Counter(tag for said in tags.values() for tag in said)
        numbers = await self._asker.clusters(context, list(counts), self._settings.clusters)
        clusters: dict[int, list[str]] = {}
        for tag, number in zip(counts, numbers, strict=True):
            clusters.setdefault(number, []).append(tag)
        found = [sorted(together, key=lambda tag: -counts[tag]) for together in clusters.values()]
        return sorted(found, key=lambda together: -len(_members(together, tags)))[: self._settings.kept]

    async def _named(self, context: Context, clusters: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
        """Step 3: the clusters with their names; one whose name cannot be read is no group."""
        branches = [
            Branch(f"name/{place}", (), partial(self._name, tags=tags)) for place, tags in enumerate(clusters, 1)
        ]
        outcomes = await context.together(*branches)
        return [(outcome.value, tags) for outcome, tags in zip(outcomes, clusters, strict=True) if outcome.ok]

    async def _name(self, context: Context, tags: Sequence[str]) -> str:
        slots: dict[str, Slot] = {"tags": tuple(tags), "limit": str(NAME_WORDS)}
        name = await self._asker.ask(context, GROUP_NAMING, slots, Fit(NAME_WORDS, "cut"))
        return " ".join(name.split())

    async def _by_history(self, context: Context) -> None:
        """Users fall into groups by what they have taken so far, each into one (section 4.1.3, w/o group)."""
        taken = self._taken(context.event.data["behind"])
        clustered = await context.unit(
            "group", lambda context: self._asker.clusters(context, list(taken.values()), self._settings.kept)
        )
        if not clustered.ok:
            return
        members: dict[int, list[str]] = {}
        for name, number in zip(taken, clustered.value, strict=True):
            members.setdefault(number, []).append(name)
        largest = sorted(members.values(), key=lambda together: -len(together))
        found = [(f"shared history {place}", (), together) for place, together in enumerate(largest, 1)]
        self._put(context, self._target, _groups(context, found), [])

    def _taken(self, rows: int) -> dict[str, str]:
        """Titles and categories of what each user took up to this training interaction, in order of users."""
        part, found = self._data.training_part, dict[str, list[str]]()
        for row in islice(part, bisect_right(range(len(part)), self._data.train.order(rows - 1), key=part.order)):
            thing = self._data.items[row.item]
            found.setdefault(row.user, []).append(f"{thing.title} {thing.category}")
        return {name: "\n".join(found[name]) for name in self._data.users if name in found}

    def _put(
        self, context: Context, agent: Agent, groups: list[dict[str, Any]], because: Sequence[str | Version]
    ) -> None:
        """Write a grouping; where it is in force now, members join their groups."""
        remember(context, agent, "groups", groups, because)
        if agent == GROUPING:
            time = context.event.time
            edges = (Edge(user(name), group["id"], "membership", time) for group in groups for name in group["members"])
            context.spawn(JOIN, delay=0, facts=tuple(edges))


def _groups(context: Context, found: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> list[dict[str, Any]]:
    """Groups of these names, tags and members, each under a name of its own among all that there ever are."""
    number = context.event.data["formation"]
    return [
        {"id": f"group:{number}.{place}-{_slug(name)}", "name": name, "tags": list(tags), "members": list(members)}
        for place, (name, tags, members) in enumerate(found, 1)
    ]


def _slug(name: str) -> str:
    return "-".join(re.findall(r"\w+", name.casefold()))


def _members(together: Sequence[str], tags: Mapping[str, Sequence[str]]) -> list[str]:
    """The users who have one of these tags."""
    wanted = set(together)
    return [name for name, said in tags.items() if not wanted.isdisjoint(said)]
