"""Split files are used as given: what becomes an event, what is given history, who the candidates are."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine.data import AtomicSettings, Dataset, Interaction, load
from simengine.errors import InputError

HEADER = "user_id:token|item_id_list:token_seq|item_id:token\n"
ITEMS = "item_id:token|title:token_seq\n" + "".join(f"{number}|Title {number}\n" for number in range(20))
SMALL = {
    "x.train.inter": HEADER + "b|1|2\nb|1 2|3\na|2|1\n",
    "x.valid.inter": HEADER + "b|1 2 3|4\na|2 1|7\n",
    "x.test.inter": HEADER + "b|1 2 3 4|5\na|2 1 7|8\n",
    "x.item": ITEMS,
    "x.random": "a|19 8 18 17 19 16 15 14 13 12 11 10 9\nb|2 6 7 8 9 10 11 12 13 14\n",
}


def atomic(path: Path, **settings: object) -> Dataset:
    return load(AtomicSettings(format="atomic", path=path, **settings))


def test_parts_steps_and_order(write):
    dataset = atomic(write(SMALL))
    assert dataset.users == ("b", "a")  # order of first appearance, which also settles equal steps
    assert list(dataset.train) == [Interaction("b", "2", 2), Interaction("a", "1", 2), Interaction("b", "3", 3)]
    assert list(dataset.history) == [
        Interaction("b", "1", 1),
        Interaction("a", "2", 1),
        Interaction("a", "7", 3),
        Interaction("b", "4", 4),
    ]
    assert [(row.user, row.item) for row in dataset.training_part] == [
        ("b", "1"), ("a", "2"), ("b", "2"), ("a", "1"), ("b", "3"),
    ]  # fmt: skip
    assert dataset.train.line.tolist() == [2, 4, 3]
    assert dataset.own == {"b": frozenset("12345"), "a": frozenset("2178")}
    assert (dataset.unit, dataset.noun, dataset.recorded_negatives) == ("step", "item", None)


def test_cases_hold_the_first_nine_ids_that_are_not_the_target(write):
    b, a = atomic(write(SMALL)).cases
    assert (a.user, a.target, a.history, a.time) == ("a", "8", ("2", "1", "7"), 4)
    # 19 is listed twice and counts once, the target 8 is dropped, so the ninth id is 11; then natural order.
    assert a.candidates == ("8", "11", "12", "13", "14", "15", "16", "17", "18", "19")
    assert b.candidates == ("2", "5", "6", "7", "8", "9", "10", "11", "12", "13")


def test_notes_tell_what_is_odd(write):
    assert atomic(write(SMALL)).notes == ("1 test cases have an item of the user's own history among their candidates",)
    short = SMALL | {"x.random": "a|19 18\nb|6 7 8\n"}
    assert atomic(write(short)).notes == ("1 test cases have fewer than the 3 negatives of the others",)


def test_order_keys_compare_across_tables(write):
    dataset = atomic(write(SMALL))
    keys = [(rows.order(row), rows[row]) for rows in (dataset.train, dataset.history) for row in range(len(rows))]
    assert [row.item for _, row in sorted(keys, key=lambda pair: pair[0])] == ["1", "2", "2", "1", "3", "7", "4"]


def test_columns_cannot_be_written(write):
    dataset = atomic(write(SMALL))
    with pytest.raises(ValueError, match="read-only"):
        dataset.train.time[0] = 7
    with pytest.raises(TypeError):
        dataset.own["a"] = frozenset()


def test_only_the_first_users(write):
    dataset = atomic(write(SMALL), users=1)
    assert dataset.users == ("b",)
    assert {row.user for rows in (dataset.train, dataset.history) for row in rows} == {"b"}
    assert [case.user for case in dataset.cases] == ["b"]
    assert "5 users are asked for, the data have 2" in atomic(write(SMALL), users=5).notes


@pytest.mark.parametrize(
    ("name", "content", "line", "problem"),
    [
        ("x.train.inter", HEADER + "b|1|2\nb|1 9|3\n", 3, "the history of user b is not what the rows before it say"),
        ("x.valid.inter", HEADER + "b|1 2|4\n", 2, "the history of user b is not what the rows before it say"),
        ("x.train.inter", HEADER + "b|1|99\n", 2, "item '99' is not in the item table"),
        ("x.train.inter", HEADER + "b|99|1\n", 2, "item '99' is not in the item table"),
        ("x.train.inter", HEADER + "b|1  2|3\n", 2, "item '' is not in the item table"),
        ("x.random", "a|1 2\nb|99\n", 2, "item '99' is not in the item table"),
        ("x.random", "a|1 2\nb\n", 2, "this is no user id, tab, list of item ids"),
        ("x.random", "a|1 2\na|1 2\n", 2, "user a is listed twice"),
        ("x.random", "a|1 2\n", None, "user b has a test case, but no line here"),
    ],
)
def test_what_is_wrong_is_named(write, name, content, line, problem):
    folder = write(SMALL | {name: content})
    with pytest.raises(InputError) as caught:
        atomic(folder)
    assert problem in caught.value.problem
    assert caught.value.where["file"] == str(folder / name)
    assert caught.value.where.get("line") == line


@pytest.mark.parametrize(("settings", "field"), [({"clock": "time"}, "timestamp"), ({"min_rating": 4}, "rating")])
def test_asking_for_what_split_files_lack_names_the_column(write, settings, field):
    with pytest.raises(InputError, match=f"the field {field} cannot be used") as caught:
        atomic(write(SMALL), **settings)
    assert caught.value.where["field"] == field


# Numbers of the real sets are those of their own description.


@pytest.mark.parametrize(("name", "items", "own_users"), [("dense", 269, 24), ("sparse", 704, 0)])
def test_real_cds(real_data: Path, name, items, own_users):
    dataset = atomic(real_data / f"agentcf-cds-{name}", noun="CD")
    assert (len(dataset.users), len(dataset.items), len(dataset.train), len(dataset.cases)) == (100, items, 500, 100)
    assert (len(dataset.history), len(dataset.training_part)) == (200, 600)
    assert sorted({row.time for row in dataset.train}) == [2, 3, 4, 5, 6]
    assert {case.time for case in dataset.cases} == {8}
    assert all(len(set(case.candidates)) == 10 and case.target in case.candidates for case in dataset.cases)
    assert all(len(case.history) == 7 and len(dataset.own[case.user]) == 8 for case in dataset.cases)
    note = f"{own_users} test cases have an item of the user's own history among their candidates"
    assert (note in dataset.notes) == bool(own_users)


def test_real_games_without_training_file(real_data: Path):
    dataset = atomic(real_data / "llmrank-games-200", noun="game")
    assert (len(dataset.users), len(dataset.train), len(dataset.cases)) == (200, 0, 200)
    assert len(dataset.history) == 1603 - 200  # all interactions but the targets of the cases
    assert any("no *.train.inter" in note for note in dataset.notes)
