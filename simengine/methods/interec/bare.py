"""A bare language model as recommender: it sees the talk and nothing else, and names what it knows (section 4.1)."""

from __future__ import annotations

from simengine.kernel import Context
from simengine.methods.interec.baseline import recalled, recommend, task_of
from simengine.methods.interec.exchange import Answer, Desk, Heard

BARE = task_of("converse.bare", "interec.bare")


class Bare:
    """Answers each turn with one call. A title that means no item of the catalogue is invented, and recommends none."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def turn_calls(self) -> tuple[int, int]:
        """One, always."""
        return 1, 1

    async def answer(self, context: Context, heard: Heard) -> Answer | None:
        """What is said to the user in a turn; none where no reply could be had."""
        known = await recalled(context, heard, self._desk)
        return await recommend(context, heard, self._desk, BARE, known, {})
