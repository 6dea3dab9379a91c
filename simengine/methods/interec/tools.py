"""The tools: look-up, hard filter, soft filter, ranking, store and fetch (section 3.1 and appendix B.2).

Each takes a typed input and the candidates, and gives a typed result and the candidates as they are then; what cannot
be done is a :class:`~simengine.methods.interec.faults.Fault`, and leaves them as they were.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from simengine.methods.interec.bus import Candidates, Order
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.results import By, Fetched, Named, Narrowed, Ranked, Result, Rows, Shown, Stored
from simengine.methods.interec.similar import Preference, Scores, Similar
from simengine.methods.interec.sql import Fence
from simengine.methods.interec.table import ItemTable

ROWS = 20
"""Rows of a look-up that are kept."""

FILTERED = 1000
"""Candidates that a hard filter leaves, at most (section 4.1)."""

TOP_SHARE = 0.05
"""The part of the catalogue that is similar enough for a soft filter (section 4.1)."""

RANKED = 100
"""Candidates that a ranking leaves, at most."""

FETCHED = 20
"""Candidates that a fetch gives, at most."""

Sql: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
TitleText: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Titles: TypeAlias = Annotated[tuple[TitleText, ...], Field(max_length=50)]
SomeTitles: TypeAlias = Annotated[tuple[TitleText, ...], Field(min_length=1, max_length=50)]


class Input(BaseModel):
    """What a tool is given: the types as they are, no other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LookUp(Input):
    """A query over ``items``, all of the catalogue, or over ``candidates``."""

    sql: Sql


class HardFilter(Input):
    """A query over ``candidates`` that gives a column ``id``: these stay."""

    sql: Sql


class SoftFilter(Input):
    """Titles of items: what is similar to them stays."""

    titles: SomeTitles


class Rank(Input):
    """By what to rank. Where liked titles are given, it is by preference; unwanted ones do not come back."""

    by: By = "popularity"
    liked: Titles = ()
    unwanted: Titles = ()


class Store(Input):
    """Titles of items, which become the candidates."""

    titles: SomeTitles


class Fetch(Input):
    """How many of the best candidates to give."""

    n: Annotated[int, Field(ge=1, le=FETCHED)] = 5


@dataclass(frozen=True)
class Shop:
    """What the tools of one run work with; nothing of it changes."""

    table: ItemTable
    fence: Fence
    similar: Similar
    preference: Preference


Outcome: TypeAlias = tuple[Result, Candidates]


def look_up(given: LookUp, at: Candidates, shop: Shop, draws: random.Random) -> Outcome:
    """Answer a query; the candidates stay as they are."""
    answer = shop.fence.ask(given.sql, at.ids, rows=ROWS)
    return Rows(answer.columns, answer.rows, answer.more, answer.missing), at


def hard_filter(given: HardFilter, at: Candidates, shop: Shop, draws: random.Random) -> Outcome:
    """Keep the candidates whose ids a query gives.

    Of more than ``FILTERED`` the first are kept where the query orders them, else a sample. Candidates keep their
    order where the query says none.
    """
    before = _there(at, shop)
    answer = shop.fence.ask(given.sql, at.ids, rows=len(shop.table))
    if answer.more:
        raise Fault("too_many_rows", "the query gives more rows than there are items; give each id once")
    names = [name.lower() for name in answer.columns]
    if names.count("id") != 1:
        raise Fault("no_ids", "a filter gives one column called id, as in SELECT id FROM candidates")
    values = [row[names.index("id")] for row in answer.rows]
    column = dict.fromkeys(it for it in values if isinstance(it, int))
    if not all(isinstance(it, int) for it in values):
        raise Fault("no_ids", "the column id holds what is no id")
    running = frozenset(before)
    given_ids = [it for it in column if it in running]
    chosen = frozenset(given_ids)
    kept = tuple(it for it in (given_ids if answer.ordered else before) if it in chosen)
    if not kept:
        absent = f"; there is no {', no '.join(answer.missing)}" if answer.missing else ""
        raise Fault("no_match", f"the query matches none of the {len(before)} candidates{absent}")
    cut: Literal["", "first", "sample"] = ""
    if len(kept) > FILTERED:
        cut = "first" if answer.ordered else "sample"
        places = range(FILTERED) if answer.ordered else sorted(draws.sample(range(len(kept)), FILTERED))
        kept = tuple(kept[place] for place in places)
    order: Order = "query" if answer.ordered else at.order
    return Narrowed(len(kept), cut, len(column) - len(given_ids), answer.missing), at.narrowed(kept, order)


def soft_filter(given: SoftFilter, at: Candidates, shop: Shop, draws: random.Random) -> Outcome:
    """Keep the candidates that are among the ``TOP_SHARE`` of the catalogue most similar to the seeds.

    Items as similar as the last of them count too; what has nothing in common with a seed, and the seeds themselves,
    do not. The most similar come first.
    """
    before = _there(at, shop)
    seeds = named(given.titles, shop.table)
    if not seeds.ids:
        raise Fault("ambiguous" if seeds.ambiguous else "not_found", str(seeds))
    scores = shop.similar(_items(seeds.ids, shop))
    top = math.ceil(TOP_SHARE * len(scores))
    least = np.partition(scores, -top)[-top]
    similar = {it: float(scores[it - 1]) for it in before if scores[it - 1] >= least and scores[it - 1] > 0}
    kept = _by_score([it for it in similar if it not in seeds.ids], similar)
    if not kept:
        raise Fault("no_match", f"none of the {len(before)} candidates is similar enough")
    return Narrowed(len(kept), seeds=seeds), Candidates(kept, "similarity", tuple(similar[it] for it in kept))


