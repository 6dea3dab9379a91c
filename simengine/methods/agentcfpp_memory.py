"""What a user of AgentCF++ goes by: two layers of memory in each domain, and what his groups took lately."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from simengine.data import Dataset
from simengine.kernel import Agent, Context, Version
from simengine.llm.prompts import Slot
from simengine.methods.agentcfpp_settings import AgentCFppSettings
from simengine.methods.agentcfpp_views import Views, groups_of
from simengine.methods.method import GROUPING
from simengine.methods.turn import Asker, tell
from simengine.world import ident

SELF = "self"
"""All fused memories of a user, one below the other: the slot by which others know him."""
SINGLE = "short"
"""The one memory of a user without layers, which is that of AgentCF."""
VIEW = "view"
"""The kind of the message by which a group shows what its members took."""


class Recalled(msgspec.Struct, frozen=True):
    """What a user goes by in a decision: as slots of a prompt, and as the causes of what comes of it."""

    slots: Mapping[str, Slot]
    because: Sequence[str | Version]


class Memories:
    """The memory slots of one data set's users, and how they are read. Items without a domain are all of one."""

    def __init__(self, settings: AgentCFppSettings, dataset: Dataset, asker: Asker, views: Views) -> None:
        self._settings = settings
        self._data = dataset
        self._asker = asker
        self._views = views
        self.domains = tuple(dict.fromkeys(item.domain for item in dataset.items.values()))

    @property
    def known_by(self) -> str:
        """The slot by which others know a user."""
        return SELF if self._settings.dual else SINGLE

    @property
    def written(self) -> tuple[str, ...]:
        """The slots that a model writes."""
        if not self._settings.dual:
            return (SINGLE,)
        return tuple(slot for domain in self.domains for slot in (separate(domain), fused(domain)))

    @property
    def reads(self) -> tuple[Agent, ...]:
        """Whom a user looks at to know of his groups."""
        return (GROUPING,) if self._settings.shared else ()

    def initial(self) -> Mapping[str, str]:
        """A user's first memories: empty (section 3.1); without layers that of AgentCF, a general liking."""
        if not self._settings.dual:
            return {SINGLE: self._asker.text("user", {})}
        return dict.fromkeys((*self.written, SELF), "")

    def learnt(self, domain: str) -> str:
        """The slot that a step in this domain rewrites first."""
        return separate(domain) if self._settings.dual else SINGLE

    def passed_on(self, domain: str) -> str:
        """The slot that items of this domain learn from."""
        return fused(domain) if self._settings.dual else SINGLE

    @property
    def telling(self) -> tuple[str, ...]:
        """The slots that tell a user's interests."""
        return tuple(map(fused, self.domains)) if self._settings.dual else (SINGLE,)

    def domains_of(self, items: Iterable[Agent]) -> tuple[str, ...]:
        """The domains of some items. Which of them a user takes is not to be told by it, so it is that of all shown."""
        there = {self._data.items[ident(agent)].domain for agent in items}
        return tuple(domain for domain in self.domains if domain in there)

    async def recall(self, context: Context, who: Agent, domains: Sequence[str]) -> Recalled:
        """Both layers of these domains, and the views of the user's groups in them (section 3.2), of no others."""
        first = [await context.read(who, slot, by=who) for slot in dict.fromkeys(map(self.learnt, domains))]
        second = [await context.read(who, fused(domain), by=who) for domain in domains] if self._settings.dual else []
        told, shown = await self._look(context, who, domains) if self._settings.shared else ([], ())
        slots: dict[str, Slot] = {
            "domain": " / ".join(domains) if self._settings.dual else "",
            "memory": _joined(first),
            "fused": _joined(second),
            "views": shown,
        }
        return Recalled(slots, [*first, *second, *told])

    async def _look(self, context: Context, who: Agent, domains: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """Each group shows what its members took: the messages, and the texts of those that have something to show."""
        grouping = await context.read(GROUPING, "groups", by=who)
        told, shown = [], []
        for group in groups_of(grouping.value, ident(who)):
            taken = self._views.last(group["members"], domains, context.event.order, self._settings.view)
            if not taken:
                continue
            items = [self._data.items[row.item] for row in taken]
            body = [
                {"item": row.item, "title": thing.title, "user": row.user, "time": row.time}
                for row, thing in zip(taken, items, strict=True)
            ]
            told.append(tell(context, group["id"], who, VIEW, body, because=[grouping]))
            lines = (self._asker.text("item", {"title": it.title, "category": it.category}) for it in items)
            text = {"name": group["name"], "taken": "\n".join(f"- {line}" for line in lines)}
            shown.append(self._asker.text("view", text))
        return told, tuple(shown)


def separate(domain: str) -> str:
    """The slot of what a user likes in one domain, by what he took there alone."""
    return f"separate:{_named(domain)}"


def fused(domain: str) -> str:
    """The slot of what a user likes in one domain, joined with what bears on it of others."""
    return f"fused:{_named(domain)}"


def _named(domain: str) -> str:
    return domain.replace("/", "-") or "all"  # the log has a slot behind a slash


def _joined(versions: Iterable[Version]) -> str:
    return "\n".join(version.value for version in versions if version.value)
