from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interec_games import shop_data

from simengine.methods.interec.faults import CODES, Fault
from simengine.methods.interec.lexer import filled, references
from simengine.methods.interec.sql import Fence, Limits
from simengine.methods.interec.table import build

TABLE = build(shop_data())


@pytest.fixture(scope="module")
def fence() -> Fence:
    return Fence(TABLE)


def _titles(fence: Fence, where: str) -> list[object]:
    return [row[0] for row in fence.ask(f"SELECT title FROM items WHERE {where} ORDER BY id", rows=20).rows]


@pytest.mark.parametrize(
    ("where", "titles"),
    [
        ("title = 'portal'", ["Portal"]),
        ("title LIKE '%portal%'", ["Portal", "Portal 2"]),
        ("title LIKE 'Half Life 2'", ["Half-Life 2"]),
        ("lower(title) = 'HALF LIFE'", ["Half-Life"]),
        ('"title" = "Portal 2"', ["Portal 2"]),
        ("items.title IN ('portal', 'b')", ["Portal", "b"]),
        ("title = 'O''Brien''s puzzle platformer'", ["O'Brien's Puzzle Platformer"]),
        ("genre = 'war'", ["Twins", "Counter-Strike"]),  # not Warfare
        ("tags LIKE '%War%'", ["Twins", "Counter-Strike"]),
        ("tags LIKE '%fare%'", ["Warfare 1917"]),
        ("tags LIKE '%|RPG|%' AND price < 20", ["原神", "Мор. Утопия"]),
        ("tags IN ('Musics', 'Racing')", ["b", "Twins"]),
        ("tags LIKE '%open-world%'", ["原神", "The Witcher 3: Wild Hunt"]),
        ("tags LIKE '%Racing%' OR tags LIKE '%Dancing%'", ["Twins"]),
        ("tags <> 'Action' AND price = 9.99", ["Portal", "Portal 2"]),
        ("tags NOT LIKE '%Roguelike%' AND title = 'b'", ["b"]),
        ("relase_date > '2018' AND prices = 0", ["b", "原神"]),
        ("year = (SELECT release_date FROM items WHERE title = 'half life')", ["Half-Life"]),
        ("title = '原神'", ["原神"]),
        ("title LIKE '%' || 'Orange' || '%'", ["100% Orange Juice"]),
    ],
)
def test_names_and_values_are_grounded(fence: Fence, where: str, titles: list[str]) -> None:
    assert _titles(fence, where) == titles


@pytest.mark.parametrize(
    "where",
    ["title = 'Portal 3'", "tags = 'Roguelike'", "tags LIKE '%Dating%'", "title IN ('Doom', 'Quake')", "rating > 3"],
)
def test_what_is_not_there_is_not_found_and_never_the_nearest(fence: Fence, where: str) -> None:
    with pytest.raises(Fault) as caught:
        _titles(fence, where)
    assert caught.value.code == "not_found"


def test_what_is_missing_is_said_where_the_query_finds_something_all_the_same(fence: Fence) -> None:
    answer = fence.ask("SELECT title FROM items WHERE tags = 'Racing' OR tags = 'Dancing'", rows=5)
    assert (len(answer.rows), answer.missing) == (1, ("tags 'Dancing'",))


def test_candidates_are_those_of_the_query_and_of_no_other(fence: Fence) -> None:
    sql = "SELECT id FROM candidates ORDER BY price DESC"
    assert [row[0] for row in fence.ask(sql, [1, 3, 8], rows=9).rows] == [8, 1, 3]
    assert fence.ask(sql, [], rows=9).rows == ()
    assert len(fence.ask(sql, rows=99).rows) == len(TABLE)
    assert fence.ask("SELECT count(*) FROM candidates c JOIN items i ON c.id = i.id", [16], rows=1).rows == ((1,),)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH cheap AS (SELECT id FROM items WHERE price = 9.99) SELECT count(*) FROM cheap",
        "SELECT count(*) FROM (SELECT id FROM items WHERE price = 9.99)",
        "SELECT count(*) FROM (SELECT id FROM candidates UNION SELECT id FROM items) x JOIN items USING (id) "
        "WHERE price = 9.99",
    ],
)
def test_inner_queries_are_permitted(fence: Fence, sql: str) -> None:
    assert fence.ask(sql, rows=1).rows == ((5,),)


def test_rows_beyond_the_limit_are_told(fence: Fence) -> None:
    answer = fence.ask("SELECT id FROM items", rows=3)
    assert (len(answer.rows), answer.more, answer.ordered) == (3, True, False)
    assert fence.ask("SELECT id FROM items WHERE id IN (SELECT id FROM items ORDER BY id)", rows=3).ordered is False


def test_time_runs_out_by_the_clock_too() -> None:
    ticks = count()
    fence = Fence(TABLE, Limits(work=10**9), clock=lambda: float(next(ticks)))
    with pytest.raises(Fault) as caught:
        fence.ask("SELECT count(*) FROM items a, items b, items c", rows=1)
    assert caught.value.code == "too_slow"


def test_a_fault_does_not_stick(fence: Fence) -> None:
    for sql in ("SELECT count(*) FROM items a, items b, items c, items d", "SELECT random()", "SELECT , FROM"):
        with pytest.raises(Fault):
            fence.ask(sql, rows=1)
    assert fence.ask("SELECT count(*) FROM items", rows=1).rows == ((len(TABLE),),)


def test_references_are_replaced_by_literals_and_nothing_else() -> None:
    sql = "SELECT id FROM items WHERE title IN ($1.title) AND release_date > '$2.release_date' OR price IN $3.price"
    assert references(sql) == [(1, "title"), (2, "release_date"), (3, "price")]
    values = {1: ["a'); DROP TABLE items; --", "b"], 2: ["2007"], 3: [1, 2.5]}
    assert filled(sql, lambda step, _: values[step]) == (
        "SELECT id FROM items WHERE title IN ( 'a''); DROP TABLE items; --' , 'b' ) "
        "AND release_date > '2007' OR price IN ( 1 , 2.5 )"
    )


@given(st.text(max_size=80))
def test_any_text_gives_an_answer_or_a_fault(text: str) -> None:
    fence = Fence(TABLE)
    for sql in (text, f"SELECT id FROM items WHERE {text}", f"SELECT id FROM items WHERE title = '{text}'"):
        try:
            assert len(fence.ask(sql, rows=20).rows) <= 20
        except Fault as fault:
            assert fault.code in CODES
    assert fence.image() == TABLE.image
    fence.close()


WORDS = (
    "SELECT FROM WHERE items candidates current title tags id = LIKE IN ( ) , . * 'Portal' \"Action\" NOT AND OR UNION "
    "WITH x AS DELETE DROP TABLE ; PRAGMA $1.title sqlite_master lower count 1 LIMIT ORDER BY GROUP JOIN ON"
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=25))
def test_any_words_of_sql_give_an_answer_or_a_fault(words: list[str]) -> None:
    fence = Fence(TABLE)
    for start in ("", "SELECT id FROM items WHERE title "):
        try:
            fence.ask(start + " ".join(words), [1, 2], rows=5)
        except Fault as fault:
            assert fault.code in CODES
    assert fence.image() == TABLE.image
    fence.close()
