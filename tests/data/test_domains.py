"""Domains of items: where they are read from, the filter, candidates of the target's domain, each user's own split."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from publishers import content

from simengine.data import AtomicSettings, CsvSettings, from_frame, load, redrawn, with_drawn_candidates
from simengine.data.assemble import Part
from simengine.data.timeline import by_user
from simengine.errors import InputError

LOG = "user_id:token|item_id:token|timestamp:float|shelf:token\n"
ROWS = "u|a|1|X\nu|b|2|Y\nu|c|3|X\nv|b|1|Y\nv|d|2|Y\n"
ITEM = "item_id:token|title:token_seq|domain:token\na|A|X\nb|B|Y\nc|C|X\nd|D|Y\n"


def atomic(folder, **said):
    return load(AtomicSettings(format="atomic", path=folder, **said))


def domains(dataset):
    return {item.id: item.domain for item in dataset.items.values()}


def test_the_column_domain_is_taken_by_itself_and_another_by_name(write):
    folder = write({"x.inter": LOG + ROWS, "x.item": ITEM})
    assert domains(atomic(folder)) == {"a": "X", "b": "Y", "c": "X", "d": "Y"}
    assert "2 domains: X, Y" in atomic(folder).notes
    assert set(atomic(folder).items["a"].extra) == set()
    renamed = write({"x.item": ITEM.replace("domain", "aisle")})
    assert set(domains(atomic(renamed)).values()) == {""}
    assert domains(atomic(renamed, domain="aisle"))["b"] == "Y"
    with pytest.raises(InputError, match="there is no field isle"):
        atomic(renamed, domain="isle")


def test_a_domain_that_only_the_log_tells(write):
    table = "item_id:token|title:token_seq\n" + "".join(f"{name}|{name}\n" for name in "abcde")
    folder = write({"x.inter": LOG + ROWS, "x.item": table})
    assert domains(atomic(folder, domain="shelf")) == {"a": "X", "b": "Y", "c": "X", "d": "Y", "e": ""}
    write({"x.inter": LOG + ROWS + "v|a|9|Y\n"})
    with pytest.raises(InputError, match="item a is of the domain 'Y' here, and of 'X' before") as caught:
        atomic(folder, domain="shelf")
    assert (caught.value.where["line"], caught.value.where["field"]) == (7, "shelf")


def test_the_item_table_counts_where_the_log_says_otherwise(write):
    log = (LOG + ROWS).replace("shelf", "domain").replace("a|1|X", "a|1|Y")
    dataset = atomic(write({"x.inter": log, "x.item": ITEM}))
    assert domains(dataset)["a"] == "X"
    assert "1 interactions name another domain than the item table, which counts" in dataset.notes


def test_the_filter_keeps_items_and_rows_and_counts_them(write):
    folder = write({"x.inter": LOG + ROWS, "x.item": ITEM})
    dataset = atomic(folder, domains=["Y"])
    assert (list(dataset.items), dataset.users) == (["b", "d"], ("u", "v"))
    assert dataset.own == {"u": {"b"}, "v": {"b", "d"}}
    assert {"2 of 4 items are of the domains Y", "3 of 5 interactions are about items of these domains"} <= set(
        dataset.notes
    )
    assert atomic(folder, domains=["Y"], min_interactions=2).users == ("v",)
    assert dataset.digest == atomic(folder).digest
    with pytest.raises(InputError, match="no item of the domain Z; the domains are X, Y"):
        atomic(folder, domains=["Z"])
    write({"x.inter": LOG + "u|a|1|X\n"})
    with pytest.raises(InputError, match="none is about an item of these domains") as caught:
        atomic(folder, domains=["Y"])
    assert caught.value.remedy == "Name other domains under data.domains."


def test_ratings_are_counted_among_what_the_filter_left(write):
    log = "user_id:token|item_id:token|rating:float\nu|a|5\nu|b|5\nu|d|1\nv|c|5\n"
    dataset = atomic(write({"x.inter": log, "x.item": ITEM}), domains=["Y"], min_rating=4)
    assert "1 of 2 interactions are rated 4 or higher and kept" in dataset.notes
    assert dataset.users == ("u",)


def test_split_files_are_not_filtered(write):
    split = "user_id:token|item_id_list:token_seq|item_id:token\nu|a|b\n"
    with pytest.raises(InputError, match=r"split files are used as given, so data\.domains cannot be"):
        atomic(write({"x.test.inter": split, "x.item": ITEM}), domains=["Y"])


def test_csv_and_frames_have_domains_too(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\nu,a\nu,b\nu,c\n")
    (tmp_path / "items.csv").write_text("id,title,kind\na,A,X\nb,B,Y\nc,C,X\n")
    names = {"id": "id", "title": "title", "domain": "kind"}
    read = load(
        CsvSettings(
            format="csv",
            path=tmp_path / "log.csv",
            columns={"user": "user", "item": "item"},
            items={"path": "items.csv", **names},
            domains=["X"],
        )
    )
    frame = from_frame(
        {"user": ["u"] * 3, "item": list("abc")},
        columns={"user": "user", "item": "item"},
        domains=("X",),
        items={"id": list("abc"), "title": list("ABC"), "kind": list("XYX")},
        item_columns=names,
    )
    assert domains(read) == {"a": "X", "c": "X"}
    assert content(frame) == content(read)


def shop(items=40):
    """Ten users who each take three items of one of two domains, and a fourth for the test."""
    log = [
        (f"u{user}", (user % 2) + 2 * ((user + 3 * step) % (items // 2)), step)
        for user in range(10)
        for step in range(4)
    ]
    users, taken, times = zip(*log, strict=True)
    names = [str(number) for number in range(items)]
    return from_frame(
        {"u": list(users), "i": [str(item) for item in taken], "t": list(times)},
        columns={"user": "u", "item": "i", "time": "t"},
        items={"i": names, "n": names, "d": ["even", "odd"] * (items // 2)},
        item_columns={"id": "i", "title": "n", "domain": "d"},
    )


def test_candidates_are_of_the_targets_domain_and_not_known_of_the_user():
    dataset = shop()
    drawn = with_drawn_candidates(dataset, 9, seed=3)
    assert len(drawn.cases) == 10
    for case in drawn.cases:
        others = set(case.candidates) - {case.target}
        assert len(others) == 9 and not others & dataset.own[case.user]
        assert {dataset.items[item].domain for item in case.candidates} == {dataset.items[case.target].domain}
        again = redrawn(case, drawn, list(dataset.items), random.Random(1))
        assert {dataset.items[item].domain for item in again.candidates} == {dataset.items[case.target].domain}
    assert drawn.notes[-1].endswith("drawn uniformly from what is not known of the user in the domain of the target")


def test_too_small_a_domain_gives_fewer():
    drawn = with_drawn_candidates(shop(items=16), 9, seed=3)
    assert {len(case.candidates) for case in drawn.cases} == {
        5
    }  # eight of a domain, less four that are known, and the target
    assert "10 test cases have fewer than 9 negatives to draw" in drawn.notes


def test_a_case_without_any_negative_has_no_candidates_and_is_counted():
    """Four items of a domain, all of which its users have taken: with the target alone every ranker would be right."""
    log = [(user, f"{domain}{step}", step) for user, domain in (("u", "x"), ("v", "y")) for step in range(4)]
    users, taken, times = zip(*log, strict=True)
    names = [*(f"x{step}" for step in range(4)), *(f"y{step}" for step in range(6))]
    dataset = from_frame(
        {"u": list(users), "i": list(taken), "t": list(times)},
        columns={"user": "u", "item": "i", "time": "t"},
        items={"i": names, "n": names, "d": [name[0] for name in names]},
        item_columns={"id": "i", "title": "n", "domain": "d"},
    )
    drawn = with_drawn_candidates(dataset, 2, seed=3)
    assert [case.candidates for case in drawn.cases] == [None, ("y3", "y4", "y5")]
    assert drawn.notes[-1] == (
        "1 of 2 test cases have no negative to draw, as their users have taken all of the target's domain "
        "(x: 4 items); nobody ranks them"
    )
    assert not [note for note in drawn.notes if "fewer than 2" in note]


def test_each_case_of_a_user_has_negatives_of_its_own_and_the_first_those_that_it_has_alone():
    rows = {"u": ["u"] * 4, "i": list("abcd"), "t": [1, 2, 3, 4]}
    names = [*"abcd", *(str(number) for number in range(40))]

    def drawn(cases):
        dataset = from_frame(
            rows,
            columns={"user": "u", "item": "i", "time": "t"},
            items={"i": names, "n": names},
            item_columns={"id": "i", "title": "n"},
            split={"ratio": [0.5, 0, 0.5], "by": "user", "cases": cases},
        )
        return with_drawn_candidates(dataset, 9, seed=3).cases

    first, second = drawn("all")
    assert drawn("first") == (first,)
    assert {*first.candidates} - {"c"} != {*second.candidates} - {"d"}
    assert not {*first.candidates, *second.candidates} & {"a", "b"}
    assert "d" not in first.candidates and "c" not in second.candidates  # what he takes later is no negative


def parts(count, ratio):
    """The parts of one user's rows, as a word."""
    letters = {Part.GIVEN: "g", Part.TRAIN: "t", Part.VALIDATION: "v", Part.TEST: "T"}
    place = np.arange(1, count + 1)
    return "".join(letters[Part(part)] for part in by_user(place, np.full(count, count), ratio))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (10, "gtttttttvT"),
        (20, "g" + "t" * 15 + "vvTT"),
        (15, "g" + "t" * 11 + "vvT"),
        (5, "gtttT"),
        (3, "gtv"),
        (2, "gt"),
        (1, "g"),
    ],
)
def test_each_users_own_interactions_eight_to_one_to_one(count, expected):
    # Rounded to the even of two that are equally near: 0.9 x 15 = 13.5 makes 14, 0.9 x 5 = 4.5 makes 4.
    assert parts(count, (0.8, 0.1, 0.1)) == expected


