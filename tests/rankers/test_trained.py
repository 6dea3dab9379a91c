"""BPR and SASRec learn what a tiny shop teaches, alike for equal seeds, and say what they cannot score."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from simengine.data import Case, CsvSettings, Dataset, load
from simengine.errors import InputError
from simengine.rankers import RANKERS

pytest.importorskip("cornac", reason="BPR and SASRec are cornac's: pip install cornac")
from simengine.rankers.trained import BPR, SASRec


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Forty users walk round a ring of eight items, each step to the next; even and odd users on a ring of their own.

    Users differ in where they start and how far they walk: 7 to 10 items, so 5 to 8 in the training part.
    """
    folder = tmp_path_factory.mktemp("shop")
    draw = random.Random(1)
    lines = ["user,item,time"]
    for user in range(40):
        start = draw.randrange(8)
        lines += [f"u{user},{'ab'[user % 2]}{(start + at) % 8},{at}" for at in range(draw.randint(7, 10))]
    (folder / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"user": "user", "item": "item", "time": "time"}
    return load(CsvSettings(format="csv", path=folder / "log.csv", columns=columns))


@pytest.fixture(scope="module")
def torch() -> None:
    pytest.importorskip("torch", reason="SASRec is trained by torch: pip install torch")


def _fitted(ranker, dataset):
    ranker.fit(dataset)
    return ranker


A, B = [f"a{i}" for i in range(8)], [f"b{i}" for i in range(8)]


def test_bpr_learns_which_items_go_together(shop: Dataset):
    bpr = _fitted(RANKERS["bpr"](seed=5), shop)
    for case in shop.cases:
        own, other = (A, B) if case.target in A else (B, A)
        assert bpr.score(case, own).min() > bpr.score(case, other).max()


def test_bpr_scores_nothing_that_it_has_not_learnt(shop: Dataset):
    bpr = _fitted(RANKERS["bpr"](), shop)
    scores = bpr.score(shop.cases[0], ["a1", "unheard of"])
    assert scores.dtype == np.float64
    assert np.isnan(scores).tolist() == [False, True]
    stranger = Case("a stranger", "a1", ("a0",), None, 0)
    assert np.isnan(bpr.score(stranger, ["a1", "b1"])).all()


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.usefixtures("torch")
def test_sasrec_learns_what_comes_next(shop: Dataset, positions: bool):
    sasrec = _fitted(SASRec(factors=16, updates=150, positions=positions, seed=5), shop)
    right = [case.target == max(zip(sasrec.score(case, A + B), A + B, strict=True))[1] for case in shop.cases]
    assert np.mean(right) > 0.75  # by chance: one in sixteen


@pytest.mark.usefixtures("torch")
def test_without_positions_a_repeated_item_says_no_more_than_once(shop: Dataset):
    # attention takes means: of equal parts, whatever their number, unless their positions tell them apart
    once, thrice = (Case("whoever", "a4", ("a3",) * times, None, 0) for times in (1, 3))
    for positions in (True, False):
        sasrec = _fitted(SASRec(factors=8, updates=5, positions=positions), shop)
        assert np.allclose(sasrec.score(once, A), sasrec.score(thrice, A), atol=1e-6) != positions


@pytest.mark.usefixtures("torch")
def test_sasrec_scores_nothing_that_it_has_not_learnt(shop: Dataset):
    sasrec = _fitted(SASRec(factors=8, updates=5), shop)
    known = Case("whoever", "a4", ("a2", "a3"), None, 0)
    with_stranger = Case("whoever", "a4", ("a2", "unheard of", "a3"), None, 0)
    scores = sasrec.score(known, ["a4", "unheard of"])
    assert scores.dtype == np.float64
    assert np.isnan(scores).tolist() == [False, True]
    assert np.array_equal(sasrec.score(with_stranger, A), sasrec.score(known, A))
    for history in ((), ("unheard of",)):
        assert np.isnan(sasrec.score(Case("whoever", "a4", history, None, 0), A)).all()


@pytest.mark.parametrize("kind", [BPR, SASRec])
@pytest.mark.usefixtures("torch")
def test_equal_seeds_learn_alike_and_leave_the_global_generators_alone(shop: Dataset, kind):
    import torch

    effort = {"factors": 8, **({"epochs": 5} if kind is BPR else {"updates": 5})}
    states, threads = (torch.get_rng_state(), np.random.get_state()[1].copy()), torch.get_num_threads()
    scores = [_fitted(kind(**effort, seed=seed), shop).score(shop.cases[0], A + B) for seed in (3, 3, 4, 2**40 + 3, -1)]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert np.isfinite(scores).all()
    assert torch.equal(states[0], torch.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])
    assert torch.get_num_threads() == threads


def _first_rows(dataset: Dataset, number: int) -> Dataset:
    part = dataset.training_part
    columns = {name: getattr(part, name)[:number] for name in ("user", "item", "time", "occurrence", "line")}
    return dataclasses.replace(dataset, training_part=dataclasses.replace(part, **columns))


@pytest.mark.parametrize("kind", [BPR, SASRec])
@pytest.mark.usefixtures("torch")
def test_nothing_and_hardly_anything_to_learn_from(shop: Dataset, kind):
    with pytest.raises(RuntimeError, match="fit"):
        kind().score(shop.cases[0], A)
    with pytest.raises(InputError, match=r"is empty, so (bpr|sasrec) has nothing to learn from"):
        kind().fit(_first_rows(shop, 0))
    one = _first_rows(shop, 1)
    taken = one.training_part[0]
    scores = _fitted(kind(), one).score(Case(taken.user, "a0", (taken.item,), None, 0), [taken.item, "unheard of"])
    assert np.isnan(scores).tolist() == [False, True]
