"""Reviews and discussions over 20 invented markets: what the rule-based model shows, with and without tastes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import runs

from simengine.measure import Interval, bootstrap

MARKET = """
name: directions
data: {format: market, users: 100, items: 150, interests: 6, interactions: 12}
method: {kind: agentcf}
stages: [{optimize: {}}, {reviews: {}}, {discussion: {}}]
"""
SEEDS = range(61, 81)
"""Fresh ones: neither the rules nor what is asked of them was made on these."""
BELIEVED = "reviews: similar less dissimilar, praise less blame"


def _over_seeds(folder: Path, planted: str) -> dict[str, Interval]:
    """The mean over the markets of each share of yes and of each difference, with its interval over markets."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for seed in SEEDS:
        sets = (f"seed={seed}", f"data.seed={seed}", f"data.planted={planted}")
        shares = {
            f"{result.stage}: {result.group}": result.value
            for result in runs.run(folder / f"{planted}-{seed}", *sets, text=MARKET).report.results
            if result.stage in ("reviews", "discussion") and result.metric == "yes"
        }
        praise, blame = (shares[f"reviews: {sign} similar - {sign} dissimilar"] for sign in ("positive", "negative"))
        shares[BELIEVED] = praise - blame
        for key, share in shares.items():
            found[key].append(share)
    return {key: bootstrap(values) for key, values in found.items()}


@pytest.mark.slow
def test_what_is_found_where_tastes_are_planted_and_where_none_are(tmp_path: Path) -> None:
    """Praise and blame work without tastes as well: a reader believes any voice a little.

    That the like-minded are believed more rests on tastes: where users take what they are shown by lot, those whose
    memories are alike do not love the same things, and the contrast is null. It is small, so praise and blame are
    taken together: how much further apart the two move readers if the writers are similar.
    """
    planted, null = (_over_seeds(tmp_path, which) for which in ("true", "false"))
    for market in (planted, null):
        for side in ("similar", "dissimilar"):
            assert market[f"reviews: positive {side} - before"].low > 0
            assert market[f"reviews: negative {side} - before"].high < 0
        assert market["discussion: after - before"].low > 0
    assert planted[BELIEVED].low > 0
    assert null[BELIEVED].low < 0 < null[BELIEVED].high
