"""One whole log: total order, leave-one-out, clocks, rating threshold, and what is said about leakage."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.data import AtomicSettings, Dataset, Interaction, load
from simengine.data.assemble import Part, leave_one_out
from simengine.errors import InputError

ITEMS = "item_id:token|title:token_seq\n" + "".join(f"{name}|Title {name}\n" for name in "abcdefgh")
TIMED = "user_id:token|item_id:token|timestamp:float\n"
RATED = "user_id:token|item_id:token|rating:float|timestamp:float\n"


def atomic(path: Path, **settings: object) -> Dataset:
    return load(AtomicSettings(format="atomic", path=path, **settings))


def rows(dataset: Dataset) -> list[tuple[object, ...]]:
    """Everything but source lines, in order."""
    return [
        dataset.users,
        *map(tuple, (dataset.train, dataset.history, dataset.training_part, dataset.cases)),
        tuple(dataset.own.items()),
    ]


@pytest.mark.parametrize("first", ["1112484727", "1.112484727E9"])
def test_seconds_keep_their_order(write, first):
    # Field case 31: the replay order is c, b, a, whatever the order in the file and the spelling of the number.
    log = f"{TIMED}u|a|{first}\nu|b|1112484700\nu|c|1112484690\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}))
    (case,) = dataset.cases
    assert ((*case.history, case.target), case.time) == (("c", "b", "a"), 1112484727)
    assert isinstance(case.time, int)


def test_milliseconds_keep_every_millisecond(write):
    log = TIMED + "u|a|1588615855072\nu|b|1588615855071\nu|c|1588615855070\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}))
    assert dataset.cases[0].history == ("c", "b")
    assert dataset.unit == "ms"
    assert "timestamps are read as milliseconds since 1970: 2020-05-04 to 2020-05-04 (UTC)" in dataset.notes


def test_mixed_units_are_an_error(write):
    # Field case 34.
    log = TIMED + "u|a|881250949\nu|b|1588615855070\n"
    with pytest.raises(InputError) as caught:
        atomic(write({"x.inter": log, "x.item": ITEMS}))
    assert (caught.value.where["line"], caught.value.where["field"]) == (3, "timestamp")


def test_a_missing_timestamp_column_is_named(write):
    # Field case 28.
    folder = write({"x.inter": "user_id:token|item_id:token\nu|a\n", "x.item": ITEMS})
    with pytest.raises(InputError, match="no field timestamp; the fields are user_id, item_id"):
        atomic(folder, clock="time")


def test_equal_times_go_by_natural_order_of_user_then_item_then_occurrence(write):
    log = TIMED + "".join(
        f"{user}|{item}|{time}\n"
        for user, item, time in [
            ("u10", "b", 5), ("u10", "a", 5), ("u2", "b", 5), ("u2", "b", 5), ("u2", "a", 5), ("u2", "c", 9),
            ("u10", "c", 8), ("u10", "d", 9), ("u2", "d", 10), ("u2", "h", 1), ("u10", "h", 1),
        ]
    )  # fmt: skip
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}))
    assert dataset.users == ("u2", "u10")
    assert list(dataset.train) == [
        Interaction("u2", "a", 5, 0),
        Interaction("u2", "b", 5, 0),
        Interaction("u2", "b", 5, 1),
        Interaction("u10", "a", 5, 0),
        Interaction("u10", "b", 5, 0),
    ]
    assert dataset.train.line.tolist() == [6, 4, 5, 3, 2]


def test_without_timestamps_the_file_order_is_the_order(write):
    log = "user_id:token|item_id:token\nu10|a\nu2|b\nu10|c\nu10|d\nu2|e\nu10|f\nu2|g\nu2|h\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}))
    assert (dataset.users, dataset.unit) == (("u10", "u2"), "step")
    assert list(dataset.train) == [Interaction("u10", "c", 2), Interaction("u2", "e", 2)]
    assert [(case.target, case.time) for case in dataset.cases] == [("f", 4), ("h", 4)]


def test_the_step_clock_counts_each_users_interactions_by_time(write):
    log = TIMED + "u|a|40\nu|b|10\nu|c|30\nu|d|20\nv|a|1000\nv|b|1001\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}), clock="step")
    assert dataset.unit == "step"
    assert [(row.item, row.time) for row in dataset.training_part] == [("b", 1), ("a", 1), ("d", 2)]
    assert [case.time for case in dataset.cases] == [4, 2]


def test_short_histories_are_kept_and_counted(write):
    # A single interaction makes no case; two make a case without validation; three have one of each.
    log = TIMED + "p|a|1\nq|a|1\nq|b|2\nr|a|1\nr|b|2\nr|c|3\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}))
    assert [(case.user, case.target, case.history) for case in dataset.cases] == [
        ("q", "b", ("a",)),
        ("r", "c", ("a", "b")),
    ]
    assert [row.user for row in dataset.training_part] == ["p", "q", "r"]
    assert "1 users have a single interaction, and so no test case" in dataset.notes
    assert all(case.candidates is None for case in dataset.cases)


def test_leakage_is_said_with_its_size(write):
    # Field case 43: u's test event stands at 100, while item x is taken by v at 150 and 151 in the training part.
    log = TIMED + "u|a|90\nu|b|100\nv|c|150\nv|d|151\nv|e|200\nv|f|300\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}))
    note = "leave-one-out leaks: for 1 of 2 test cases the training part holds later interactions of other users"
    assert f"{note}; a ratio split does not" in dataset.notes


def test_training_at_the_time_of_a_test_case_is_no_leak(write):
    log = TIMED + "u|a|90\nu|b|100\nv|c|99\nv|d|100\nv|e|200\nv|f|300\n"
    assert "leaks" not in " ".join(atomic(write({"x.inter": log, "x.item": ITEMS})).notes)


def test_rating_threshold(write):
    log = RATED + "u|a|5|1\nu|b|3.5|2\nu|c|4|3\nv|d|1|4\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEMS}), min_rating=4)
    assert (dataset.users, dataset.own) == (("u",), {"u": frozenset("ac")})
    assert "2 of 4 interactions are rated 4 or higher and kept" in dataset.notes
    with pytest.raises(InputError, match="no interaction is left"):
        atomic(write({"x.inter": log, "x.item": ITEMS}), min_rating=6)
    with pytest.raises(InputError, match="no field rating"):
        atomic(write({"x.inter": TIMED + "u|a|1\n", "x.item": ITEMS}), min_rating=4)


def test_an_item_that_is_not_in_the_table_is_an_error(write):
    with pytest.raises(InputError, match="item 'z' is not in the item table") as caught:
        atomic(write({"x.inter": TIMED + "u|a|1\nu|z|2\n", "x.item": ITEMS}))
    assert caught.value.where["line"] == 3


@given(st.lists(st.integers(0, 4), max_size=40))
def test_leave_one_out_counts(users):
    # The reference walks each user's rows one by one.
    user = np.array(users, np.int32)
    place, part = leave_one_out(user, np.lexsort((np.arange(len(user)), user)))
    for one in set(users):
        mine = [position for position, owner in enumerate(users) if owner == one]
        assert place[mine].tolist() == list(range(1, len(mine) + 1))
        training = [Part.GIVEN] + [Part.TRAIN] * (len(mine) - 3)
        tail = [Part.VALIDATION, Part.TEST] if len(mine) > 2 else [Part.TEST] * (len(mine) - 1)
        assert part[mine].tolist() == [*training, *tail]


@pytest.mark.parametrize("clock", ["time", "step"])
def test_real_movielens_does_not_depend_on_the_order_of_lines(real_data: Path, tmp_path: Path, clock):
    source = real_data / "ml-100k"
    dataset = atomic(source, noun="movie", clock=clock)
    assert (len(dataset.users), len(dataset.items)) == (943, 1682)
    assert len(dataset.train) + len(dataset.history) + len(dataset.cases) == 100_000
    assert len(dataset.cases) == 943
    assert dataset.unit == ("s" if clock == "time" else "step")
    header, *lines = (source / "ml-100k.inter").read_text("utf-8").splitlines()
    random.Random(5).shuffle(lines)
    (tmp_path / "ml-100k.inter").write_text("\n".join((header, *lines)) + "\n", "utf-8")
    (tmp_path / "ml-100k.item").write_bytes((source / "ml-100k.item").read_bytes())
    shuffled = atomic(tmp_path, noun="movie", clock=clock)
    assert rows(shuffled) == rows(dataset)
    assert shuffled.train.line.tolist() != dataset.train.line.tolist()


def test_real_movielens_rated_four_or_higher(real_data: Path):
    dataset = atomic(real_data / "ml-100k", min_rating=4, users=950)
    assert len(dataset.users) == 942
    assert "55375 of 100000 interactions are rated 4 or higher and kept" in dataset.notes


def test_real_multidomain_data_have_milliseconds_and_repeats(real_data: Path):
    dataset = atomic(real_data / "amazon2023-multidomain")
    assert (len(dataset.users), dataset.unit) == (354, "ms")
    assert len(dataset.train) + len(dataset.history) + len(dataset.cases) == 3455
    assert sum(map(len, dataset.own.values())) == 3455 - 3  # three user-item pairs repeat
