"""What probes were answered, beside what the words of the memories say and what they are similar to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.embed import Embedder
from simengine.measure.preference import Preference
from simengine.runlog import EventLine

LEVEL = 0.95
"""A memory is similar to a statement where it is more so than this part of the control's memories are."""


class Probed(msgspec.Struct, frozen=True):
    """One answer: who was asked when (``position`` is that of the event) of which statement, and what it said.

    ``holds`` is ``None`` where no answer could be read. ``memory`` is the text that the answer goes by, ``words``
    whether its words hold the statement.
    """

    user: str
    at: str
    statement: int
    preference: str
    position: int
    holds: bool | None
    memory: str
    words: bool


class Agreement(msgspec.Struct, frozen=True):
    """How two ways of telling who holds a preference agree over ``n`` probes: the share, and Cohen's kappa.

    ``both``, ``first_only`` and ``second_only`` count those who hold it by both, or by one of them. NaN becomes
    ``null`` in JSON: kappa is unknown where both ways give but one answer.
    """

    first: str
    second: str
    n: int
    agree: float | None
    kappa: float | None
    both: int
    first_only: int
    second_only: int


class ProbeReader:
    """Gathers the probes of a log, as its events are handed to it.

    ``slot`` is where users say what they are, ``initial`` gives the slots that an agent starts with.
    """

    def __init__(self, slot: str, initial: Callable[[str], Mapping[str, Any]] = lambda _: {}) -> None:
        self._slot = slot
        self._initial = initial
        self._memories: dict[str, str] = {}
        self._preferences: dict[str, Preference] = {}
        self._position = 0
        self.probed: list[Probed] = []

    def take(self, line: EventLine) -> None:
        """Take in the next event."""
        if line.kind.endswith(".ask") and "preference" in line.data:
            self.probed.append(self._probe(line))
        for version in line.memories:
            if version.slot == self._slot and isinstance(version.value, str):
                self._memories[version.agent] = version.value
        self._position += 1

    def _probe(self, line: EventLine) -> Probed:
        said, text = line.data, line.data["preference"]
        preference = self._preferences.setdefault(text, Preference(text))
        who = f"user:{said['user']}"
        memory = self._memories[who] if who in self._memories else str(self._initial(who).get(self._slot, ""))
        answer = next((message.body["holds"] for message in line.messages if message.kind == "probe"), None)
        return Probed(
            user=said["user"],
            at=str(said["at"]),
            statement=said["statement"],
            preference=text,
            position=self._position,
            holds=answer,
            memory=memory,
            words=preference.held_in(memory),
        )


async def similarities(embedder: Embedder, probed: Sequence[Probed]) -> NDArray[np.float64]:
    """How similar each memory is to the statement that was asked for: a cosine, 0 where either says nothing."""
    texts = list(dict.fromkeys(text for probe in probed for text in (probe.preference, probe.memory)))
    if not texts:
        return np.zeros(0)
    rows = await embedder.embed(texts)
    place = {text: at for at, text in enumerate(texts)}
    return np.array([rows[place[probe.preference]] @ rows[place[probe.memory]] for probe in probed], np.float64)


def is_similar(found: NDArray[np.float64], control: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which memories are more similar than :data:`LEVEL` of the control's, in which nobody was given the statement."""
    threshold = float(np.quantile(control, LEVEL)) if len(control) else math.inf
    return found > threshold


def agreement(first: str, second: str, one: Iterable[bool], other: Iterable[bool]) -> Agreement:
    """Two ways of telling, probe by probe."""
    left, right = np.fromiter(one, np.bool_), np.fromiter(other, np.bool_)
    n = len(left)
    same = float(np.mean(left == right)) if n else math.nan
    chance = float(left.mean() * right.mean() + (1 - left.mean()) * (1 - right.mean())) if n else math.nan
    kappa = (same - chance) / (1 - chance) if n and chance < 1 else math.nan
    both, only, others = int((left & right).sum()), int((left & ~right).sum()), int((~left & right).sum())
    return Agreement(first, second, n, same, kappa, both, only, others)