@given(st.integers(1, 200), st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(1, 9)))
def test_the_parts_of_a_user_follow_one_another(count, shares):
    ratio = tuple(share / sum(shares) for share in shares)
    found = parts(count, ratio)
    assert found[0] == "g" and found == "".join(sorted(found, key="gtvT".index))
    assert abs(found.count("T") - ratio[2] * count) <= 1.5
    assert abs(found.count("v") - ratio[1] * count) <= 1.5


def test_a_split_by_user_needs_no_times_and_is_told(write):
    log = "user_id:token|item_id:token\n" + "".join(f"u|{place}\n" for place in range(10)) + "v|0\n"
    table = "item_id:token|title:token_seq\n" + "".join(f"{place}|T{place}\n" for place in range(10))
    split = {"ratio": [0.8, 0.1, 0.1], "by": "user"}
    dataset = atomic(write({"x.inter": log, "x.item": table}), split=split)
    assert [row.item for row in dataset.train] == [str(place) for place in range(1, 8)]
    assert [(case.target, len(case.history)) for case in dataset.cases] == [("9", 9)]
    assert "1 of 2 users have too few interactions for a test case" in dataset.notes
    write({"x.inter": "user_id:token|item_id:token\nv|0\n"})
    with pytest.raises(InputError, match="nobody has a test case: each user's interactions are split by their order"):
        atomic(write({}), split=split)


