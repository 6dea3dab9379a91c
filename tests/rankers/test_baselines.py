"""Random, Pop, BM25, SeqSim, ItemKNN: small data with values by hand, the real sets with values measured before."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simengine.data import AtomicSettings, Case, CsvSettings, Dataset, Item, MarketSettings, load
from simengine.errors import InputError
from simengine.measure import evaluate
from simengine.rankers import RANKERS
from simengine.rankers.itemknn import ItemKNN

UNLEARNT = ("random", "pop", "bm25", "seqsim", "itemknn")  # these need no extra


def test_the_catalogue_names_each_ranker_as_it_names_itself():
    assert list(RANKERS) == [*UNLEARNT, "bpr", "sasrec"]
    assert [RANKERS[name](seed=3).name for name in UNLEARNT] == list(UNLEARNT)


def test_seqsim_scores_by_the_words_of_the_whole_history():
    """By hand: each word is in two of four texts, so all weigh alike, and a text of two words has two equal parts."""
    texts = {"a": "jazz", "b": "jazz soul", "c": "soul folk", "d": "folk"}
    items = {name: Item(name, text) for name, text in texts.items()}
    dataset = dataclasses.replace(load(MarketSettings(format="market", users=2)), items=items)
    seqsim = RANKERS["seqsim"]()
    seqsim.fit(dataset)
    half = math.sqrt(0.5)
    one = seqsim.score(Case("u", "b", ("a",), None, 1), ["a", "b", "c", "never seen"])
    assert one == pytest.approx([1, half, 0, math.nan], nan_ok=True)
    # jazz and folk, equally: at half a right angle to either, at 60 degrees to what shares one word of two
    two = seqsim.score(Case("u", "b", ("a", "d"), None, 1), ["a", "d", "b", "c"])
    assert two == pytest.approx([half, half, 0.5, 0.5])
    assert list(seqsim.score(Case("u", "b", (), None, 1), ["a", "b"])) == [0, 0]


def test_seqsim_makes_do_without_words():
    items = {name: Item(name, "?!") for name in "ab"}
    seqsim = RANKERS["seqsim"]()
    seqsim.fit(dataclasses.replace(load(MarketSettings(format="market", users=2)), items=items))
    assert list(seqsim.score(Case("u", "b", ("a",), None, 1), ["a", "b"])) == [0, 0]


def test_naming_the_rankers_imports_none_of_their_libraries():
    code = (
        "import sys, simengine.rankers; print([m for m in ('bm25s', 'cornac', 'scipy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "absent", "said", "command"),
    [
        ("bm25", {"bm25s"}, "bm25s, which is not installed", "pip install bm25s"),
        ("bpr", {"cornac"}, "cornac, which is not installed", "pip install cornac"),
        ("sasrec", {"cornac", "torch"}, "cornac and torch, which are not installed", "pip install cornac torch"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch, name, absent, said, command):
    monkeypatch.setattr("simengine.rankers.optional.find_spec", lambda module: None if module in absent else module)
    with pytest.raises(InputError) as caught:
        RANKERS[name]()
    assert said in str(caught.value)
    assert str(caught.value).endswith(command)


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


@pytest.mark.parametrize("name", ["pop", "bm25", "itemknn"])
def test_what_learns_must_be_fitted(name):
    dataset = load(MarketSettings(format="market"))
    with pytest.raises(RuntimeError, match="fit"):
        RANKERS[name]().score(dataset.cases[0], dataset.cases[0].candidates)


def test_random_says_nothing():
    dataset = load(MarketSettings(format="market"))
    ranker = RANKERS["random"]()
    ranker.fit(dataset)
    assert ranker.score(dataset.cases[0], ["a", "b", "c"]).tolist() == [0.0, 0.0, 0.0]


def _shop(tmp_path: Path, rows: str) -> Dataset:
    """A log of ``user item`` pairs; of each user the last is the test target, the last but one validates."""
    pairs = [row.split() for row in rows.split(",")]
    lines = ["user,item,time", *(f"{user},{item},{time}" for time, (user, item) in enumerate(pairs))]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"user": "user", "item": "item", "time": "time"}
    return load(CsvSettings(format="csv", path=tmp_path / "log.csv", columns=columns))


def test_bm25_by_hand(tmp_path: Path):
    # Three documents of two words: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), and the word's weight at average length is
    # 1 / (1 + k1), k1 = 1.5: Lucene leaves out the constant factor k1 + 1.
    dataset = _shop(tmp_path, "u a,u b,u c")
    titles = {"a": ("Blue &amp; Train", "The jazz"), "b": ("Blue", "Moon river"), "c": ("river", "of Stones rock")}
    items = {key: Item(key, title, category, raw_title=title) for key, (title, category) in titles.items()}
    bm25 = RANKERS["bm25"]()
    bm25.fit(dataclasses.replace(dataset, items=items))
    case = Case("u", "c", ("a", "a", "unheard of"), None, 9)
    found = bm25.score(case, ["c", "b", "a", "nowhere"])
    assert found.dtype == np.float64
    once, twice = math.log(1 + 2.5 / 1.5) / 2.5, math.log(1 + 1.5 / 2.5) / 2.5
    assert found[:3] == pytest.approx([0.0, 2 * twice, 2 * (twice + 2 * once)], rel=1e-6)
    assert np.isnan(found[3])
    nothing = bm25.score(Case("u", "c", (), None, 9), ["a", "b"])
    assert nothing.tolist() == [0.0, 0.0]


# Training parts: u takes a b, v takes a b c, w takes b c, x takes d; what follows them are validation and test items.
TAKEN = "u a,u b,u d,u c,v a,v b,v c,v e,v d,w b,w c,w e,w a,x d,x e,x a"


def test_itemknn_by_hand(tmp_path: Path):
    dataset = _shop(tmp_path, TAKEN)
    knn = RANKERS["itemknn"]()
    knn.fit(dataset)
    # users by item: a {u v}, b {u v w}, c {v w}, d {x}
    a_b, a_c, b_c = 2 / math.sqrt(6), 1 / 2, 2 / math.sqrt(6)
    case = Case("whoever", "c", ("a", "b", "a", "unheard of"), None, 99)
    found = knn.score(case, ["c", "a", "b", "d", "e", "nowhere"])
    assert found == pytest.approx([a_c + b_c, a_b, a_b, 0, 0, 0])
    assert found[1] == found[2]
    assert knn.score(Case("u", "c", (), None, 99), ["a", "b"]).tolist() == [0.0, 0.0]


def test_itemknn_looks_at_the_nearest_only_and_cuts_no_tie(tmp_path: Path):
    knn = ItemKNN(neighbours=1)
    knn.fit(_shop(tmp_path, TAKEN))
    case = Case("whoever", "c", ("a", "b", "c"), None, 99)
    # the nearest of a is b, that of c is b; a and c are equally near to b, so both count
    assert knn.score(case, ["a", "b", "c"]) == pytest.approx(np.array([2, 4, 2]) / math.sqrt(6))


@pytest.mark.parametrize("name", UNLEARNT)
def test_scores_go_with_the_candidates_whatever_their_order(name):
    dataset = load(MarketSettings(format="market", users=20, seed=2))
    ranker = RANKERS[name]()
    ranker.fit(dataset)
    for case in dataset.cases[:5]:
        scores = ranker.score(case, case.candidates)
        assert ranker.score(case, case.candidates[::-1]).tolist() == scores.tolist()[::-1]
        assert np.isfinite(scores).all()


# NDCG@1, @5 and @10 from the description of the data, where another program has measured them, and how exactly it says
# them; BM25's are given in three digits.
REFERENCE = {
    ("random", "dense"): ((0.1000, 0.2948, 0.4544), 5e-5),
    ("random", "sparse"): ((0.1000, 0.2948, 0.4544), 5e-5),
    ("pop", "dense"): ((0.1850, 0.3835, 0.5178), 5e-5),
    ("pop", "sparse"): ((0.0270, 0.0520, 0.3333), 5e-5),
    ("bm25", "dense"): ((0.127, 0.388, 0.508), 5e-4),
    ("bm25", "sparse"): ((0.275, 0.529, 0.605), 5e-4),
}


@pytest.mark.parametrize(("ranker", "name"), REFERENCE)
def test_reference_values_on_real_data(real_data: Path, ranker: str, name: str):
    dataset = load(AtomicSettings(format="atomic", path=real_data / f"agentcf-cds-{name}", noun="CD"))
    made = RANKERS[ranker]()
    made.fit(dataset)
    attempts = {ranker: [[made.score(case, case.candidates)] for case in dataset.cases]}
    evaluation = evaluate("rank", dataset.cases, attempts, ks=(1, 5, 10))
    assert (evaluation.evaluated, evaluation.skipped, evaluation.unscored) == (100, 0, {ranker: 0})
    found = [result.value for result in evaluation.results if result.metric == "ndcg"]
    values, tolerance = REFERENCE[ranker, name]
    assert found == pytest.approx(values, abs=tolerance + 1e-9)
