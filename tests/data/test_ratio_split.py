"""The split on the global time line, and users with too few interactions: who has a test case, and who is left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.data import AtomicSettings, Dataset, from_frame, load
from simengine.data.assemble import Part
from simengine.data.timeline import by_ratio, first_cases

Row = tuple[str, str, int]


def split(
    rows: list[Row],
    ratio: tuple[float, float, float] | None = (0.8, 0.1, 0.1),
    *,
    by: str = "timeline",
    cases: str = "all",
    **settings: object,
) -> Dataset:
    users, items, times = (list(column) for column in zip(*rows, strict=True))
    return from_frame(
        {"u": users, "i": items, "t": times},
        columns={"user": "u", "item": "i", "time": "t"},
        split={"ratio": ratio, "by": by, "cases": cases} if ratio else None,
        **settings,
    )


def test_parts_follow_one_another_in_time():
    # Ten rows: eight for training, one to validate, one for the test, whatever user they are of.
    rows = [("u", "a", 1), ("v", "a", 2), ("u", "b", 3), ("v", "b", 4), ("u", "c", 5), ("v", "c", 6), ("u", "d", 7),
            ("w", "a", 8), ("u", "e", 9), ("v", "d", 10)]  # fmt: skip
    dataset = split(rows)
    assert [(row.user, row.item) for row in dataset.train] == [
        ("u", "b"),
        ("v", "b"),
        ("u", "c"),
        ("v", "c"),
        ("u", "d"),
    ]
    assert [(row.user, row.item, row.time) for row in dataset.history] == [
        ("u", "a", 1),
        ("v", "a", 2),
        ("w", "a", 8),
        ("u", "e", 9),
    ]
    assert [row.time for row in dataset.training_part] == [1, 2, 3, 4, 5, 6, 7, 8]
    (case,) = dataset.cases
    assert (case.user, case.target, case.history, case.time) == ("v", "d", ("a", "b", "c"), 10)
    assert dataset.notes[2:] == (
        "split on the global time line, interactions of one time together: training 8 (1970-01-01 to 1970-01-01), "
        "validation 1 (1970-01-01 to 1970-01-01), test 1 (1970-01-01 to 1970-01-01)",
        "1 test cases, of 1 of 3 users: each interaction in the test period is one",
        "2 users do not occur in the test period, and so have no test case",
    )


LATE = [("u", "a", 1), ("u", "b", 2), ("v", "a", 3), ("v", "b", 4), ("u", "c", 5), ("u", "d", 6), ("w", "a", 7),
        ("w", "b", 8)]  # fmt: skip
"""Two rows each for training and validation, four for the test, of which two are of someone whom nobody knows."""


def test_every_interaction_in_the_test_period_is_a_case_with_all_before_it_as_history():
    dataset = split(LATE, (0.25, 0.25, 0.5))
    assert [(case.key, case.target, case.history, case.time) for case in dataset.cases] == [
        (("u", 1), "c", ("a", "b"), 5),
        (("u", 2), "d", ("a", "b", "c"), 6),
    ]
    assert [(row.user, row.item) for row in dataset.training_part] == [("u", "a"), ("u", "b")]
    assert [note for note in dataset.notes if "case" in note] == [
        "2 test cases, of 1 of 3 users: each interaction in the test period is one",
        "1 users do not occur in the test period, and so have no test case",
        "1 users occur in the test period only, and so have no history for a test case",
        "2 interactions of the test period are no test case, and are not used",
    ]


@pytest.mark.parametrize("by", ["timeline", "user"])
def test_cases_of_one_user_are_told_apart_by_their_number_whatever_they_are_of(by):
    """The same item twice at the same time, which a log may well hold."""
    rows = [("u", "a", 1), ("u", "b", 2), ("u", "c", 3), ("u", "c", 3)]
    dataset = split(rows, (0.5, 0, 0.5), by=by)
    assert [(case.key, case.again, case.target, case.history) for case in dataset.cases] == [
        (("u", 1), (), "c", ("a", "b")),
        (("u", 2), ("case 2",), "c", ("a", "b", "c")),
    ]
    # what is learnt from, and what is known of the user, do not depend on how many cases there are
    first = split(rows, (0.5, 0, 0.5), by=by, cases="first")
    assert [case.key for case in first.cases] == [("u", 1)]
    assert (first.cases[0], first.own) == (dataset.cases[0], dataset.own)
    assert all(list(getattr(first, name)) == list(getattr(dataset, name)) for name in ("train", "history"))


def test_with_the_first_cases_alone_later_ones_are_only_known():
    dataset = split(LATE, (0.25, 0.25, 0.5), cases="first")
    (case,) = dataset.cases
    assert (case.user, case.target, case.history) == ("u", "c", ("a", "b"))
    assert dataset.own["u"] == frozenset("abcd")  # so that d, which he takes later, is never his negative
    assert [(row.user, row.item) for row in dataset.training_part] == [("u", "a"), ("u", "b")]
    # Both of v's fall into validation: given, but nothing that a ranker may learn from. All of w's are in the test.
    assert [(row.user, row.item) for row in dataset.history] == [("u", "a"), ("v", "a"), ("v", "b")]
    assert [note for note in dataset.notes if "case" in note] == [
        "1 of 3 users have a test case, which is their first interaction in the test period",
        "1 users do not occur in the test period, and so have no test case",
        "1 users occur in the test period only, and so have no history for a test case",
        "3 interactions of the test period are no test case, and are not used",
    ]


@pytest.mark.parametrize(("times", "training"), [([1, 2, 3, 3, 5], 4), ([1, 2, 2, 2, 5], 4), ([1, 2, 3, 4, 5], 3)])
def test_events_of_one_time_are_never_divided(times, training):
    # Three of five rows are for training; those of the third row's time go with it.
    rows = [("u", str(place), time) for place, time in enumerate(times)]
    dataset = split(rows, (0.6, 0, 0.4))
    assert len(dataset.training_part) == training


def test_popularity_at_a_test_event_knows_nothing_later():
    # Field case 43: u's test event is at 100, and fifty others take x at 150.
    before = [("u", "a", 10), *((f"v{n}", "b", 20 + n) for n in range(60))]
    rows = [*before, ("u", "c", 100), *((f"v{n}", "x", 150) for n in range(50))]
    share = len(before) / len(rows)
    dataset = split(rows, (share, 0, 1 - share))
    assert next(case for case in dataset.cases if case.user == "u").time == 100
    assert Counter(row.item for row in dataset.training_part) == {"a": 1, "b": 60}
    assert not [note for note in dataset.notes if "leak" in note]
    later = [(f"v{n}", item, 160) for n in range(50) for item in "yz"]
    leaking = split([*rows, *later], None)
    assert Counter(row.item for row in leaking.training_part)["x"] == 50
    note = "leave-one-out leaks: for 1 of 51 test cases the training part holds later interactions of other users"
    assert f"{note}; a ratio split does not" in leaking.notes


def test_steps_are_counted_after_the_split():
    dataset = split([("u", "a", 10), ("v", "a", 20), ("u", "b", 30), ("v", "b", 40)], (0.5, 0, 0.5), clock="step")
    assert (dataset.unit, [(case.user, case.time) for case in dataset.cases]) == ("step", [("u", 2), ("v", 2)])


def test_users_who_are_left_out_are_counted():
    # Field case 44: users with 1, 2, 3 and 10 interactions.
    rows = [(f"u{count}", f"i{n}", 10 * n + count) for count in (1, 2, 3, 10) for n in range(count)]
    everyone = split(rows, None)
    assert [case.user for case in everyone.cases] == ["u2", "u3", "u10"]
    assert "1 users have a single interaction, and so no test case" in everyone.notes
    some = split(rows, None, min_interactions=3)
    assert (some.users, [case.user for case in some.cases]) == (("u3", "u10"), ["u3", "u10"])
    assert "2 of 4 users have fewer than 3 interactions, and are left out with their 3 interactions" in some.notes
    assert split(rows, None, min_interactions=3, users=1).users == ("u3",)


def test_ratings_are_looked_at_before_interactions_are_counted():
    frame = {"u": ["u", "u", "v", "v", "w"], "i": list("ababa"), "t": [1, 2, 3, 4, 5], "r": [5, 4, 5, 1, 1]}
    columns = {"user": "u", "item": "i", "time": "t", "rating": "r"}
    dataset = from_frame(frame, columns=columns, min_rating=4, min_interactions=2)
    assert dataset.users == ("u",)
    assert dataset.notes[2:] == (
        "3 of 5 interactions are rated 4 or higher and kept",
        "1 users have no interaction that is rated so high, and are left out",
        "1 of 2 users have fewer than 2 interactions, and are left out with their 1 interactions",
    )


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=30),
    ratio=st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0, 0.5), (0.3, 0.3, 0.4)]),
)
def test_parts_are_those_of_a_plain_walk(rows, ratio):
    # The reference counts the strictly earlier rows of each one by one, then walks each user's rows.
    user, time = (np.array(column) for column in zip(*rows, strict=True))
    order = np.lexsort((np.arange(len(rows)), time, user))
    part = by_ratio(user.astype(np.int32), order, time, ratio)
    cuts = [round(ratio[0] * len(rows)), round((ratio[0] + ratio[1]) * len(rows))]
    expected = {}
    for one in set(user.tolist()):
        mine = sorted((place for place in range(len(rows)) if user[place] == one), key=lambda place: time[place])
        known = any(sum(other < time[place] for other in time) < cuts[1] for place in mine)
        for rank, place in enumerate(mine):
            earlier = sum(other < time[place] for other in time)
            if earlier < cuts[0]:
                expected[place] = Part.TRAIN if rank else Part.GIVEN
            elif earlier < cuts[1]:
                expected[place] = Part.VALIDATION
            else:
                expected[place] = Part.TEST if known else Part.LATER
    assert part.tolist() == [expected[place] for place in range(len(rows))]
    first = first_cases(user.astype(np.int32), order, part)
    for one in set(user.tolist()):
        tests = [place for place in order.tolist() if user[place] == one and part[place] == Part.TEST]
        expected |= dict.fromkeys(tests[1:], Part.LATER)
    assert first.tolist() == [expected[place] for place in range(len(rows))]
    training = time[(part == Part.GIVEN) | (part == Part.TRAIN)]
    assert not np.any(part == Part.TEST) or not len(training) or training.max() < time[part == Part.TEST].min()


def test_real_movielens_on_the_global_time_line(real_data: Path):
    settings = AtomicSettings.model_validate(
        {"format": "atomic", "path": real_data / "ml-100k", "split": {"ratio": [0.8, 0.1, 0.1]}, "min_interactions": 5}
    )
    dataset = load(settings)
    rows = [line.split("\t") for line in (real_data / "ml-100k" / "ml-100k.inter").read_text().splitlines()[1:]]
    times = sorted(int(row[3]) for row in rows)
    # The cut at 80,000 would divide the rows of one second: they begin before it, so all of them are for training.
    assert times[79_999] == times[80_000] == 889_237_269
    assert len(dataset.training_part) == sum(time <= 889_237_269 for time in times)
    assert max(dataset.training_part.time) < min(case.time for case in dataset.cases)
    known = {user for user, _, _, time in rows if int(time) < times[90_000]}
    late = {user for user, _, _, time in rows if int(time) >= times[90_000]}
    assert times[89_999] < times[90_000]
    assert {case.user for case in dataset.cases} == known & late
