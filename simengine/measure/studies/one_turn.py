"""What one-turn recommendation came to: whether the target was among the items, or at which rank; beside baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from simengine.data import Case, Dataset
from simengine.measure import figures, textual
from simengine.measure.compare import Metric, PerCase
from simengine.measure.metrics import expected_at
from simengine.measure.results import Result
from simengine.measure.statistics import bootstrap
from simengine.measure.studies.reading import Found
from simengine.measure.studies.turns import (
    AGENT,
    POPULARITY,
    RANDOM,
    Body,
    added,
    bodies,
    in_vain,
    told,
    tool_errors,
    verdicts,
)
from simengine.measure.trivial import training_counts
from simengine.measure.weighted import drawn_by_weight, ndcg_by_weight
from simengine.runlog import EventLine

RETRIEVAL: Final = "retrieval"
RANKING: Final = "ranking"
RECALL, TEXT_RECALL, NDCG, CALLS = "recall", "text recall", "ndcg", "calls"
"""Recall by ids, Recall by the replies' texts (see :func:`~simengine.measure.textual.named`), NDCG, model calls."""

_WORK = ("plan", "step", "reply", "critic")


class Answered(msgspec.Struct, frozen=True):
    """One case of one task: the request, and what came of it.

    ``ranks`` has an id for each title that the recommender gave, an empty one where a title means no item or one that
    stands before; nothing where there was no answer, of which ``failure`` says why. ``vain`` counts these titles by
    reason. ``named``: the talk named the target, of which its writer did not know. ``planned``: there was a plan.
    """

    case: Case
    k: int
    candidates: tuple[str, ...]
    ranks: tuple[str, ...]
    text: str
    named: bool
    calls: int
    planned: bool
    failure: str
    vain: Counter[str]
    beyond: int
    errors: Counter[str]
    verdicts: Counter[str]

    @property
    def rank(self) -> int:
        """The target's rank, from 1; 0 where it is not among the first ``k``."""
        target = self.case.target
        return self.ranks.index(target) + 1 if target in self.ranks[: self.k] else 0


class OneTurnReading:
    """Reads where in the answer to the one request the target stands (section 4.1).

    Recall@k of a retrieval is 1 where the target's id is among the items recommended. NDCG@k of a ranking of ``k``
    candidates is 1 / log2(rank + 1), and 0 where the target is left out. A title that is invented, or repeated, has its
    rank all the same, as has an item that was not to be ranked. Where no answer can be read, both are 0. A case without
    a talk, or without a list to rank, is skipped, for the baselines too.

    Random's values are exact: k of all items, and the mean over all ranks. Popularity draws items one by one without
    replacement, by their interactions in the training part, from the catalogue or, to rank them, from the candidates;
    its values are counted in :data:`~simengine.measure.weighted.DRAWS` samples.
    """

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name = name
        self._cases = dataset.cases
        self._titles = {item.id: item.title for item in dataset.items.values()}
        counts = training_counts(dataset)
        self._weights = {item: float(counts[item]) for item in dataset.items}
        self._answered: dict[str, list[Answered]] = {RETRIEVAL: [], RANKING: []}
        self._skipped: Counter[str] = Counter()
        self._left_out: list[str] = []

    def take(self, line: EventLine) -> None:
        """Take in a case of this stage."""
        task = line.kind.removeprefix(f"{self.name}.")
        if task not in self._answered or task == line.kind:
            return
        self._left_out = line.data["left_out"]
        why = line.data["skip"] or ("" if line.units.get("dialogue") == "ok" else "no talk was written")
        if why:
            self._skipped[f"{task}: {why}"] += 1
        else:
            self._answered[task].append(_answered(line, self._cases[line.data["case"]]))

    def found(self, seed: int) -> Found:
        """Recall and NDCG of the agent and the baselines, and the agent's calls, by task."""
        results = [
            Result(self.name, ranker, metric, k, *bootstrap(values, found.users, seed=seed), 1, group=task)
            for task in self._answered
            for ranker, found in self._values(task, seed).items()
            for (metric, k), values in found.values.items()
        ]
        return Found(results, dict(self._skipped), list(self._notes()))

    def draw(self, found: Found, path: Path) -> None:
        """Draw Recall and NDCG of the agent and the baselines into a PNG file."""
        shown = [it for it in found.results if it.metric in (RECALL, NDCG)]
        groups = list(dict.fromkeys((it.group, it.metric, it.k) for it in shown))
        series = {
            ranker: [it.interval for it in shown if it.ranker == ranker] for ranker in (AGENT, RANDOM, POPULARITY)
        }
        words = figures.Words("One-turn recommendation", "", "mean")
        figures.bars(path, [f"{task}: {metric}@{k}" for task, metric, k in groups], series, words)

    def per_case(self) -> Iterator[tuple[str, str, PerCase]]:
        """The agent's values of each case, by task."""
        for task in self._answered:
            values = self._values(task, seed=0)
            if values:
                yield task, f"{AGENT}, {task}", values[AGENT]

    def _values(self, task: str, seed: int) -> dict[str, PerCase]:
        """The values of each case, by ranker: the agent's, then the baselines'; none where no case was answered."""
        answered = self._answered[task]
        if not answered:
            return {}
        k = max(it.k for it in answered)
        ranks = np.array([it.rank for it in answered])
        columns: dict[str, dict[Metric, Any]] = {AGENT: {}, RANDOM: {}, POPULARITY: {}}
        if task == RETRIEVAL:
            texts = [textual.named(it.text, self._titles[it.case.target]) for it in answered]
            columns[AGENT] = {(RECALL, k): ranks > 0, (TEXT_RECALL, k): texts}
            place = {item: at for at, item in enumerate(self._weights)}
            popular = drawn_by_weight(np.array(list(self._weights.values())), k, seed)
            columns[RANDOM][RECALL, k] = np.full(len(answered), min(k / len(place), 1.0))
            columns[POPULARITY][RECALL, k] = [popular[place[it.case.target]] for it in answered]
        else:
            columns[AGENT] = {(NDCG, k): np.where(ranks > 0, 1 / np.log2(np.maximum(ranks, 1) + 1), 0.0)}
            sizes = [len(it.candidates) for it in answered]
            columns[RANDOM][NDCG, k] = expected_at(np.zeros(len(sizes)), sizes, [k]).ndcg[k]
            columns[POPULARITY][NDCG, k] = [self._popular(it, (seed, at)) for at, it in enumerate(answered)]
        columns[AGENT][CALLS, None] = [it.calls for it in answered]
        cases = tuple(it.case.key for it in answered)
        return {
            ranker: PerCase(cases, {metric: np.asarray(of, np.float64) for metric, of in values.items()})
            for ranker, values in columns.items()
        }

    def _popular(self, answered: Answered, seed: tuple[int, int]) -> float:
        weights = np.array([self._weights[item] for item in answered.candidates])
        return ndcg_by_weight(weights, answered.candidates.index(answered.case.target), seed)

    # -- notes ------------------------------------------------------------------------------------------------------

    def _notes(self) -> Iterator[str]:
        if RANKING in self._left_out:
            yield f"{self.name}: Chat-Rec ranks no list, since it retrieves its candidates by itself (section 4.3)"
        for task, answered in self._answered.items():
            for text in _notes(task, answered) if answered else ():
                yield f"{self.name}, {task}: {text}"
        apart = Counter(
            (it.rank > 0, textual.named(it.text, self._titles[it.case.target])) for it in self._answered[RETRIEVAL]
        )
        if apart[True, False] or apart[False, True]:
            yield (
                f"{self.name}: by the text of the replies {apart[False, True]} targets are recommended that are not by "
                f"item id, and {apart[True, False]} are not that are"
            )


