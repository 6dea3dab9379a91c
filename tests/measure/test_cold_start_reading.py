"""The reading of cold start, on logs made by hand: means, paired gains, what is left out, and the figure."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from simengine.data import Dataset, MarketSettings, load
from simengine.measure.studies import READINGS, Found
from simengine.runlog import EventLine, MessageLine

NAMES = [f"n{at}" for at in range(9)]
"""Nine other items than the target, t."""


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(MarketSettings(format="market", users=4, items=12, interests=2, interactions=4))


def ranked(user: str, condition: str, place: int | None, *, target: str = "t", missing: int = 0) -> EventLine:
    """A user put the target at this place, from 1; ``None``: the reply left it out, and so many others."""
    others = NAMES[: 9 - missing]
    order = others if place is None else [*others[: place - 1], target, *others[place - 1 :]]
    left = [name for name in [*NAMES, target] if name not in order]
    body = {"order": order, "missing": left}
    data = {"user": user, "target": target, "condition": condition, "candidates": [*NAMES, target]}
    said = [MessageLine("m1", f"item:{target}", f"user:{user}", "description")]
    said.append(MessageLine("m2", f"user:{user}", "venue:ranking", "ranking", body))
    return EventLine("e", "cold_start.rank", 1, data=data, messages=said, units={"rank": "ok"})


def failed(user: str, condition: str, reason: str) -> EventLine:
    data = {"user": user, "target": "t", "condition": condition, "candidates": [*NAMES, "t"]}
    return EventLine("e", "cold_start.rank", 1, data=data, units={"rank": reason})


def adapted(outcome: str = "ok") -> EventLine:
    data = {"item": "t", "condition": "similar"}
    return EventLine("e", "cold_start.adapt", 1, data=data, units={"adapt": outcome})


def found(dataset: Dataset, *lines: EventLine, name: str = "cold_start") -> Found:
    reading = READINGS["cold_start"](name, dataset)
    for line in lines:
        reading.take(line)
    return reading.found(0)


def values(result: Found, metric: str, k: int | None) -> dict[str, float | None]:
    return {row.group: row.value for row in result.results if (row.metric, row.k) == (metric, k)}


def test_means_and_paired_gains(dataset: Dataset) -> None:
    """u: places 3, 1, 3, 1 under the four conditions; v: 3, 3, 7, 1. NDCG of places 1, 3, 7: 1, 1/2, 1/3."""
    lines = [
        ranked(user, condition, place)
        for user, places in (("u", (3, 1, 3, 1)), ("v", (3, 3, 7, 1)))
        for condition, place in zip(("cold", "similar", "distinct", "warm"), places, strict=True)
    ]
    result = found(dataset, *lines)
    assert values(result, "ndcg", 10) == pytest.approx(
        {
            "cold": 1 / 2,
            "similar": (1 + 1 / 2) / 2,
            "distinct": (1 / 2 + 1 / 3) / 2,
            "warm": 1,
            "similar - cold": 1 / 4,
            "distinct - cold": -1 / 12,
            "similar - distinct": (1 / 2 + 1 / 6) / 2,
        }
    )
    assert values(result, "ndcg", 5)["distinct"] == pytest.approx(1 / 4), "place 7 is beyond the fifth"
    assert values(result, "ndcg", 1) == pytest.approx(
        {"cold": 0, "similar": 1 / 2, "distinct": 0, "warm": 1}
        | {"similar - cold": 1 / 2, "distinct - cold": 0, "similar - distinct": 1 / 2}
    )
    assert values(result, "mrr", None)["similar"] == pytest.approx((1 + 1 / 3) / 2)
    gain = next(row for row in result.results if (row.group, row.k) == ("similar - cold", 10))
    assert (gain.low, gain.high) == pytest.approx((0, 1 / 2))
    assert (gain.n, gain.ranker) == (2, "new item")
    assert not result.skipped


def test_what_a_reply_leaves_out_ties_behind_the_rest(dataset: Dataset) -> None:
    """Seven are named, the target and two others are not: it may stand at 8, 9 or 10."""
    result = found(dataset, ranked("u", "cold", None, missing=2))
    assert values(result, "mrr", None) == pytest.approx({"cold": (1 / 8 + 1 / 9 + 1 / 10) / 3})
    assert values(result, "ndcg", 10) == pytest.approx({"cold": sum(1 / math.log2(at + 1) for at in (8, 9, 10)) / 3})
    result = found(dataset, ranked("u", "cold", 2, missing=3))
    assert values(result, "mrr", None) == {"cold": 1 / 2}, "whoever else is left out, the place is known"


def test_gains_are_over_those_who_ranked_under_both_conditions(dataset: Dataset) -> None:
    """v was not shown the adapted item: his cold ranking counts for the mean of cold alone."""
    result = found(
        dataset,
        adapted(),
        adapted("refusal"),
        ranked("u", "cold", 2),
        ranked("v", "cold", 1),
        ranked("u", "similar", 1),
        failed("v", "similar", "not_adapted"),
        failed("u", "warm", "unmatched"),
        failed("v", "warm", "unmatched"),
    )
    assert values(result, "mrr", None) == {"cold": 3 / 4, "similar": 1, "similar - cold": 1 / 2}
    assert {row.group: row.n for row in result.results} == {"cold": 2, "similar": 1, "similar - cold": 1}
    assert result.skipped == {"similar: not_adapted": 1, "warm: unmatched": 2}
    assert "cold_start: 1 of 2 adaptations failed (refusal)" in result.notes


def test_targets_without_training_are_told(dataset: Dataset) -> None:
    trained = dataset.train.items[int(dataset.train.item[0])]
    result = found(dataset, ranked("u", "warm", 1, target=trained), ranked("v", "warm", 1))
    assert any(
        note.startswith("cold_start: the targets of 1 of 2 test cases have no training") for note in result.notes
    )
    assert not any("fewer than" in note for note in result.notes), "ten were shown"


def test_other_events_are_nothing_to_it(dataset: Dataset) -> None:
    other = found(dataset, ranked("u", "cold", 1), name="cold_start-2")
    assert other == Found([])


def test_the_figure_shows_what_there_is(dataset: Dataset, tmp_path: Path) -> None:
    reading = READINGS["cold_start"]("cold_start", dataset)
    lines = [ranked(user, condition, 2) for user in "uv" for condition in ("cold", "similar")]
    for line in [*lines, failed("u", "distinct", "not_adapted")]:
        reading.take(line)
    reading.draw(reading.found(0), tmp_path / "cold_start.png")
    assert (tmp_path / "cold_start.png").read_bytes().startswith(b"\x89PNG")
