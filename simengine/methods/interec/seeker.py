"""The user of a simulated talk: what he knows of the item that he wants, and the guard over what he says (figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from simengine.data import Case, Dataset
from simengine.kernel import Context, Version
from simengine.llm.prompts import Slot
from simengine.llm.replies.lines import one_line
from simengine.llm.replies.talk import Turn
from simengine.methods.interec import cards, columns, naming
from simengine.methods.interec.table import ItemTable
from simengine.methods.interec.tasks import DAY, USER
from simengine.methods.turn import Asker, remember, tell

HISTORY = "history"
"""The slot of a user that holds the titles of what he has had, one a line, the oldest first."""
SAY = "say"
"""The kind of the messages that a user says."""
NAMED, TOLD = "named", "told too much"
"""What a message of a user may be marked with: it names the target; it tells more conditions than it may."""
CONDITIONS = 3
"""How many conditions a message may tell."""

SHARE, DESCRIBE, CHAT = "share", "describe", "chat"
"""What a message of a long talk is for (section 4.1, Long-Chat)."""

_INTENTS = {
    SHARE: "tell of things that you have had and have not told of yet.",
    DESCRIBE: "tell more of what you want.",
    CHAT: "just chat for a while; tell nothing of what you want, nor of what you have had.",
}
_WARNINGS = {
    NAMED: "Your last message named what you want, which you must not do.",
    TOLD: f"Your last message told more than {CONDITIONS} things of what you want.",
}


class Said(msgspec.Struct, frozen=True):
    """What a user has said: the text, whether it was a goodbye, the message's id, and what it is marked with."""

    text: str
    goodbye: bool
    message: str
    marks: tuple[str, ...]


class Seekers:
    """All users of one run. ``known(case)`` lists what is known of a case's target, each entry a condition."""

    def __init__(self, dataset: Dataset, table: ItemTable, asker: Asker, words: int, tries: int) -> None:
        self._asker = asker
        self._words = words
        self._tries = tries
        self._titles = titles(dataset, table)
        self._known = _conditions(dataset, table)

    def known(self, case: Case) -> tuple[str, ...]:
        """The conditions that the target of a case meets."""
        return self._known[case.target]

    async def say(self, context: Context, case: Case, heard: Sequence[Version], intent: str = "") -> Said | None:
        """What the user says in a turn after ``heard``, the lines so far; none where nothing that he said can be read.

        ``intent`` is what the message is for, where that is not the user's own affair. A message with a slip is asked
        for again, ``tries`` times in all; then it is taken as it is, and marked.
        """
        lines = tuple(str(entry.value) for entry in heard)
        mine = await self.history(context, case)
        turn: Turn | None = None
        slips: tuple[str, ...] = ()
        for attempt in range(1, self._tries + 1):
            warning = " ".join(_WARNINGS[it] for it in slips)
            ask = partial(self._ask, case=case, heard=lines, intent=intent, warning=warning)
            asked = await context.unit(f"say/{attempt}", ask)
            if not asked.ok:
                return None
            turn = asked.value
            slips = self._slips(turn.text, case)
            if not slips:
                break
        assert turn is not None
        venue, who = context.event.writes
        said = {"text": one_line(turn.text), "goodbye": turn.goodbye, "marks": list(slips)}
        message = tell(context, who, venue, SAY, {"turn": context.event.data["turn"], **said}, because=[mine, *heard])
        return Said(one_line(turn.text), turn.goodbye, message, slips)

    async def day(self, context: Context, titles: Sequence[str], words: int) -> tuple[tuple[str, str], ...]:
        """A talk of an earlier day, in which the user tells that he has had these (section 4.1, Long-Context)."""
        return await self._asker.ask(context, DAY, {"history": tuple(titles), "limit": str(words)})

    async def _ask(self, context: Context, case: Case, heard: tuple[str, ...], intent: str, warning: str) -> Turn:
        slots: dict[str, Slot] = {
            "history": self.had(case),
            "target": self._titles[case.target],
            "conditions": self.known(case),
            "dialogue": heard,
            "intent": f"{intent}: {_INTENTS[intent]}" if intent else "",
            "warning": warning,
            "limit": str(self._words),
        }
        return await self._asker.ask(context, USER, slots)

    def named(self, text: str, case: Case) -> bool:
        """Whether a text names the target of a case."""
        return naming.names(text, self._titles[case.target], self.had(case))

    def _slips(self, text: str, case: Case) -> tuple[str, ...]:
        slips = [NAMED] if self.named(text, case) else []
        return (*slips, TOLD) if naming.held(text, self.known(case)) > CONDITIONS else tuple(slips)

    def had(self, case: Case) -> tuple[str, ...]:
        """What the user of a case has had; see :func:`had`."""
        return had(case, self._titles)

    async def history(self, context: Context, case: Case) -> Version:
        """What the user of a case has had, a title a line; from one of his cases to the next he has had more."""
        _, who = context.event.writes
        known = await context.read(who, HISTORY, by=who)
        now = "\n".join(self.had(case))
        return known if known.value == now else remember(context, who, HISTORY, now, because=[known])


def had(case: Case, called: Mapping[str, str]) -> tuple[str, ...]:
    """What the user of a case can tell that he has had, by what the items are ``called``, oldest first.

    It is his history but for the target, which he may have taken before, and for what is called just like it.
    """
    return tuple(called[item] for item in case.history if called[item] != called[case.target])


def titles(dataset: Dataset, table: ItemTable) -> Mapping[str, str]:
    """What users call the items: each by its title, with its year where several are called alike without."""
    return dict(zip(table.items, cards.unlike(dataset, table), strict=True))


def histories(dataset: Dataset, table: ItemTable) -> Mapping[str, str]:
    """What each user has had before his first test case, as the slot ``history`` holds it."""
    called = titles(dataset, table)
    return {case.user: "\n".join(had(case, called)) for case in reversed(dataset.cases)}


def _conditions(dataset: Dataset, table: ItemTable) -> Mapping[str, tuple[str, ...]]:
    """What is known of each item, as the data have it: tags, date, price, names, and how popular it is."""
    items = list(dataset.items.values())
    tags = columns.tags(items)
    popular = _popularity(table.visits)
    return {
        item.id: (
            *tags[at],
            *(f"came out in {date[:4]}" for date in [columns.release_date(item)] if date),
            *(f"costs {price:g}" for price in [columns.number(item, "price")] if price is not None),
            *(f"{name} {text}" for name in cards.NAMES if (text := columns.text(item, name))),
            popular[at],
        )
        for at, item in enumerate(items)
    }


def _popularity(visits: Sequence[int]) -> list[str]:
    """In which third of the items each is by how often it was taken, in words, with the numbers of that third."""
    ordered = sorted(visits)
    cuts = [ordered[len(ordered) * part // 3] for part in (1, 2)]
    thirds = [(it >= cuts[0]) + (it >= cuts[1]) for it in visits]
    told = []
    for third in range(3):
        inside = [it for it, of in zip(visits, thirds, strict=True) if of == third] or [0]
        told.append(f"taken {min(inside)} to {max(inside)} times so far")
    return [told[third] for third in thirds]
