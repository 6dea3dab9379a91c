"""Published numbers beside ours: what a scenario quotes from a paper, held against the run's own results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict

from simengine.measure import Result

_METRIC = re.compile(r"(ndcg|hit)@([1-9]\d*)|(mrr)")


def _known_metric(name: str) -> str:
    if not _METRIC.fullmatch(name):
        raise ValueError("say a metric such as ndcg@10, hit@1 or mrr")
    return name


class PublishedRow(BaseModel):
    """One row of a published table: what it calls a ranker, what our results call the same one, and its values.

    Without ``ranker`` there is none of ours. ``not_comparable`` says why the two numbers are of different things.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    ranker: str = ""
    not_comparable: str = ""
    values: dict[Annotated[str, AfterValidator(_known_metric)], float]


class Published(BaseModel):
    """A published table: where it stands, and its rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    rows: list[PublishedRow] = []


class Beside(msgspec.Struct, frozen=True):
    """One published number beside ours; ``value``, ``low`` and ``high`` are ``None`` where we have none."""

    source: str
    name: str
    metric: str
    k: int | None
    published: float
    not_comparable: str
    ranker: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


def beside(published: Published | None, results: Sequence[Result]) -> list[Beside]:
    """Each published number with our result of the same ranker and metric, from the first stage that has it."""
    if published is None:
        return []
    ours: dict[tuple[str, str, int | None], Result] = {}
    for result in results:
        if not result.group:
            ours.setdefault((result.ranker, result.metric, result.k), result)
    rows = []
    for row in published.rows:
        for name, value in row.values.items():
            metric, _, cut = name.partition("@")
            k = int(cut) if cut else None
            said = (published.source, row.name, metric, k, value, row.not_comparable, row.ranker)
            found = ours.get((row.ranker, metric, k))
            rows.append(Beside(*said) if found is None else Beside(*said, found.value, found.low, found.high))
    return rows
