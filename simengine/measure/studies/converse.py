"""What conversations came to: whether and when the item was found, at what cost, beside baselines; how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.data import Case, Dataset
from simengine.measure import figures, textual
from simengine.measure.compare import PerCase
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap
from simengine.measure.studies.decisions import first_failure, named
from simengine.measure.studies.reading import Found
from simengine.measure.studies.turns import (
    AGENT,
    POPULARITY,
    RANDOM,
    added,
    bodies,
    in_vain,
    told,
    tool_errors,
    verdicts,
)
from simengine.measure.trivial import training_counts
from simengine.measure.weighted import drawn_by_weight
from simengine.runlog import EventLine

HIT, AT, CALLS, ERRORS, ACCEPTED = "hit", "at", "calls per turn", "tool errors", "accepted"
TEXT_HIT, TEXT_AT = "text hit", "text at"
"""The same by the text of the replies, as the paper's authors count: see :func:`~simengine.measure.textual.named`."""
ENDS = ("hit", "farewell", "limit", "error")

_TASKS = ("plan", "step", "reply", "critic", "distil")


class Talk(msgspec.Struct, frozen=True):
    """One conversation: whose, for what, its limits, how it ended after how many turns, and what it took.

    ``named`` is the first turn whose reply names the target by its text, 0 where none does. ``calls`` are the
    recommender's model calls, those asked again among them, in the ``answered`` turns; ``planned`` tells whether it is
    one that plans. ``titles`` are those that a model named in vain, by what they are.
    """

    case: tuple[str, int]
    target: str
    turns: int
    k: int
    how: str
    ended: int
    named: int
    marks: tuple[str, ...]
    calls: int
    answered: int
    planned: bool
    errors: Counter[str]
    verdicts: Counter[str]
    titles: Counter[str]
    failure: str


