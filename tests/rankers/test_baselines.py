"""Random and Pop, on small data with values by hand and on the real sets with values measured before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simengine.data import AtomicSettings, MarketSettings, load
from simengine.measure import evaluate
from simengine.rankers import RANKERS


def test_the_catalogue_names_each_ranker_as_it_names_itself():
    assert list(RANKERS) == ["random", "pop"]
    assert all(kind().name == name for name, kind in RANKERS.items())


def test_pop_counts_training_parts_only():
    # The reference counts the first six of each user's eight items, and takes candidates in any order.
    dataset = load(MarketSettings(format="market", users=20, seed=2))
    pop = RANKERS["pop"]()
    pop.fit(dataset)
    for case in dataset.cases[:5]:
        offered = [*reversed(case.candidates), "never seen"]
        counts = [sum(item in other.history[:6] for other in dataset.cases) for item in offered]
        scores = pop.score(case, offered)
        assert scores.dtype == np.float64
        assert scores.tolist() == counts


def test_pop_must_be_fitted():
    dataset = load(MarketSettings(format="market"))
    with pytest.raises(RuntimeError, match="fit"):
        RANKERS["pop"]().score(dataset.cases[0], dataset.cases[0].candidates)


def test_random_says_nothing():
    dataset = load(MarketSettings(format="market"))
    ranker = RANKERS["random"]()
    ranker.fit(dataset)
    assert ranker.score(dataset.cases[0], ["a", "b", "c"]).tolist() == [0.0, 0.0, 0.0]


# NDCG@1, @5 and @10 from the description of the data, where another program has measured them.
RANDOM = (0.1000, 0.2948, 0.4544)
POP = {"dense": (0.1850, 0.3835, 0.5178), "sparse": (0.0270, 0.0520, 0.3333)}


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_reference_values_on_real_data(real_data: Path, name):
    dataset = load(AtomicSettings(format="atomic", path=real_data / f"agentcf-cds-{name}", noun="CD"))
    attempts = {}
    for ranker in (kind() for kind in RANKERS.values()):
        ranker.fit(dataset)
        attempts[ranker.name] = [[ranker.score(case, case.candidates)] for case in dataset.cases]
    evaluation = evaluate("rank", dataset.cases, attempts, ks=(1, 5, 10))
    assert (evaluation.evaluated, evaluation.skipped) == (100, 0)
    found = {
        ranker: tuple(
            round(result.value, 4)
            for result in evaluation.results
            if (result.ranker, result.metric) == (ranker, "ndcg")
        )
        for ranker in RANKERS
    }
    assert found == {"random": RANDOM, "pop": POP[name]}
