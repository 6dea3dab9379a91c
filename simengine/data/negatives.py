"""Negative items: drawn in proportion to popularity, or recorded in a file."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType

import msgspec

from simengine.data.atomic import read_lines
from simengine.data.dataset import Case, Dataset, Interaction
from simengine.errors import InputError


class PopularityNegatives:
    """Draws items in proportion to how often they occur in the training parts (AgentCF, appendix B.2).

    A drawn item is never one that is known of the user (training part, validation, test); one call draws none twice.
    The table is made once, so a draw depends on nothing but the data set, the user and the generator. With ``domain``
    it holds the items of that domain alone.
    """

    def __init__(self, dataset: Dataset, domain: str | None = None) -> None:
        part = dataset.training_part
        counts = [
            (part.items[item], count)
            for item, count in sorted(Counter(part.item.tolist()).items())
            if domain is None or dataset.items[part.items[item]].domain == domain
        ]
        self._items = [item for item, _ in counts]
        self._counts = [count for _, count in counts]
        self._cumulative = list(accumulate(self._counts))
        self._own = dataset.own

    def draw(self, user: str, random: random.Random, n: int = 1) -> tuple[str, ...]:
        """``n`` different negatives for this user, in the order drawn; fewer where there are no more."""
        own = self._own[user]
        drawn: dict[str, None] = {}
        attempts = 8 * n + 8 if self._items else 0
        while len(drawn) < n and attempts:
            attempts -= 1
            item = self._items[bisect_right(self._cumulative, random.randrange(self._cumulative[-1]))]
            if item not in own:
                drawn[item] = None
        if len(drawn) < n:
            self._draw_rest(own, random, n, drawn)
        return tuple(drawn)

    def _draw_rest(self, own: frozenset[str], random: random.Random, n: int, drawn: dict[str, None]) -> None:
        """Complete ``drawn`` by the same law without rejection, for users who know nearly all that is popular."""
        left = {
            item: count
            for item, count in zip(self._items, self._counts, strict=True)
            if item not in own and item not in drawn
        }
        while left and len(drawn) < n:
            cumulative = list(accumulate(left.values()))
            item = list(left)[bisect_right(cumulative, random.randrange(cumulative[-1]))]
            drawn[item] = None
            del left[item]


class RecordedNegatives:
    """The negatives that a file records, one for each interaction to re-enact."""

    def __init__(self, dataset: Dataset) -> None:
        if dataset.recorded_negatives is None:
            raise InputError(
                f"data set {dataset.name} has no recorded negatives", remedy="Name their file under data.negatives."
            )
        self._negatives = dataset.recorded_negatives

    def of(self, interaction: Interaction) -> str:
        """The recorded negative of an interaction of ``dataset.train``."""
        return self._negatives[interaction]


def with_drawn_candidates(dataset: Dataset, negatives: int, seed: int) -> Dataset:
    """The data set with the candidates of each case set to the target and so many negatives, in natural order of ids.

    The negatives are drawn uniformly from all items that are not known of the user, as AgentCF's evaluation does
    (section 3.1.2), and where items have domains from those of the target's, as AgentCF++'s does (section 4.1.2); each
    case with a stream of its own. A draw by popularity would put popularity below chance. A case for which there is
    nothing to draw keeps no candidates, so that nobody ranks it: with its target alone every ranker would be right.
    Notes say how they were drawn, and how many cases get fewer or none.
    """
    shelves: defaultdict[str, list[str]] = defaultdict(list)
    for item in dataset.items.values():
        shelves[item.domain].append(item.id)
    cases = []
    for case in dataset.cases:
        items = shelves[dataset.items[case.target].domain]
        others = [item for item in items if item not in dataset.own[case.user]]
        lot = random.Random(" ".join(("candidates", str(seed), case.user, *case.again)))
        drawn = set(lot.sample(others, min(negatives, len(others))))
        candidates = tuple(item for item in items if item in drawn or item == case.target) if drawn else None
        cases.append(msgspec.structs.replace(case, candidates=candidates))
    pool = "what is not known of the user" + (" in the domain of the target" if len(shelves) > 1 else "")
    notes = [f"candidates: the target and {negatives} negatives, drawn uniformly from {pool}"]
    short = sum(case.candidates is not None and len(case.candidates) <= negatives for case in cases)
    if short:
        notes.append(f"{short} test cases have fewer than {negatives} negatives to draw")
    notes += _alone(dataset, [case for case in cases if case.candidates is None], shelves)
    return replace(dataset, cases=tuple(cases), notes=(*dataset.notes, *notes))


def _alone(dataset: Dataset, cases: Sequence[Case], shelves: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What to say of cases without a negative: their users have had all of the target's domain."""
    if not cases:
        return
    domains = dict.fromkeys(dataset.items[case.target].domain for case in cases)
    sizes = ", ".join(f"{name or 'no domain'}: {len(shelves[name])} items" for name in domains)
    yield (
        f"{len(cases)} of {len(dataset.cases)} test cases have no negative to draw, as their users have taken all of "
        f"the target's domain ({sizes}); nobody ranks them"
    )


