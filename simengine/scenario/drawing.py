"""Draws the rankings of a scenario's variants beside one another, into their common folder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from simengine.measure import Result, figures
from simengine.measure.statistics import Interval

_NONE = Interval(math.nan, math.nan, math.nan, 0)


def draw_variants(common: Path, reports: Mapping[str, list[Result]]) -> None:
    """One PNG for each stage of rankings: NDCG at the greatest cut-off, by ranker and variant.

    What there are more of stands along the axis, since only so many series can be told apart. Nothing is drawn of a
    stage that is found in one variant only.
    """
    stages: dict[tuple[str, int], dict[str, dict[str, Interval]]] = {}
    for variant, results in reports.items():
        for result in results:
            if result.metric == "ndcg" and result.k is not None and not result.group:
                cell = stages.setdefault((result.stage, result.k), {}).setdefault(variant, {})
                cell[result.ranker] = result.interval
    greatest = {stage: max(k for name, k in stages if name == stage) for stage, _ in stages}
    for (stage, k), found in stages.items():
        if k == greatest[stage] and len(found) > 1:
            _draw(common / f"{stage}.png", f"NDCG@{k} by ranker and variant", f"NDCG@{k}", found)


def _draw(path: Path, title: str, measure: str, found: Mapping[str, Mapping[str, Interval]]) -> None:
    variants = list(found)
    rankers = list(dict.fromkeys(ranker for row in found.values() for ranker in row))
    if len(rankers) >= len(variants):
        groups, axis = rankers, "ranker"
        series = {variant: [found[variant].get(ranker, _NONE) for ranker in rankers] for variant in variants}
    else:
        groups, axis = variants, "variant"
        series = {ranker: [found[variant].get(ranker, _NONE) for variant in variants] for ranker in rankers}
    if len(series) <= len(figures.STYLES):
        figures.bars(path, groups, series, figures.Words(title, axis, measure))
