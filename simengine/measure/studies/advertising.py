"""What advertising came to: which share of judges prefers the refined version to the draft, and how long both are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from simengine.data import Dataset
from simengine.measure import figures
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap
from simengine.measure.studies.reading import Found
from simengine.runlog import EventLine

DRAFT, REFINED = "draft", "refined"
PREFERS, TAKES_FIRST, WORDS = "prefers refined", "takes what is first", "words"
ALL = "both orders"


class Verdict(msgspec.Struct, frozen=True):
    """What a judge said of an item's two advertisements: which was shown first, and which was preferred."""

    item: str
    first: str
    preferred: str


class AdvertisingReading:
    """Reads whether judges prefer the refined advertisement of an item to its draft (section 3.4.4).

    Judges of one item share its advertisements: a share is the mean over items of their judges' shares, its interval
    is from resamples of items and of their judges, and ``n`` counts items. What is skipped are judgements.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._verdicts: list[Verdict] = []
        self._words: dict[str, dict[str, int]] = {DRAFT: {}, REFINED: {}}
        self._skipped: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._items = 0

    def take(self, line: EventLine) -> None:
        """Take in the making of two advertisements, or a judgement, of this stage."""
        if line.kind == f"{self.name}.create":
            self._items += 1
            for unit, outcome in line.units.items():
                if outcome != "ok":
                    self._failed[f"{unit}: {outcome}"] += 1
            for version in line.memories:
                self._words[version.slot][line.data["item"]] = len(version.value.split())
        elif line.kind == f"{self.name}.judge":
            self._judgement(line)

    def found(self, seed: int) -> Found:
        """The shares, all and by what was shown first, then the mean numbers of words."""
        by_first = {first: [said for said in self._verdicts if said.first == first] for first in (REFINED, DRAFT)}
        results = [
            self._share(PREFERS, ALL, self._verdicts, seed),
            *(self._share(PREFERS, f"{first} first", said, seed) for first, said in by_first.items()),
            self._share(TAKES_FIRST, ALL, self._verdicts, seed),
            *(self._length(slot, seed) for slot in (DRAFT, REFINED)),
        ]
        return Found([result for result in results if result.n], dict(self._skipped), list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw the shares that prefer the refined version into a PNG file."""
        shares = {result.group: result.interval for result in found.results if result.metric == PREFERS}
        words = figures.Words(
            "Users who prefer the refined advertisement to its draft",
            "shown",
            "share",
            interval="95% bootstrap interval over items and their judges",
            of="items",
        )
        figures.bars(path, list(shares), {"prefers the refined one": list(shares.values())}, words, chance=0.5)

    def _judgement(self, line: EventLine) -> None:
        for message in line.messages:
            if message.kind == "verdict":
                self._verdicts.append(Verdict(line.data["item"], line.data["shown"][0], message.body["preferred"]))
                return
        reason = next((outcome for outcome in line.units.values() if outcome != "ok"), "no verdict")
        self._skipped[f"judge: {reason}"] += 1

    def _share(self, metric: str, group: str, verdicts: list[Verdict], seed: int) -> Result:
        wanted = [said.preferred == (REFINED if metric == PREFERS else said.first) for said in verdicts]
        interval = bootstrap(wanted, [said.item for said in verdicts], seed=seed)
        return Result(self.name, "judges", metric, None, *interval, 1, group)

    def _length(self, slot: str, seed: int) -> Result:
        interval = bootstrap(list(self._words[slot].values()), seed=seed)
        return Result(self.name, "advertisements", WORDS, None, *interval, 1, slot)

    def _notes(self) -> Iterator[str]:
        for what, count in sorted(self._failed.items()):
            yield f"{self.name}: of {self._items} items, {count} failed in {what}"
        if self._verdicts:
            yield (
                f"{self.name}: {len(self._verdicts)} judgements; n counts items, whose judges share the advertisements"
            )