def test_real_multidomain_data(real_data):
    folder = real_data / "amazon2023-multidomain"
    dataset = atomic(folder)
    assert len(set(domains(dataset).values())) == 24
    assert not [note for note in dataset.notes if "name another domain" in note]
    chosen = ("CDs_and_Vinyl", "Movies_and_TV", "Video_Games", "Kindle_Store")
    fewer = atomic(folder, domains=chosen)
    assert "600 of 3455 interactions are about items of these domains" in fewer.notes
    assert len(fewer.users) == 103
    by_user_domains = {user: {fewer.items[item].domain for item in items} for user, items in fewer.own.items()}
    assert sum(len(found) > 1 for found in by_user_domains.values()) == 13
    drawn = with_drawn_candidates(fewer, 9, seed=0)
    assert all(len({fewer.items[item].domain for item in case.candidates}) == 1 for case in drawn.cases)


def test_real_sequences_without_times(real_data):
    dataset = atomic(real_data / "arts-office-crossdomain", split={"ratio": [0.8, 0.1, 0.1], "by": "user"})
    assert dataset.unit == "step"
    assert set(domains(dataset).values()) == {"Arts", "Office"}
    assert len(dataset.users) == len({case.user for case in dataset.cases}) == 300
    taken = {case.user: len(case.history) + 1 for case in dataset.cases}  # of the last case, so all that there is
    assert Counter(case.user for case in dataset.cases) == {user: n - round(0.9 * n) for user, n in taken.items()}
    assert all({dataset.items[item].domain for item in items} == {"Arts", "Office"} for items in dataset.own.values())
    office = atomic(real_data / "arts-office-crossdomain", domains=["Office"])
    counts = Counter(item.domain for item in dataset.items.values())
    assert set(domains(office).values()) == {"Office"} and len(office.items) == counts["Office"]
