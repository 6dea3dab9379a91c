"""A recommender in the manner of Chat-Rec (section 4.1): what is near the user's words is retrieved, a model picks.

Which items are near is told by the scenario's embeddings, of the items' texts and of all that the user has said. The
catalogue is embedded once, where the run's local computations are done (task ``search``); only the query goes into the
request, and the nearest places that come back are recorded as a model's answer is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from simengine.data import Dataset
from simengine.kernel import Context
from simengine.methods.interec.baseline import recalled, recommend, task_of, users_words
from simengine.methods.interec.cards import lines, texts, unlike
from simengine.methods.interec.exchange import Answer, Desk, Heard
from simengine.methods.interec.settings import InteRecSettings
from simengine.methods.turn import NEAREST

CHAT_REC = task_of("converse.chat_rec", "interec.chat_rec")
ITEMS = "items"
"""The name of the catalogue's texts among those that are searched."""


def searched(settings: InteRecSettings, dataset: Dataset) -> Mapping[str, Sequence[str]]:
    """The texts that a run searches: those of the catalogue, where Chat-Rec recommends."""
    return {ITEMS: texts(dataset)} if settings.recommender == "chat_rec" else {}


class ChatRec:
    """Answers each turn with a retrieval and one call, which sees the candidates and what is known of them.

    Only candidates are recommended. Where the user's words have nothing in common with any item there are none, and the
    model can but talk. Where the retrieval fails there is no reply.
    """

    def __init__(self, desk: Desk, dataset: Dataset) -> None:
        self._desk = desk
        self._lines = lines(dataset, desk.table)
        self._titles = unlike(dataset, desk.table)

    def turn_calls(self) -> tuple[int, int]:
        """One, always; the retrieval asks no model."""
        return 1, 1

    async def answer(self, context: Context, heard: Heard) -> Answer | None:
        """What is said to the user in a turn; none where no reply could be had."""
        known, table = await recalled(context, heard, self._desk), self._desk.table
        query = users_words(known, heard)

        async def search(inner: Context) -> list[int]:
            return await self._search(inner, query)

        found = await context.unit("retrieve", search)
        if not found.ok:
            return None
        shown = {
            "titles": tuple(self._titles[at] for at in found.value),
            "options": tuple(self._lines[at] for at in found.value),
        }
        among = frozenset(table.items[at] for at in found.value)
        return await recommend(context, heard, self._desk, CHAT_REC, known, shown, among)

    async def _search(self, context: Context, query: str) -> list[int]:
        desk = self._desk
        slots = {"query": query, "corpus": ITEMS, "count": str(desk.settings.candidates), "data": desk.said["data"]}
        answer = await desk.asker.compute(context, "search", "search", NEAREST, slots)
        return msgspec.json.decode(answer, type=list[int])
