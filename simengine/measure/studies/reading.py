"""What a reading of a study is: it is handed the log's events one after the other, and then says what was found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from simengine.measure.audit import Audit
from simengine.measure.compare import PerCase
from simengine.measure.permutation import Compared
from simengine.measure.results import Result
from simengine.runlog import EventLine


class Spoken(msgspec.Struct, frozen=True):
    """One turn of a talk with a person: what he said, what was replied to it, and the titles recommended with it.

    ``tools`` are those that the recommender used for the reply, in their order, each with its error in brackets where
    it failed. ``failure`` says why there is no reply.
    """

    turn: int
    said: str
    reply: str
    items: list[str]
    tools: list[str]
    failure: str = ""


class Found(msgspec.Struct, frozen=True):
    """What a study found.

    results: its numbers, each with its interval; ``group`` is the condition under which it was found.
    skipped: what could not be counted, by reason.
    notes: what a reader of the numbers must know, a sentence each.
    compared: each ranker held against the agents', of a stage that ranks.
    audit: what is wrong with the test cases themselves, of a stage that ranks.
    talk: what was said with a person, of a stage in which one speaks.
    """

    results: list[Result]
    skipped: dict[str, int] = {}
    notes: list[str] = []
    compared: list[Compared] = []
    audit: Audit | None = None
    talk: list[Spoken] = []


class Reading(Protocol):
    """A study's reading. It knows the run by its log and the data alone."""

    def take(self, line: EventLine) -> None:
        """Take in an event, if it is one of this study's."""

    def found(self, seed: int) -> Found:
        """What was found, once all events are taken in; ``seed`` is of the resamples. No results: nothing to say."""

    def draw(self, found: Found, path: Path) -> None:
        """Draw the study's figure into a PNG file."""


@runtime_checkable
class PairedReading(Reading, Protocol):
    """A reading whose values can be held against those of another run, test case by test case."""

    name: str

    def per_case(self) -> Iterator[tuple[str, str, PerCase]]:
        """What is compared: a key that both runs have, what reports call it, and its values."""
