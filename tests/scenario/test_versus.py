"""Variants held against the first of them: paired differences, of talks and of rankings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from simengine.scenario import read_all, run_many

TALKS = """
name: talks
seed: 3
data: {format: market, users: 6, items: 30, interests: 3, interactions: 6, seed: 4}
method: {kind: interec}
stages: [{converse: {turns: 3}}]
variants:
  planned: {}
  same: {}
  bare: {method: {recommender: bare}}
"""


def test_later_variants_are_held_against_the_first(tmp_path: Path) -> None:
    """One that is the same differs by nothing; a bare model that knows no catalogue never hits, at one call a turn."""
    _, report = asyncio.run(run_many(read_all("talks", (), TALKS), out=tmp_path / "talks"))
    found = {it.variant: {metric.metric: metric for metric in it.metrics} for it in report.versus}
    assert list(found) == ["same", "bare"]
    assert {it.first for it in report.versus} == {"planned"}
    assert all(metric.difference == metric.low == metric.high == 0 for metric in found["same"].values())
    hits = {name: one.results for name, one in report.variants.items()}
    of = {
        name: next(it.value for it in rows if it.metric == "hit" and it.ranker == "interec")
        for name, rows in hits.items()
    }
    assert found["bare"]["hit"].difference == pytest.approx(of["bare"] - of["planned"])
    assert found["bare"]["calls per turn"].second == 1
    assert found["bare"]["hit"].n == 6
    assert not any(one.recovered for one in report.variants.values()), "users of talks learn no tastes of a market"


@pytest.mark.parametrize(
    ("entry", "names"),
    [("variants={}", [""]), ("variants=", [""]), ("variants={slow: {method: {planning: step_by_step}}}", ["slow"])],
)
def test_variants_are_taken_out_or_others_put_in_their_place(entry: str, names: list[str]) -> None:
    reads = read_all("talks", [entry], TALKS)
    assert list(reads) == names
    assert ["planning" in data["method"] for _, data in reads.values()] == ["slow" in reads]
