"""Measuring: metrics, uncertainty and results. Reads data and logs, asks no model."""

from __future__ import annotations

from simengine.measure.metrics import expected, expected_at, ndcg, ndcg_of_ranking, place
from simengine.measure.results import Attempt, Evaluation, Result, evaluate, side_by_side
from simengine.measure.statistics import Interval, bootstrap

__all__ = [
    "Attempt",
    "Evaluation",
    "Interval",
    "Result",
    "bootstrap",
    "evaluate",
    "expected",
    "expected_at",
    "ndcg",
    "ndcg_of_ranking",
    "place",
    "side_by_side",
]
