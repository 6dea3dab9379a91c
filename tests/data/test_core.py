"""The k-core filter: the same rows as a plain walk and as networkx find, in its place among the other filters."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine.data import AtomicSettings, from_frame, load
from simengine.data.filters import k_core
from simengine.errors import InputError

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=60)


def core_rows(pairs, k):
    user, item = np.array(pairs, np.int32).reshape(-1, 2).T
    rows, rounds = k_core(user, item, k)
    return rows.tolist(), rounds


@given(pairs=PAIRS, k=st.integers(1, 5))
def test_the_core_is_what_a_plain_walk_leaves(pairs, k):
    left, rounds = list(enumerate(pairs)), 0
    while True:
        users, items = (Counter(pair[side] for _, pair in left) for side in (0, 1))
        stay = [(row, (user, item)) for row, (user, item) in left if users[user] >= k and items[item] >= k]
        if len(stay) == len(left):
            break
        left, rounds = stay, rounds + 1
    assert core_rows(pairs, k) == ([row for row, _ in left], rounds)


@given(pairs=PAIRS, k=st.integers(1, 5))
def test_the_core_is_that_of_the_bipartite_graph(pairs, k):
    pairs = list(dict.fromkeys(pairs))  # networkx counts an edge once
    graph = nx.Graph((("user", user), ("item", item)) for user, item in pairs)
    edges = {frozenset(edge) for edge in nx.k_core(graph, k).edges}
    rows, _ = core_rows(pairs, k)
    assert {frozenset((("user", pairs[row][0]), ("item", pairs[row][1]))) for row in rows} == edges
    assert len(rows) == len(edges)


def frame(rows, **said):
    """Rows as ``u1 a 5``: user, item, rating, each at its own time."""
    users, items, ratings = zip(*map(str.split, rows), strict=True)
    columns = {"user": "u", "item": "i", "time": "t", "rating": "r"}
    data = {"u": users, "i": items, "t": range(len(rows)), "r": list(map(int, ratings))}
    table = {"id": sorted({*items, "unseen"}), "title": sorted({*items, "unseen"})}
    return from_frame(data, columns=columns, items=table, item_columns={"id": "id", "title": "title"}, **said)


SQUARE = ["u1 a 5", "u1 b 5", "u2 a 5", "u2 b 5"]


def test_users_and_items_outside_the_core_are_not_in_the_data():
    # d goes, so that u4 has one row; u4 goes, so that c has one; c goes, so that u3 has one.
    dataset = frame([*SQUARE, "u3 a 5", "u3 c 5", "u4 c 5", "u4 d 5"], core=2)
    assert (dataset.users, tuple(dataset.items)) == (("u1", "u2"), ("a", "b"))
    assert {user: set(own) for user, own in dataset.own.items()} == {"u1": {"a", "b"}, "u2": {"a", "b"}}
    assert dataset.training_part.items == ("a", "b")
    assert [(case.user, case.target, case.history) for case in dataset.cases] == [
        ("u1", "b", ("a",)),
        ("u2", "b", ("a",)),
    ]


def test_the_note_says_what_is_left_and_after_how_many_rounds():
    # Round 1: d has one row. Round 2: u4 has one row. Round 3: c has one row. Round 4: u3 has one row.
    dataset = frame([*SQUARE, "u3 a 5", "u3 c 5", "u4 c 5", "u4 d 5"], core=2)
    assert (
        "2-core, reached after 4 rounds: 2 of 4 users and 2 of 5 items are kept, with 4 of 8 interactions"
        in dataset.notes
    )


def test_one_round_is_told_in_the_singular():
    dataset = frame([*SQUARE, "u3 a 5"], core=2)
    assert "2-core, reached after 1 round: 2 of 3 users and 2 of 3 items are kept, with 4 of 5 interactions" in (
        dataset.notes
    )


def test_ratings_are_looked_at_before_the_core_and_numbers_of_interactions_after_it():
    rows = [*SQUARE, "u1 c 5", "u2 c 2", "u3 a 5", "u3 b 5", "u3 d 5"]
    both = frame(rows, min_rating=3, core=2)
    assert (both.users, tuple(both.items)) == (("u1", "u2", "u3"), ("a", "b"))
    # u1 and u3 have three rows before the core, and two within it.
    assert frame(rows, core=2, min_interactions=3).users == ("u1", "u2")
    with pytest.raises(InputError, match="no user has 3 of them"):
        frame(rows, min_rating=3, core=2, min_interactions=3)


def test_the_first_users_are_taken_from_the_core_whose_items_all_stay():
    dataset = frame([*SQUARE, "u0 x 5", "u1 c 5", "u2 c 5"], core=2, users=1)
    assert (dataset.users, tuple(dataset.items)) == (("u1",), ("a", "b", "c"))


def test_a_repeated_interaction_counts_as_often_as_it_stands():
    assert frame(["u1 a 5", "u1 a 5"], core=2).users == ("u1",)


def test_one_is_the_core_of_all_that_occurs():
    assert tuple(frame(SQUARE).items) == ("a", "b", "unseen")
    assert tuple(frame(SQUARE, core=1).items) == ("a", "b")


def test_where_nothing_is_left_the_error_says_what_would_leave_something():
    with pytest.raises(InputError, match="there is no 3-core, in which every user and every item has 3") as caught:
        frame(SQUARE, core=3)
    assert caught.value.remedy == "Lower data.core; 2 is the highest that leaves any."


def test_split_files_are_used_as_given(write):
    files = {
        "x.test.inter": "user_id:token|item_id_list:token_seq|item_id:token\nu|a|b\n",
        "x.item": "item_id:token|title:token_seq\na|A\nb|B\n",
    }
    with pytest.raises(InputError, match=r"split files are used as given, so data\.core cannot be"):
        load(AtomicSettings(format="atomic", path=write(files), core=5))


def test_movielens_in_the_paper_s_core(real_data):
    path = real_data / "ml-100k"
    everything = load(AtomicSettings(format="atomic", path=path))
    edges = [(f"u{user}", f"i{item}") for user, own in everything.own.items() for item in own]
    core = nx.k_core(nx.Graph(edges), 5)
    dataset = load(AtomicSettings(format="atomic", path=path, core=5))
    assert {f"u{user}" for user in dataset.users} | {f"i{item}" for item in dataset.items} == set(core)
    assert sum(map(len, dataset.own.values())) == core.number_of_edges()


def test_beauty_users_share_too_little_for_a_core(real_data):
    domains = ("All_Beauty", "Beauty_and_Personal_Care")
    path = real_data / "amazon2023-multidomain"
    with pytest.raises(InputError, match="there is no 5-core") as caught:
        load(AtomicSettings(format="atomic", path=path, domains=domains, core=5))
    assert "2 is the highest" in caught.value.remedy