class ConverseReading:
    """Reads whether the target was among the items recommended, within how many turns (section 4.1).

    Hit@k is the share of conversations that hit within ``k`` turns, AT@k the mean number of turns that this took, where
    a failure counts ``k + 1``. A conversation that ended by an error is a failure. One in which the user named the
    target is left out, of the baselines too: it is skipped.

    The baselines talk to nobody: in each turn Random gives as many items of the whole catalogue at random, and
    Popularity draws them, without replacement, by their interactions in the training part; no turn knows of another.
    Random's values are exact. Popularity's rest on how often an item is among 2000 samples; from there on exact.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        counts = training_counts(dataset)
        self._items = tuple(dataset.items)
        self._titles = {item.id: item.title for item in dataset.items.values()}
        self._cases = dataset.cases
        self._weights = np.array([counts[item] for item in self._items], np.float64)
        self._turns: dict[int, list[EventLine]] = {}  # of talks that go on, by their test cases
        self._talks: list[Talk] = []

    def take(self, line: EventLine) -> None:
        """Take in a turn of a conversation of this stage."""
        if line.kind == f"{self.name}.turn":
            case = line.data["case"]
            self._turns.setdefault(case, []).append(line)
            if not line.spawns:
                target = self._cases[case]
                self._talks.append(_talk(self._turns.pop(case), target, self._titles[target.target]))

    def found(self, seed: int) -> Found:
        """Hit and AT of the agent and the baselines, then calls, errors, verdicts and endings of the agent's talks."""
        counted = self._counted()
        left_out = len(self._talks) - len(counted)
        results = [*self._success(counted, seed), *self._work(seed)] if counted else []
        return Found(results, {"the target was named": left_out} if left_out else {}, list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw, for each number of turns, which share of conversations had hit by then, into a PNG file."""
        counted = self._counted()
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

    def per_case(self) -> Iterator[tuple[str, str, PerCase]]:
        """The agent's hits and turns, and calls a turn, of each conversation in which the target was not named.

        One in which no turn was answered has no calls a turn.
        """
        talks = self._counted()
        if talks:
            columns = {(metric, self._limit(talks)): of for metric, of in _success(talks).items()}
            columns[CALLS, None] = np.array([talk.calls / talk.answered if talk.answered else np.nan for talk in talks])
            yield AGENT, AGENT, PerCase(tuple(talk.case for talk in talks), columns)

    def _counted(self) -> list[Talk]:
        return [talk for talk in self._talks if "named" not in talk.marks]

    def _limit(self, talks: Sequence[Talk]) -> int | None:
        limits = {talk.turns for talk in talks}
        return limits.pop() if len(limits) == 1 else None

    def _success(self, talks: Sequence[Talk], seed: int) -> Iterator[Result]:
        turns, k = np.array([talk.turns for talk in talks]), self._limit(talks)
        columns = {AGENT: _success(talks)}
        columns |= {name: _expected(of, turns) for name, of in self._chances(talks, seed).items()}
        users = [talk.case[0] for talk in talks]
        for name, values in columns.items():
            for metric, of in values.items():
                yield Result(self.name, name, metric, k, *bootstrap(of, users, seed=seed), 1)

    def _work(self, seed: int) -> Iterator[Result]:
        """What the agent's talks took, all of them."""
        answered = [talk for talk in self._talks if talk.answered]
        planned = [talk for talk in answered if talk.planned]
        judged = [talk for talk in self._talks if talk.verdicts.total()]
        columns = {
            CALLS: (answered, [talk.calls / talk.answered for talk in answered]),
            ERRORS: (planned, [float(talk.errors.total()) for talk in planned]),
            ACCEPTED: (judged, [talk.verdicts["accepted"] / talk.verdicts.total() for talk in judged]),
            **{f"ended by {how}": (self._talks, [float(it.how == how) for it in self._talks]) for how in ENDS},
        }
        for metric, (talks, values) in columns.items():
            if talks:
                interval = bootstrap(values, [talk.case[0] for talk in talks], seed=seed)
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
        if any(talk.planned for talk in self._talks):
            size = f"in {len(self._talks)} conversation{'s' * (len(self._talks) != 1)}"
            yield f"{self.name}: tool errors {size}: {told(added(talk.errors for talk in self._talks))}"
            yield f"{self.name}: verdicts of the critic {size}: {told(added(talk.verdicts for talk in self._talks))}"
        for mark, text in (("named", "name the target"), ("told too much", "tell more than three things at a time")):
            marked = [talk.case[0] for talk in self._talks if mark in talk.marks]
            if marked:
                yield (
                    f"{self.name}: conversations in which users {text}, however often they are asked again: "
                    f"{len(marked)} ({named(marked)})"
                )
        titles = added(talk.titles for talk in self._talks)
        if titles:
            yield f"{self.name}: titles in vain: {told(titles)}"
        apart = Counter((talk.how == "hit", bool(talk.named)) for talk in self._counted())
        if apart[True, False] or apart[False, True]:
            yield (
                f"{self.name}: by the text of the replies {apart[False, True]} conversations hit that do not by item "
                f"id, and {apart[True, False]} do not that do"
            )
        failed = Counter(talk.failure for talk in self._talks if talk.how == "error")
        for failure, count in sorted(failed.items()):
            yield f"{self.name}: {count} conversations ended by an error ({failure})"


def _success(talks: Sequence[Talk]) -> dict[str, NDArray[np.float64]]:
    """Hit and AT of each conversation, by item ids and by texts."""
    turns = np.array([talk.turns for talk in talks])
    found = [talk.ended if talk.how == "hit" else 0 for talk in talks], [talk.named for talk in talks]
    columns: dict[str, NDArray[np.float64]] = {}
    for (hit, at), ended in zip(((HIT, AT), (TEXT_HIT, TEXT_AT)), map(np.array, found), strict=True):
        columns[hit] = (ended > 0).astype(np.float64)
        columns[at] = np.where(ended > 0, ended, turns + 1).astype(np.float64)
    return columns


def _expected(chance: NDArray[np.float64], turns: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Hit and AT of one whose every turn hits with this chance: AT is 1 + the sum of the chances to go on."""
    missed = 1 - chance
    at = [sum(miss**turn for turn in range(limit + 1)) for miss, limit in zip(missed, turns.tolist(), strict=True)]
    return {HIT: 1 - missed**turns, AT: np.array(at, np.float64)}


def _talk(turns: Sequence[EventLine], case: Case, title: str) -> Talk:
    """A conversation that has come to its end, from its turns."""
    messages = [message for line in turns for message in line.messages]
    plans, data = bodies(messages, "plan"), turns[-1].data
    failed = {"how": "error", "turns": data["turn"], "marks": data["marks"]}  # as a whole, such a turn says no end
    end = (*bodies(messages, "end"), failed)[0]
    answered = turns[:-1] if end["how"] == "error" else turns  # what was written before an error nobody has heard
    saying = [
        line.data["turn"]
        for line in answered
        for it in bodies(line.messages, "reply")[-1:]
        if textual.named(it["text"], title)
    ]
    calls = [sum(path.partition("/")[0] in _TASKS for path in line.calls) for line in turns]
    units = [unit for line in turns for unit in line.units.items()]
    return Talk(
        case=case.key,
        target=case.target,
        turns=data["turns"],
        k=data["k"],
        how=end["how"],
        ended=end["turns"],
        named=min(saying, default=0),
        marks=tuple(end["marks"]),
        calls=sum(calls),
        answered=sum(map(bool, calls)),
        planned=bool(plans),
        errors=tool_errors(plans),
        verdicts=verdicts(bodies(messages, "verdict"), units),
        titles=in_vain(bodies(messages, "reply")),
        failure=first_failure(turns[-1]),
    )
