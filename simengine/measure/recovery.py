"""What agents recovered of what a market has planted: a run's log held against the market's ground truth.

Each value is a mean over users with its bootstrap interval. Where mere chance has a value it stands beside: on a null
market the intervals cover it, up to their level; on a planted one they lie above it, as far as agents learn. The
interests that a text names are found by the catalogue's own phrases, whoever wrote the text; a sentence that speaks of
dislikes, or a half of it, is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simengine.data import Dataset
from simengine.data.market_truth import Truth
from simengine.measure.compare import compare_paired, per_case
from simengine.measure.logged import RankingReader
from simengine.measure.statistics import bootstrap
from simengine.rankers import RANKERS
from simengine.runlog import EventLine

CUT = 10
"""The cut-off of the NDCG whose gain is measured."""

_PART = re.compile(r"(?<=[.!?])\s+|\n|,?\s+(?:but|while|whereas|although|however),?\s+")
_DISLIKE = re.compile(r"\b(?:dislike|hate|avoid|not|never|no longer|less|bore)|n['’]t\b", re.IGNORECASE)


class Recovered(msgspec.Struct, frozen=True):
    """One thing that was recovered: its mean over ``n`` users with its interval, and what chance would give.

    ``chance`` is ``None`` where chance has no one value. NaN becomes ``null`` in JSON.
    """

    what: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    chance: float | None


class Recovery:
    """Gathers what agents did, as the log's events are handed to it one after the other, then compares."""

    def __init__(self, dataset: Dataset, truth: Truth) -> None:
        self._data = dataset
        self._truth = truth
        self._interest_in = [re.compile(rf"\b(?:{'|'.join(map(re.escape, own))})\b", re.I) for own in truth.phrases]
        self._memories: dict[str, dict[str, str]] = defaultdict(dict)
        self._choices: list[tuple[str, int, list[bool]]] = []
        self._steps: Counter[str] = Counter()
        self._rankings: dict[str, RankingReader] = {}
        self._strategies: dict[tuple[str, str], None] = {}

    def take(self, line: EventLine) -> None:
        """Take in an event."""
        for version in line.memories:
            if not version.append:  # what is only ever added to is a diary, not what the agent now thinks
                self._memories[version.agent][version.slot] = version.value
        if line.kind == "interaction":
            user, taken = line.data["user"], f"item:{line.data['item']}"
            self._steps[user] += 1
            rounds = [message.recipient == taken for message in line.messages if message.kind == "choice"]
            self._choices.append((user, self._steps[user], rounds))
        if line.kind == "ranking" and "candidates" not in line.data and "group" not in line.data:
            stage = line.data["stage"]
            self._strategies[stage, line.data["strategy"]] = None
            self._rankings.setdefault(stage, RankingReader(self._data.cases, stage)).take(line)

    def results(self, seed: int = 0) -> list[Recovered]:
        """What was recovered; ``seed`` is that of the bootstrap's resamples."""
        return [
            self._mean("interests in user memories", self._user_memories(), 0.5, seed),
            self._mean("interests of the items re-enacted, for comparison", self._items_taken(), 0.5, seed),
            self._mean("adopters' interests in item memories", self._item_memories(), 0.5, seed),
            *(self._mean(what, lifts, 0.0, seed) for what, lifts in self._fashions()),
            *(self._mean(what, right, None, seed) for what, right in self._right_choices()),
            *self._gains(seed),
        ]

    def _mean(self, what: str, values: Iterable[float], chance: float | None, seed: int) -> Recovered:
        """The mean over the users who have a value."""
        found = np.fromiter(values, np.float64)
        return Recovered(what, *bootstrap(found[~np.isnan(found)], seed=seed), chance)

    def _user_memories(self) -> Iterator[float]:
        """For each user, how well the phrases of each interest in the final memory agree with the planted taste."""
        for user in self._remembering():
            yield concordance(self._named(f"user:{user}"), self._truth.taste(user))

    def _items_taken(self) -> Iterator[float]:
        """The same of the items that the user took while agents could learn: what there was to recover."""
        train = self._data.train
        counts = np.zeros((len(train.users), len(self._truth.interests)))
        for user, item in zip(train.user.tolist(), train.item.tolist(), strict=True):
            counts[user, self._truth.item_interest[train.items[item]]] += 1
        for user, count in zip(train.users, counts, strict=True):
            if count.any():
                yield concordance(count, self._truth.taste(user))

    def _item_memories(self) -> Iterator[float]:
        """For each user, how well the memories of the items that he took name his other interests, not their own."""
        taken: dict[str, dict[str, None]] = defaultdict(dict)
        for row in self._data.train:
            taken[row.user][row.item] = None
        named = {item: self._named(f"item:{item}") for item in self._data.items if f"item:{item}" in self._memories}
        for user, items in taken.items():
            values = []
            for item in items:
                if item in named:
                    others = np.arange(len(self._truth.interests)) != self._truth.item_interest[item]
                    values.append(concordance(named[item][others], self._truth.taste(user)[others]))
            if values:
                yield float(np.mean(values))

    def _fashions(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """By how many phrases of a fashion's interest the memories of those who follow it exceed those of others.

        The values are such that their mean over users is the difference of the two groups' means.
        """
        users = list(self._remembering())
        for fashion, followers in self._truth.fashions:
            interest = self._truth.interests.index(fashion.interest)
            counts = np.array([self._named(f"user:{user}")[interest] for user in users])
            follows = np.array([self._truth.position[user] in followers for user in users], bool)
            if follows.any() and not follows.all():
                weights = np.where(follows, 1 / follows.sum(), -1 / (~follows).sum())
                yield (
                    f"fashion for {fashion.interest} in user memories",
                    (counts - counts.mean()) * weights * len(users),
                )

    def _right_choices(self) -> Iterator[tuple[str, list[float]]]:
        """Shares of choices that took the real item. It always stands second, so chance depends on how strong the
        pull of the first place is."""
        by_step: dict[int, list[float]] = defaultdict(list)
        again: dict[str, list[bool]] = defaultdict(list)
        for user, step, rounds in self._choices:
            if rounds:
                by_step[step].append(rounds[0])
                again[user].extend(rounds[1:])
        for step, right in sorted(by_step.items()):
            yield f"right at first, step {step}", right
        yield "right after reflection", [float(np.mean(right)) for right in again.values() if right]

    def _gains(self, seed: int) -> Iterator[Recovered]:
        """NDCG of each stage's rankings of the market's own candidates over that of the rankers that know no taste."""
        cases = [case for case in self._data.cases if case.candidates is not None]
        for stage, strategy in self._strategies:
            agents = per_case(cases, self._rankings[stage].attempts(strategy), [CUT])
            for name in ("random", "pop"):
                ranker = RANKERS[name]()
                ranker.fit(self._data)
                base = per_case(cases, [[ranker.score(case, case.candidates or ())] for case in cases], [CUT])
                (gain,) = (pair for pair in compare_paired(base, agents, seed=seed) if pair.metric == "ndcg")
                what = f"{stage} {strategy}: ndcg@{CUT} over {name}"
                yield Recovered(what, gain.difference, gain.low, gain.high, gain.n, 0.0)

    def _remembering(self) -> Iterator[str]:
        """The users who have learnt something, in order."""
        return (user for user in self._data.users if f"user:{user}" in self._memories)

    def _named(self, agent: str) -> NDArray[np.int64]:
        """How many phrases of each interest an agent's memory names as liked."""
        text = liked("\n".join(self._memories[agent].values()))
        return np.array([len({hit.lower() for hit in own.findall(text)}) for own in self._interest_in])


def recover(lines: Iterable[EventLine], dataset: Dataset, truth: Truth, *, seed: int = 0) -> list[Recovered]:
    """What was recovered in a whole log, such as ``Reader(path)`` gives."""
    recovery = Recovery(dataset, truth)
    for line in lines:
        recovery.take(line)
    return recovery.results(seed)


def liked(text: str) -> str:
    """A memory without what speaks of dislikes."""
    return "\n".join(part for part in _PART.split(text) if not _DISLIKE.search(part))


def concordance(found: ArrayLike, planted: ArrayLike) -> float:
    """Of all pairs that differ in ``planted``, the share that ``found`` orders alike; a tie in ``found`` is half.

    This is the AUC where ``planted`` has two values; 1 is perfect, 0.5 chance. NaN where there is no such pair.
    """
    one, other = (np.sign(np.subtract.outer(values, values)) for values in (np.asarray(found), np.asarray(planted)))
    pairs = other > 0
    return float((1 + one[pairs].astype(np.float64)).mean() / 2) if pairs.any() else float("nan")