def _notes(task: str, answered: Sequence[Answered]) -> Iterator[str]:
    """What is to be known of the answers to one task."""
    size = f"in {len(answered)} case{'s' * (len(answered) != 1)}"
    if any(it.planned for it in answered):
        yield f"tool errors {size}: {told(added(it.errors for it in answered))}"
        yield f"verdicts of the critic {size}: {told(added(it.verdicts for it in answered))}"
    vain = added(it.vain for it in answered) + Counter({"beyond the last": sum(it.beyond for it in answered)})
    if vain:
        yield f"titles in vain {size}: {told(vain)}"
    failed = Counter(it.failure for it in answered if it.failure)
    if failed:
        yield f"no answer in {failed.total()} of {len(answered)} cases, which count 0: {told(failed)}"
    if task == RANKING:
        left = sum(len(set(it.candidates) - set(it.ranks)) for it in answered)
        strange = sum(bool(item) and item not in it.candidates for it in answered for item in it.ranks)
        yield f"of {sum(len(it.candidates) for it in answered)} candidates {left} are left out of the rankings"
        if strange:
            yield f"{strange} places are taken by items that were not to be ranked"
        short = sum(len(it.candidates) < it.k for it in answered)
        if short:
            yield f"{short} cases have fewer candidates than were asked for, as their users know all others"
    named = sum(it.named for it in answered)
    if named:
        yield f"{named} talks name the target, of which their writer did not know; they count"


def _answered(line: EventLine, case: Case) -> Answered:
    """A case from its event: of several attempts the last one is the answer."""
    said, plans = line.messages, bodies(line.messages, "plan")
    end = (*bodies(said, "end"), {"how": "error", "named": False})[0]  # an event that fails as a whole says no end
    reply: Body = bodies(said, "reply")[-1] if end["how"] == "answer" else {"items": [], "text": ""}
    return Answered(
        case=case,
        k=line.data["k"],
        candidates=tuple(line.data["candidates"]),
        ranks=tuple(reply["ranks"] if "ranks" in reply else reply["items"]),
        text=reply["text"],
        named=end["named"],
        calls=sum(path.partition("/")[0] in _WORK for path in line.calls),
        planned=bool(plans),
        failure="" if end["how"] == "answer" else _failure(line),
        vain=in_vain([reply]),
        beyond=reply.get("beyond", 0),
        errors=tool_errors(plans),
        verdicts=verdicts(bodies(said, "verdict"), line.units.items()),
    )


def _failure(line: EventLine) -> str:
    """Why there is no answer: the last unit that failed, without its number, as one that failed may be made up for."""
    failed = [(unit, outcome) for unit, outcome in line.units.items() if outcome != "ok"]
    return f"{failed[-1][0].partition('/')[0]}: {failed[-1][1]}" if failed else "unknown"
