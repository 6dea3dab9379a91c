"""Cold start and advertising over 20 invented markets: what the rule-based model shows, with and without tastes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import runs

from simengine.measure import Interval, bootstrap

MARKET = """
name: directions
data: {format: market, users: 60, items: 80, interests: 6, interactions: 8}
method: {kind: agentcf}
stages: [{optimize: {}}, {cold_start: {}}, {advertising: {}}]
"""
SEEDS = range(20)


def _over_seeds(folder: Path, planted: str) -> dict[tuple[str, str], Interval]:
    """The mean over the markets of each result, with its interval over markets."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for seed in SEEDS:
        sets = (f"seed={seed}", f"data.seed={seed}", f"data.planted={planted}")
        for result in runs.run(folder / f"{planted}-{seed}", *sets, text=MARKET).report.results:
            if result.k in (None, 10):
                found[result.metric, result.group].append(result.value)
    return {key: bootstrap(values) for key, values in found.items()}


@pytest.mark.slow
def test_what_is_found_where_tastes_are_planted_and_where_none_are(tmp_path: Path) -> None:
    """Without tastes, similar items say nothing that distinct ones do not, so that contrast is null.

    The gain over cold, and the preference for the refined version, are there without tastes as well: a longer
    description meets more of what any user likes. They are no evidence of taste, and the documentation says so.
    """
    planted, null = (_over_seeds(tmp_path, which) for which in ("true", "false"))
    for metric in ("ndcg", "mrr"):
        assert planted[metric, "similar - cold"].low > 0
        assert planted[metric, "distinct - cold"].low > 0
        assert planted[metric, "similar - distinct"].low > 0
        assert null[metric, "similar - distinct"].low < 0 < null[metric, "similar - distinct"].high
        assert null[metric, "similar - cold"].low > 0
    for market in (planted, null):
        assert market["prefers refined", "both orders"].low > 0.5
        assert market["takes what is first", "both orders"].low > 0.5
