"""What conversations came to: whether and when the item was found, at what cost, beside baselines; how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data import Dataset
from simengine.measure import figures
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap
from simengine.measure.studies.decisions import first_failure, named
from simengine.measure.studies.reading import Found
from simengine.runlog import EventLine

AGENT, RANDOM, POPULARITY = "interec", "random", "popularity"
HIT, AT, CALLS, ERRORS, ACCEPTED = "hit", "at", "calls per turn", "tool errors", "accepted"
ENDS = ("hit", "farewell", "limit", "error")
DRAWS = 2000
"""Samples that the Popularity baseline's chances are counted in."""

_TASKS = ("plan", "step", "reply", "critic")
_CELLS = 1 << 20  # random numbers held at once


class Talk(msgspec.Struct, frozen=True):
    """One conversation: whose, for what, its limits, how it ended after how many turns, and what it took.

    ``calls`` are the recommender's model calls, those asked again among them, in the ``answered`` turns.
    """

    user: str
    target: str
    turns: int
    k: int
    how: str
    ended: int
    marks: tuple[str, ...]
    calls: int
    answered: int
    errors: Counter[str]
    verdicts: Counter[str]
    failure: str


class ConverseReading:
    """Reads whether the target was among the items recommended, within how many turns (section 4.1).

    Hit@k is the share of conversations that hit within ``k`` turns, AT@k the mean number of turns that this took, where
    a failure counts ``k + 1``. A conversation that ended by an error is a failure. One in which the user named the
    target is left out, of the baselines too: it is skipped.

    The baselines talk to nobody: in each turn Random gives as many items of the whole catalogue at random, and
    Popularity draws them, without replacement, by their interactions in the training part; no turn knows of another.
    Random's values are exact. Popularity's rest on how often an item is among ``DRAWS`` samples; from there on exact.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        part = dataset.training_part
        counts = dict(zip(part.items, np.bincount(part.item, minlength=len(part.items)).tolist(), strict=True))
        self._items = tuple(dataset.items)
        self._weights = np.array([counts.get(item, 0) for item in self._items], np.float64)
        self._turns: dict[int, list[EventLine]] = {}  # of talks that go on, by their test cases
        self._talks: list[Talk] = []

    def take(self, line: EventLine) -> None:
        """Take in a turn of a conversation of this stage."""
        if line.kind == f"{self.name}.turn":
            case = line.data["case"]
            self._turns.setdefault(case, []).append(line)
            if not line.spawns:
                self._talks.append(_talk(self._turns.pop(case)))

    def found(self, seed: int) -> Found:
        """Hit and AT of the agent and the baselines, then calls, errors, verdicts and endings of the agent's talks."""
        counted = [talk for talk in self._talks if "named" not in talk.marks]
        left_out = len(self._talks) - len(counted)
        results = [*self._success(counted, seed), *self._work(seed)] if counted else []
        return Found(results, {"the target was named": left_out} if left_out else {}, list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw, for each number of turns, which share of conversations had hit by then, into a PNG file."""
        counted = [talk for talk in self._talks if "named" not in talk.marks]
        turns = range(1, max(talk.turns for talk in counted) + 1)
        chances = self._chances(counted, seed=0)
        series = {
            AGENT: [bootstrap([talk.how == "hit" and talk.ended <= turn for talk in counted]) for turn in turns],
            **{name: [bootstrap(1 - (1 - of) ** turn) for turn in turns] for name, of in chances.items()},
        }
        words = figures.Words(
            "Conversations in which the target was recommended by then", "turn", "share", of="conversations"
        )
        figures.lines(path, [float(turn) for turn in turns], series, words)

    def _success(self, talks: Sequence[Talk], seed: int) -> Iterator[Result]:
        turns = np.array([talk.turns for talk in talks])
        hit = np.array([talk.how == "hit" for talk in talks])
        took = np.where(hit, [talk.ended for talk in talks], turns + 1)
        columns = {AGENT: (hit.astype(np.float64), took.astype(np.float64))}
        columns |= {name: _expected(of, turns) for name, of in self._chances(talks, seed).items()}
        limits = set(turns.tolist())
        k = limits.pop() if len(limits) == 1 else None
        users = [talk.user for talk in talks]
        for name, values in columns.items():
            for metric, of in zip((HIT, AT), values, strict=True):
                yield Result(self.name, name, metric, k, *bootstrap(of, users, seed=seed), 1)

    def _work(self, seed: int) -> Iterator[Result]:
        """What the agent's talks took, all of them."""
        answered = [talk for talk in self._talks if talk.answered]
        judged = [talk for talk in self._talks if talk.verdicts.total()]
        columns = {
            CALLS: (answered, [talk.calls / talk.answered for talk in answered]),
            ERRORS: (answered, [float(talk.errors.total()) for talk in answered]),
            ACCEPTED: (judged, [talk.verdicts["accepted"] / talk.verdicts.total() for talk in judged]),
            **{f"ended by {how}": (self._talks, [float(it.how == how) for it in self._talks]) for how in ENDS},
        }
        for metric, (talks, values) in columns.items():
            if talks:
                interval = bootstrap(values, [talk.user for talk in talks], seed=seed)
                yield Result(self.name, AGENT, metric, None, *interval, 1)

    def _chances(self, talks: Sequence[Talk], seed: int) -> dict[str, NDArray[np.float64]]:
        """For each baseline the chance that the target of a talk is among the items of one turn."""
        place = {item: at for at, item in enumerate(self._items)}
        targets = [place[talk.target] for talk in talks]
        popular = {k: drawn_by_weight(self._weights, k, seed) for k in sorted({talk.k for talk in talks})}
        size = len(self._items)
        return {
            RANDOM: np.array([min(talk.k / size, 1.0) for talk in talks]),
            POPULARITY: np.array([popular[talk.k][at] for talk, at in zip(talks, targets, strict=True)]),
        }

    def _notes(self) -> Iterator[str]:
        errors = sum((talk.errors for talk in self._talks), Counter[str]())
        verdicts = sum((talk.verdicts for talk in self._talks), Counter[str]())
        for what, counts in (("tool errors", errors), ("verdicts of the critic", verdicts)):
            told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
            yield f"{self.name}: {what} in {len(self._talks)} conversations: {told or 'none'}"
        for mark, text in (("named", "name the target"), ("told too much", "tell more than three things at a time")):
            marked = [talk.user for talk in self._talks if mark in talk.marks]
            if marked:
                yield f"{self.name}: {len(marked)} users {text}, however often they are asked again ({named(marked)})"
        failed = Counter(talk.failure for talk in self._talks if talk.how == "error")
        for failure, count in sorted(failed.items()):
            yield f"{self.name}: {count} conversations ended by an error ({failure})"


def drawn_by_weight(weights: NDArray[np.float64], k: int, seed: int) -> NDArray[np.float64]:
    """How often each item is among ``k`` that are drawn one by one, by weight, without replacement.

    The first ``k`` arrivals of clocks that run at the rate of the weights are such a sample. What weighs nothing is
    never drawn.
    """
    rates = np.where(weights > 0, weights, np.nan)
    generator = np.random.default_rng(seed)
    counts = np.zeros(len(weights))
    k = min(k, int(np.count_nonzero(weights > 0)))
    batch = max(1, _CELLS // len(weights))
    for done in range(0, DRAWS, batch):
        arrivals = generator.exponential(size=(min(batch, DRAWS - done), len(weights))) / rates
        first = np.argsort(arrivals, axis=1)[:, :k]  # NaN comes last
        counts += np.bincount(first.ravel(), minlength=len(weights))
    return counts / DRAWS


def _expected(chance: NDArray[np.float64], turns: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hit and AT of one whose every turn hits with this chance: AT is 1 + the sum of the chances to go on."""
    missed = 1 - chance
    at = [sum(miss**turn for turn in range(limit + 1)) for miss, limit in zip(missed, turns.tolist(), strict=True)]
    return 1 - missed**turns, np.array(at, np.float64)


def _talk(turns: Sequence[EventLine]) -> Talk:
    """A conversation that has come to its end, from its turns."""
    messages = [message for line in turns for message in line.messages]
    bodies = {kind: [it.body for it in messages if it.kind == kind] for kind in ("plan", "verdict", "end")}
    data = turns[-1].data
    failed = {"how": "error", "turns": data["turn"], "marks": data["marks"]}  # as a whole, such a turn says no end
    end = (*bodies["end"], failed)[0]
    calls = [sum(path.partition("/")[0] in _TASKS for path in line.calls) for line in turns]
    units = [unit for line in turns for unit in line.units.items()]
    unread = sum(unit.startswith("critic/") and outcome != "ok" for unit, outcome in units)
    verdicts = Counter("accepted" if body["accepted"] else "rejected" for body in bodies["verdict"])
    return Talk(
        user=data["user"],
        target=data["item"],
        turns=data["turns"],
        k=data["k"],
        how=end["how"],
        ended=end["turns"],
        marks=tuple(end["marks"]),
        calls=sum(calls),
        answered=sum(map(bool, calls)),
        errors=Counter(work["code"] for body in bodies["plan"] for work in body["work"] if work["code"]),
        verdicts=verdicts + Counter({"unreadable": unread}),
        failure=first_failure(turns[-1]),
    )
