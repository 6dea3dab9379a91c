"""A model that passes planted preferences on with a known chance per contact, so that what is measured has a truth."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from simengine.llm.replies import choice, descriptions, selfintro
from simengine.llm.request import Completion, Request


class Contagion:
    """Rules for AgentCF's choices and reflections, by which preferences travel and are never lost.

    One who reflects and does not hold a preference, while the memory of another that is shown to it does, takes it in
    with chance ``p``: once per event and agent, whatever the number of others. That is what a trial is
    (:func:`simengine.measure.trials.contact_trials`) as long as a step has one round (``rounds: 1``). A draw depends on
    ``seed``, the call and the preference, so it is the same in whatever order calls are made.
    """

    def __init__(self, preferences: Iterable[str], p: float, seed: int) -> None:
        self._preferences = tuple(preferences)
        self._p = p
        self._seed = seed

    async def complete(self, request: Request) -> Completion:
        slots = request.slots
        memory, options, titles = (slots[name] for name in ("memory", "options", "titles"))
        assert isinstance(memory, str) and isinstance(options, tuple) and isinstance(titles, tuple)
        if request.task == "choose":
            return Completion(text=choice.write(str(slots["noun"]), titles, 1, "It is the second one."))
        if request.task == "reflect.user":
            return Completion(text=selfintro.write(self._taken_in(memory, options, request.call)))
        assert request.task == "reflect.item", request.task
        other, own = options  # the item that was taken stands second
        own = self._taken_in(own, (memory, other), request.call)
        return Completion(text=descriptions.write(str(slots["noun"]), other, own))

    def _taken_in(self, own: str, others: Iterable[str], call: str) -> str:
        shown = "\n".join(others)
        new = [text for text in self._preferences if text in shown and text not in own and self._draw(call, text)]
        return " ".join((own, *new))

    def _draw(self, call: str, preference: str) -> bool:
        digest = hashlib.blake2b(f"{self._seed} {call} {preference}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self._p * 2**64