def rank(given: Rank, at: Candidates, shop: Shop, draws: random.Random) -> Outcome:
    """Order the candidates and keep the best ``RANKED``; liked and unwanted items are taken out.

    By popularity: the logarithm of visits. By similarity: the scores of the last soft filter. By preference: the
    scores of a model for the liked items; what it cannot score comes last. Where there is nothing to go by, it is by
    popularity, and the result says so. Equal scores are in the order of ids.
    """
    liked, unwanted = named(given.liked, shop.table), named(given.unwanted, shop.table)
    out = {*liked.ids, *unwanted.ids, *_either(unwanted.ambiguous, shop.table)}
    left = [it for it in _there(at, shop) if it not in out]
    if not left:
        raise Fault("no_match", "all candidates are liked already, or unwanted")
    wish: By = "preference" if given.liked else given.by
    scores = _scores(wish, left, liked, at, shop)
    by: By = "popularity" if scores is None else wish
    kept = _by_score(left, scores or _popularity(left, shop))[:RANKED]
    instead: By | Literal[""] = "" if by == wish else wish
    return Ranked(by, len(kept), instead, liked, unwanted), at.narrowed(kept, by)


def store(given: Store, at: Candidates, shop: Shop, draws: random.Random) -> Outcome:
    """Make the named items the candidates, in the order of their titles."""
    found = named(given.titles, shop.table)
    if not found.ids:
        raise Fault("ambiguous" if found.ambiguous else "not_found", str(found))
    return Stored(found), Candidates(found.ids)


def fetch(given: Fetch, at: Candidates, shop: Shop, draws: random.Random) -> Outcome:
    """Give the first candidates and begin again from all items. What nothing has ordered comes by popularity."""
    before = _there(at, shop)
    if not at.order:
        before = _by_score(before, _popularity(before, shop))
    shown = [Shown(it, shop.table.items[it - 1], shop.table.titles[it - 1]) for it in before[: given.n]]
    return Fetched(tuple(shown), len(before), at.order or "popularity"), Candidates()


@dataclass(frozen=True)
class Tool:
    """A tool: its input, what it does, the field that a bare value is meant for, whether it narrows the candidates."""

    given: type[Input]
    run: Callable[[Any, Candidates, Shop, random.Random], Outcome]
    field: str
    narrows: bool = True
    has_rows: bool = False


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        "look_up": Tool(LookUp, look_up, "sql", narrows=False, has_rows=True),
        "hard_filter": Tool(HardFilter, hard_filter, "sql"),
        "soft_filter": Tool(SoftFilter, soft_filter, "titles"),
        "rank": Tool(Rank, rank, "by"),
        "store": Tool(Store, store, "titles"),
        "fetch": Tool(Fetch, fetch, "n", narrows=False, has_rows=True),
    }
)
"""The tools by the names that plans use."""


def named(titles: Iterable[str], table: ItemTable) -> Named:
    """The items that titles mean, each title as a whole; see :class:`~simengine.methods.interec.vocabulary.Titles`."""
    found = {title: table.by_title.find(title) for title in titles}
    return Named(
        tuple(dict.fromkeys(it.at + 1 for it in found.values() if it.at is not None)),
        tuple(title for title, it in found.items() if it.reason == "unmatched"),
        tuple(title for title, it in found.items() if it.reason == "ambiguous"),
    )


def _either(titles: Iterable[str], table: ItemTable) -> list[int]:
    """All items that these titles may mean."""
    return [at + 1 for title in titles for at in table.by_title.find(title).named]


def _there(at: Candidates, shop: Shop) -> tuple[int, ...]:
    ids = at.among(len(shop.table))
    if not ids:
        raise Fault("empty_bus", "there are no candidates")
    return ids


def _items(ids: Iterable[int], shop: Shop) -> list[str]:
    return [shop.table.items[it - 1] for it in ids]


def _scores(wish: str, left: Sequence[int], liked: Named, at: Candidates, shop: Shop) -> Mapping[int, float] | None:
    """The scores that a ranking goes by; none where there is nothing to go by."""
    if wish == "similarity":
        return dict(zip(at.ids or (), at.similarity, strict=True)) if at.similarity else None
    if wish == "preference" and liked.ids:
        scores: Scores = shop.preference(_items(liked.ids, shop), _items(left, shop))
        known = ~np.isnan(scores)
        return dict(zip(left, np.where(known, scores, -np.inf).tolist(), strict=True)) if known.any() else None
    return None


def _popularity(ids: Iterable[int], shop: Shop) -> Mapping[int, float]:
    return {it: math.log1p(shop.table.visits[it - 1]) for it in ids}


def _by_score(ids: Iterable[int], scores: Mapping[int, float]) -> tuple[int, ...]:
    return tuple(sorted(ids, key=lambda it: (-scores[it], it)))
