"""The audit: counts as one makes them by hand, trivial scorers at the values measured on real data, never a crash."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine.data import AtomicSettings, Case, Dataset, Interactions, Item, MarketSettings, load
from simengine.measure import evaluate
from simengine.measure.audit import Audit, audit
from simengine.measure.faults import EXAMPLES, Finding

Row = tuple[str, str, float]
USERS = ("u0", "u1", "u2", "u3")
ITEMS = tuple("abcdefgh")


def table(rows: Sequence[Row], users: tuple[str, ...] = USERS, items: tuple[str, ...] = ITEMS) -> Interactions:
    zeros = np.zeros(len(rows), np.int32)
    return Interactions(
        users,
        items,
        np.array([users.index(user) for user, _, _ in rows], np.int32),
        np.array([items.index(item) for _, item, _ in rows], np.int32),
        np.array([when for *_, when in rows]),
        zeros,
        zeros.astype(np.int64),
    )


def dataset(
    train: Sequence[Row] = (),
    history: Sequence[Row] = (),
    *,
    titles: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
    unit: str = "s",
) -> Dataset:
    return Dataset(
        name="by hand",
        noun="item",
        users=USERS,
        items={item: Item(item, (titles or {}).get(item, f"title {item}")) for item in ITEMS},
        train=table(train),
        history=table(history),
        training_part=table([*history, *train]),
        cases=(),
        own={user: frozenset(items) for user, items in (own or {}).items()},
        unit=unit,
        digest="",
    )


def case(user: str, target: str, candidates: str | None, history: str = "", at: float = 100) -> Case:
    return Case(user, target, tuple(history), None if candidates is None else tuple(candidates), at)


ALL = [case(user, "a", "abcd") for user in USERS]


def found(data: Dataset, cases: Sequence[Case], **asked: object) -> dict[str, Finding]:
    return {each.code: each for each in audit(data, cases, **asked).findings}


def test_nothing_wrong_nothing_found() -> None:
    part = table([("u3", item, 1) for item in "abcd"])  # every candidate was seen, once, and before
    assert audit(replace(dataset(), training_part=part), ALL).findings == ()


FAULTS: list[tuple[str, Dataset, list[Case], int, str]] = [
    ("no-candidates", dataset(), [case("u0", "a", None), case("u1", "a", ""), *ALL[2:]], 2, "(users u0, u1)"),
    ("target-missing", dataset(), [case("u0", "a", "bcd"), *ALL[1:]], 1, "1 of 4 test cases (user u0)"),
    ("target-among-negatives", dataset(), [case("u0", "a", "abca"), *ALL[1:]], 1, "its own negatives"),
    ("repeated-candidates", dataset(), [case("u0", "a", "abbbcc"), *ALL[1:]], 1, "3 times too often"),
    ("candidate-counts", dataset(), [case("u0", "a", "abb"), *ALL[1:]], 1, "down to 2"),
    ("no-negatives", dataset(), [case("u0", "a", "a"), *ALL[1:]], 1, "every ranker puts it first"),
    ("own-negatives", dataset(own={"u0": "abc", "u1": "ax"}), ALL, 1, "2 items in all"),
    ("own-negatives", dataset(), [case("u0", "a", "abcd", history="dh"), *ALL[1:]], 1, "1 items in all"),
    ("target-in-history", dataset(), [case("u0", "a", "abcd", history="ea"), *ALL[1:]], 1, "(user u0)"),
    ("target-in-history", dataset([("u2", "a", 3)]), ALL, 1, "(user u2)"),
    ("equal-titles", dataset(titles={"b": "Blue", "c": "Blue"}), ALL, 4, "none of these are about the target's"),
    ("equal-titles", dataset(titles={"a": "Blue", "h": "Blue"}), [case("u0", "a", "abh")], 1, "1 of these is about"),
    ("title-within-title", dataset(titles={"b": "Blue", "c": "Kind of Blue"}), ALL, 4, "part of another's"),
    ("future-in-history", dataset([("u1", "b", 101), ("u1", "c", 99)], [("u1", "d", 102)]), ALL, 1, "2 in all"),
    ("same-time-history", dataset([("u1", "b", 100)]), ALL, 1, "from the very time of the target"),
    # Field case 43: a test event at 100, and another user's 50 interactions at 150.
    ("future-of-others", dataset([("u0", "b", 1)] + [("u3", "h", 150)] * 49), ALL, 3, "on average 98% of it"),
    ("unseen-targets", dataset([("u3", "b", 1)]), ALL, 4, "as do 8 of 12 negatives (67%)"),
    ("users-without-case", dataset(), ALL[:2], 2, "2 of 4 users have no test case (users u2, u3)"),
]


@pytest.mark.parametrize(("code", "data", "cases", "count", "says"), FAULTS)
def test_each_fault_is_found_counted_and_said(
    code: str, data: Dataset, cases: list[Case], count: int, says: str
) -> None:
    finding = found(data, cases)[code]
    assert finding.count == count
    assert says in finding.text
    assert f"{count} of {finding.of}" in finding.text
    assert finding.text.endswith(".")


def test_what_is_at_the_very_time_is_no_future_of_others() -> None:
    assert "future-of-others" not in found(dataset([("u3", "h", 100)]), ALL[:3])
    assert "future-of-others" in found(dataset([("u3", "h", 100.5)]), ALL[:3])
    assert "future-of-others" not in found(dataset([("u0", "h", 101)]), ALL[:1])  # his own


def test_users_without_a_common_clock_are_said_not_to_be_checked() -> None:
    steps = audit(dataset([("u3", "h", 150)], unit="step"), ALL)
    assert "future-of-others" not in {finding.code for finding in steps.findings}
    assert [line.partition(":")[0] for line in steps.unchecked] == ["whether training knows other users' future"]
    assert audit(dataset(), ALL).unchecked == ()


def test_titles_equal_in_the_file_count_though_they_are_read_apart() -> None:
    data = dataset(titles={"b": "Untitled b", "c": "Untitled c"})
    torn = {item: msgspec.structs.replace(data.items[item], raw_title="<span") for item in "bc"}
    assert found(replace(data, items={**data.items, **torn}), ALL)["equal-titles"].count == 4


def test_ids_that_stand_for_titles_are_no_titles() -> None:
    data = dataset()
    ids = {item: Item(item, item) for item in ("1", "10", "100")}
    asked = [Case("u0", "1", (), ("1", "10", "100"), 9)]
    assert "title-within-title" not in found(replace(data, items=ids), asked)


def test_only_a_few_examples_are_named_each_once_in_order() -> None:
    cases = [case(f"x{at // 2}", "a", "abb") for at in range(20)]
    finding = found(dataset(), cases)["repeated-candidates"]
    assert finding.examples == ("x0", "x1", "x2", "x3", "x4")
    assert len(finding.examples) == EXAMPLES
    assert "20 of 20 test cases (users x0, x1, x2, x3, x4, ...)" in finding.text


# Measured by another program on these files; see the description of the data.
NDCG = {
    "dense": {"popular first": (0.1850, 0.3835, 0.5178), "unpopular first": (0.1082, 0.2620, 0.4420)}
    | {"unseen first": (0.1190, 0.3154, 0.4685), "random": (0.1000, 0.2948, 0.4544)},
    "sparse": {"popular first": (0.0270, 0.0520, 0.3333), "unpopular first": (0.3311, 0.6564, 0.6801)}
    | {"unseen first": (0.3311, 0.6607, 0.6820), "random": (0.1000, 0.2948, 0.4544)},
}
COUNTS = {
    "dense": {"own-negatives": 24, "equal-titles": 1, "unseen-targets": 15},
    "sparse": {"own-negatives": 0, "equal-titles": 2, "unseen-targets": 91},
}
WINNERS = {"dense": ["popular-first-wins"], "sparse": ["unpopular-first-wins", "unseen-first-wins"]}


@pytest.fixture(scope="module", params=["dense", "sparse"])
def of_cds(request: pytest.FixtureRequest, real_data: Path) -> tuple[str, Dataset, Audit]:
    settings = AtomicSettings(format="atomic", path=real_data / f"agentcf-cds-{request.param}", noun="CD")
    data = load(settings)
    zero, wrong = ([[score(case)] for case in data.cases] for score in (_alike, _target_last))
    return request.param, data, audit(data, data.cases, attempts={"alike": zero, "wrong": wrong}, seed=7)


def _alike(case: Case) -> np.ndarray:
    return np.zeros(len(case.candidates))


def _target_last(case: Case) -> np.ndarray:
    return np.array([-float(item == case.target) for item in case.candidates])


def test_on_real_data_trivial_scorers_get_what_was_measured(of_cds: tuple[str, Dataset, Audit]) -> None:
    name, _, report = of_cds
    values = {(row.ranker, row.k): row.value for row in report.trivial if row.metric == "ndcg"}
    for ranker, expected in NDCG[name].items():
        assert [values[ranker, k] for k in (1, 5, 10)] == pytest.approx(expected, abs=6e-5)
    won = [finding.code for finding in report.findings if finding.code.endswith("-wins")]
    assert won == WINNERS[name]


def test_on_real_data_faults_are_counted_as_was_measured(of_cds: tuple[str, Dataset, Audit]) -> None:
    name, _, report = of_cds
    counts = {finding.code: finding.count for finding in report.findings}
    assert {code: counts.get(code, 0) for code in COUNTS[name]} == COUNTS[name]
    for code in ("target-missing", "target-among-negatives", "repeated-candidates", "candidate-counts"):
        assert code not in counts
    text = {finding.code: finding.text for finding in report.findings}
    negatives = {"dense": "105 of 900 negatives", "sparse": "225 of 900 negatives"}
    assert negatives[name] in text["unseen-targets"]
    if name == "dense":
        assert "26 items in all" in text["own-negatives"]
    else:
        assert "NDCG@10 0.682" in text["unseen-first-wins"]


def test_on_real_data_every_ranker_that_is_beaten_is_named(of_cds: tuple[str, Dataset, Audit]) -> None:
    name, _, report = of_cds
    beaten = {finding.code: finding for finding in report.findings if finding.code.startswith("beaten-by-")}
    # The last of ten places is worth 1 / log2(11) = 0.289, less than any scorer here gets.
    expected = {f"beaten-by-{code.removesuffix('-wins')}": ("alike", "wrong") for code in WINNERS[name]}
    others = {f"beaten-by-{code}": ("wrong",) for code in ("popular-first", "unpopular-first", "unseen-first")}
    assert {code: finding.examples for code, finding in beaten.items()} == others | expected
    if name == "sparse":
        assert "alike by 0.228 [" in beaten["beaten-by-unseen-first"].text
        assert "wrong by 0.393 [" in beaten["beaten-by-unseen-first"].text


def test_trivial_scorers_are_scored_as_rankers_are(of_cds: tuple[str, Dataset, Audit]) -> None:
    _, data, report = of_cds
    seen = [row.item for row in data.training_part]
    popular = [[np.array([seen.count(item) for item in case.candidates], np.float64)] for case in data.cases]
    expected = evaluate("audit", data.cases, {"popular first": popular}, seed=7).results
    rows = [row for row in report.trivial if row.ranker == "popular first"]
    assert [(row.metric, row.k, row.n) for row in rows] == [(row.metric, row.k, row.n) for row in expected]
    for row, other in zip(rows, expected, strict=True):
        assert (row.value, row.low, row.high) == pytest.approx((other.value, other.low, other.high))


def some_users(count: int, better: int) -> tuple[Dataset, list[Case]]:
    """Users with candidates of which only ``a`` and ``e`` were ever seen; the target is unseen for the first few."""
    cases = [case(f"x{at}", "b" if at < better else "a", "abcdef"[: 4 + 2 * (at % 2)]) for at in range(count)]
    return dataset([("u3", "a", 1), ("u3", "e", 1)]), cases


def test_a_win_that_may_be_chance_is_none() -> None:
    data, cases = some_users(20, 11)
    assert "unseen-first-wins" not in found(data, cases)
    data, cases = some_users(20, 20)
    assert "unseen-first-wins" in found(data, cases)
    assert "popular-first-wins" not in found(data, cases)


def test_a_lead_that_may_be_chance_is_named_so() -> None:
    # Unseen first gets 0.71 of four and 0.64 of six candidates. Right for three of eight users and last for the
    # others is 0.62 on average; for three of four it is more than 0.8.
    data, cases = some_users(24, 24)
    below, above = (
        [[_first(case) if at % of < 3 else _target_last(case)] for at, case in enumerate(cases)] for of in (8, 4)
    )
    finding = found(data, cases, attempts={"below": below, "above": above})["beaten-by-unseen-first"]
    assert finding.examples == ("below",)
    assert finding.text.endswith("which may be chance.")


def test_a_ranker_that_is_as_good_or_has_ranked_nobody_is_not_beaten() -> None:
    data, cases = some_users(20, 20)
    same = [[np.array([float(item not in "ae") for item in case.candidates])] for case in cases]
    assert "beaten-by-unseen-first" not in found(data, cases, attempts={"same": same, "none": [["unreadable"]] * 20})


def _first(case: Case) -> np.ndarray:
    return np.array([float(item == case.target) for item in case.candidates])


def test_repeats_and_missing_rankings_of_rankers() -> None:
    data, cases = some_users(20, 20)
    ranked = [[_target_last(case), "unreadable", _target_last(case)] for case in cases[:10]] + [["refused"]] * 10
    finding = found(data, cases, attempts={"agents": ranked, "one": [*ranked[:1], *[[]] * 19]})[
        "beaten-by-unseen-first"
    ]
    assert finding.examples == ("agents", "one")
    assert (finding.count, finding.of) == (2, 2)
    assert "one by" in finding.text
    assert "of one user" in finding.text


def test_the_cut_off_is_ten_or_the_greatest_asked_for() -> None:
    data, cases = some_users(20, 20)
    for ks, cut in (((1, 5, 10), 10), ((1, 10, 20), 10), ((1, 3), 3)):
        assert f"NDCG@{cut} " in found(data, cases, ks=ks)["unseen-first-wins"].text
    with pytest.raises(ValueError, match="cut-off"):
        audit(data, cases, ks=())


def test_attempts_for_another_number_of_cases_are_refused() -> None:
    data, cases = some_users(4, 4)
    with pytest.raises(ValueError, match="zip"):
        audit(data, cases, attempts={"x": [[_first(cases[0])]]})


def test_where_nothing_is_planted_trivial_scorers_seldom_win() -> None:
    # Twenty markets, three scorers, each wrong with 2.5 percent: 1.5 wins expected, more than 6 in 1 of 1,000 cases.
    wins = []
    for seed in range(20):
        data = load(MarketSettings(format="market", users=40, items=60, planted=False, seed=seed))
        wins += [finding.code for finding in audit(data, data.cases).findings if finding.code.endswith("-wins")]
    assert len(wins) <= 6


def test_it_survives_json() -> None:
    report = audit(dataset([("u3", "h", 150)]), ALL[:1])
    again = msgspec.json.decode(msgspec.json.encode(report), type=Audit)
    assert again.findings == report.findings
    assert (again.cases, again.scored) == (1, 1)
    low = json.loads(msgspec.json.encode(report))["trivial"][0]["low"]
    assert low is None  # one user has no interval
    assert math.isnan(report.trivial[0].low)


def test_a_thousand_users_with_a_hundred_candidates_take_seconds() -> None:
    draws = np.random.default_rng(1)
    items = tuple(f"i{at}" for at in range(2000))
    users = tuple(f"u{at}" for at in range(1000))
    rows = [(user, items[at], float(when)) for user in users for when, at in enumerate(draws.integers(0, 2000, 20))]
    listed = [tuple(items[at] for at in draws.permutation(2000)[:100]) for _ in users]
    cases = [Case(user, some[0], (), some, 25.0) for user, some in zip(users, listed, strict=True)]
    data = replace(
        dataset(),
        users=users,
        items={item: Item(item, f"The title of {item}") for item in items},
        train=table(rows, users, items),
        training_part=table(rows, users, items),
    )
    attempts = {"one": [[draws.random(100)] for _ in users]}
    start = time.process_time()
    audit(data, cases, attempts=attempts)
    assert time.process_time() - start < 15  # about 1.5 s on one core of 2025


# Against a count by the definitions, one case after the other, over whatever data there may be.

rows = st.lists(st.tuples(st.sampled_from(USERS), st.sampled_from(ITEMS), st.integers(0, 4)), max_size=12)
names = st.text("abcdefghX", max_size=6)  # X is in no item table
any_case = st.builds(
    case, st.sampled_from([*USERS, "new"]), st.sampled_from("abX"), st.none() | names, names, st.integers(0, 5)
)
titles = st.fixed_dictionaries({item: st.sampled_from(["", "Blue", "Kind of Blue", "Jazz", item]) for item in ITEMS})
owned = st.dictionaries(st.sampled_from(USERS), names)


def by_definition(data: Dataset, cases: Sequence[Case]) -> Iterator[tuple[str, int]]:
    known = [*data.train, *data.history]
    offered = [list(one.candidates or ()) for one in cases]
    most = max((len(set(items)) for items in offered), default=0)
    trained = {row.item for row in data.training_part}

    def clash(items: list[str], test: Callable[[str, str], bool]) -> bool:
        real = [(x, data.items[x].title) for x in set(items) if x in data.items]
        real = [(x, title) for x, title in real if title and title != x]
        return any(x != y and test(one, other) for x, one in real for y, other in real)

    tests: dict[str, Callable[[Case, list[str]], bool]] = {
        "no-candidates": lambda one, items: not items,
        "target-missing": lambda one, items: bool(items) and one.target not in items,
        "target-among-negatives": lambda one, items: items.count(one.target) > 1,
        "repeated-candidates": lambda one, items: any(items.count(x) > 1 for x in items if x != one.target),
        "candidate-counts": lambda one, items: 0 < len(set(items)) < most,
        "no-negatives": lambda one, items: bool(items) and all(x == one.target for x in items),
        "own-negatives": lambda one, items: any(
            x != one.target and (x in one.history or x in data.own.get(one.user, ())) for x in items
        ),
        "target-in-history": lambda one, items: (
            one.target in one.history or any((row.user, row.item) == (one.user, one.target) for row in known)
        ),
        "equal-titles": lambda one, items: clash(items, lambda x, y: x == y),
        "title-within-title": lambda one, items: clash(items, lambda x, y: x != y and x in y),
        "future-in-history": lambda one, items: any(row.user == one.user and row.time > one.time for row in known),
        "same-time-history": lambda one, items: any(row.user == one.user and row.time == one.time for row in known),
        "future-of-others": lambda one, items: (
            data.unit != "step" and any(row.user != one.user and row.time > one.time for row in data.training_part)
        ),
        "unseen-targets": lambda one, items: one.target not in trained,
    }
    for code, test in tests.items():
        yield code, sum(test(one, items) for one, items in zip(cases, offered, strict=True))
    yield "users-without-case", sum(all(one.user != user for one in cases) for user in data.users)


@settings(max_examples=150, deadline=None)
@given(
    st.builds(dataset, rows, rows, titles=titles, own=owned, unit=st.sampled_from(["s", "step"])),
    st.lists(any_case, max_size=6),
    st.data(),
)
def test_it_never_fails_and_counts_by_definition(data: Dataset, cases: list[Case], more: st.DataObject) -> None:
    score = st.sampled_from([0.0, 1.0, math.nan])
    attempts = [
        more.draw(
            st.lists(st.just("refused") | st.lists(score, min_size=size, max_size=size).map(np.array), max_size=2)
        )
        for size in (len(one.candidates or ()) for one in cases)
    ]
    report = audit(data, cases, ks=(1, 10), attempts={"x": attempts})
    counted = {finding.code: finding.count for finding in report.findings}
    for code, count in by_definition(data, cases):
        assert counted.get(code, 0) == count, code
    assert report.scored == sum(one.target in (one.candidates or ()) for one in cases)
    for row in report.trivial:
        assert row.n == 0 or 0 <= row.value <= 1
    assert msgspec.json.decode(msgspec.json.encode(report), type=Audit).findings == report.findings