def redrawn(case: Case, dataset: Dataset, pool: Sequence[str], stream: random.Random) -> Case:
    """The case with other negatives, as many as before, drawn uniformly from what in ``pool`` is not known of the user
    and is of the target's domain.

    The target keeps its place among the candidates, so that scores of both cases can be told alike; fewer negatives
    are drawn where there are no more, which may move it. Raises ``ValueError`` for a case without candidates.
    """
    if case.candidates is None:
        raise ValueError(f"user {case.user} has no candidates to draw anew")
    out, domain = {*dataset.own[case.user], case.target}, dataset.items[case.target].domain
    others = [item for item in pool if item not in out and dataset.items[item].domain == domain]
    drawn = set(stream.sample(others, min(len(case.candidates) - 1, len(others))))
    negatives = [item for item in others if item in drawn]
    at = case.candidates.index(case.target)
    return msgspec.structs.replace(case, candidates=(*negatives[:at], case.target, *negatives[at:]))


def by_popularity(dataset: Dataset) -> list[str]:
    """All items, the rarest in the training parts first; equally popular ones in natural order of ids."""
    part = dataset.training_part
    counts = Counter(part.item.tolist())
    of = {part.items[item]: count for item, count in counts.items()}
    return sorted(dataset.items, key=lambda item: of.get(item, 0))  # stable


class _Recorded(msgspec.Struct):
    """One row of a file of recorded negatives; other fields are not looked at."""

    user_id: str
    pos_item_id: str
    neg_item_ids: list[str]


def read_recorded(path: Path, dataset: Dataset) -> tuple[Mapping[Interaction, str], str, tuple[str, ...]]:
    """The negative of each interaction to re-enact, from a JSON-lines file, the SHA-256 of its bytes, and notes.

    Rows belong to interactions by user and item; where a user takes an item several times, in order. Of several
    negatives the first is used. An interaction without a row is an error; rows without an interaction, and negatives
    that are items of the user's own, are counted.
    """
    lines, sha256 = read_lines(path)
    waiting: defaultdict[tuple[str, str], deque[str]] = defaultdict(deque)
    for number, line in enumerate(lines, 1):
        row = _parse(line, path, number)
        unknown = [item for item in row.neg_item_ids[:1] if item not in dataset.items]
        if unknown or not row.neg_item_ids:
            raise InputError(
                f"negative {unknown[0]!r} is not in the item table" if unknown else "the row names no negative",
                remedy="Give at least one id of the item table.",
                file=str(path),
                line=number,
                field="neg_item_ids",
            )
        waiting[row.user_id, row.pos_item_id].append(row.neg_item_ids[0])
    negatives: dict[Interaction, str] = {}
    for interaction in dataset.train:
        queue = waiting[interaction.user, interaction.item]
        if not queue:
            raise InputError(
                "no negative is recorded for this interaction",
                remedy="Add a row with its user_id and pos_item_id, or leave data.negatives out to draw negatives.",
                file=str(path),
                user=interaction.user,
                item=interaction.item,
                time=interaction.time,
            )
        negatives[interaction] = queue.popleft()
    return MappingProxyType(negatives), sha256, tuple(_recorded_notes(negatives, waiting, dataset))


def _recorded_notes(
    negatives: Mapping[Interaction, str], waiting: Mapping[tuple[str, str], deque[str]], dataset: Dataset
) -> Iterator[str]:
    own = sum(item in dataset.own[interaction.user] for interaction, item in negatives.items())
    if own:
        yield f"{own} recorded negatives are items of the user's own; they are used as given"
    unused = sum(map(len, waiting.values()))
    if unused:
        yield f"{unused} recorded negatives belong to no interaction that is re-enacted"


def _parse(line: str, path: Path, number: int) -> _Recorded:
    try:
        return msgspec.json.decode(line, type=_Recorded)
    except msgspec.DecodeError as error:
        raise InputError(
            f"this is no row of recorded negatives: {error}",
            remedy='Each line is like {"user_id": "1", "pos_item_id": "7", "neg_item_ids": ["9"]}.',
            file=str(path),
            line=number,
        ) from None
