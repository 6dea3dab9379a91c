"""The talk with a person, turn by turn: what was said, what was recommended, and what the recommender did for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from simengine.data import Dataset
from simengine.measure.studies.decisions import first_failure
from simengine.measure.studies.reading import Found, Spoken
from simengine.runlog import EventLine

Body: TypeAlias = dict[str, Any]


class ChatReading:
    """Reads a talk. There is nothing to measure: nobody knows what the person was looking for."""

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._titles = {item.id: item.title for item in dataset.items.values()}
        self._spoken: list[Spoken] = []
        self._end = ""

    def take(self, line: EventLine) -> None:
        """Take in a turn of the talk of this stage."""
        if line.kind != f"{self.name}.turn":
            return
        kinds = ("say", "plan", "reply", "end")
        bodies = {kind: [it.body for it in line.messages if it.kind == kind] for kind in kinds}
        for said in bodies["say"]:
            self._spoken.append(self._turn(line, said, bodies["plan"][-1:], bodies["reply"][-1:]))
        for end in bodies["end"]:
            self._end = end["how"]

    def _turn(self, line: EventLine, said: Body, plans: list[Body], replies: list[Body]) -> Spoken:
        """A turn by its last plan and its last reply, which is none where it was not said to the person."""
        tools = [work["tool"] + f" ({work['code']})" * bool(work["code"]) for plan in plans for work in plan["work"]]
        for reply in replies if _replied(line) else []:
            items = [self._titles[item] for item in reply["items"]]
            return Spoken(said["turn"], said["text"], reply["text"], items, tools)
        return Spoken(said["turn"], said["text"], "", [], tools, first_failure(line))

    def found(self, seed: int) -> Found:
        """The talk, and how it ended."""
        ends = {"farewell": "as the person said no more", "limit": "at the limit of turns"}
        how = ends.get(self._end, "by a failure")
        return Found(
            [], notes=[f"{self.name}: turns of the talk: {len(self._spoken)}; it ended {how}"], talk=self._spoken
        )

    def draw(self, found: Found, path: Path) -> None:
        """There is nothing to draw."""


def _replied(line: EventLine) -> bool:
    """Whether the reply that was written last was said to the person."""
    return any(version.slot == "talk" and version.value.startswith("Recommender: ") for version in line.memories)
