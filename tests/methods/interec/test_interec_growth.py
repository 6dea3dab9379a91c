"""How far a query grows: what people and models write is far from the bound, and what explodes is beyond it."""

from __future__ import annotations

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interec_games import make_shop

from simengine.methods.interec.demonstrations import SEED
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.growth import _RESERVED, growth
from simengine.methods.interec.lexer import cut
from simengine.methods.interec.sql import Fence, Limits

TABLE = make_shop().table
FENCE = Fence(TABLE)
MOST = Limits().terms

HONEST = [
    "SELECT id FROM candidates",
    "SELECT id FROM candidates WHERE "
    + " OR ".join(f"title LIKE '%w{at}%' OR tags LIKE '%w{at}%'" for at in range(25)),
    "SELECT id FROM candidates WHERE tags IN (" + ", ".join(f"'w{at}'" for at in range(80)) + ")",
    "SELECT id FROM candidates WHERE tags LIKE '%|Puzzle|%' AND price < (SELECT avg(price) FROM items "
    "WHERE tags LIKE '%|Puzzle|%' AND tags NOT LIKE '%|War|%') ORDER BY visits DESC, price ASC LIMIT 20",
    "WITH liked AS (SELECT id, tags, price FROM items WHERE title = 'Portal' OR title = 'Half-Life'), "
    "cheap AS (SELECT c.id, c.price FROM candidates c JOIN liked l ON c.price <= l.price WHERE c.id <> l.id) "
    "SELECT id FROM cheap WHERE id NOT IN (SELECT id FROM liked) ORDER BY price DESC",
    "SELECT c.id FROM candidates c WHERE EXISTS (SELECT 1 FROM items i WHERE i.price = c.price AND i.id <> c.id "
    "AND i.title IN (SELECT title FROM items WHERE visits > 100 AND price < 10))",
    " UNION ".join(f"SELECT id FROM candidates WHERE tags LIKE '%|t{at}|%' AND price < {at}" for at in range(9)),
    "SELECT id, CASE WHEN price < 5 THEN 'low' WHEN price < 20 THEN 'middle' ELSE 'high' END AS level, "
    "CASE WHEN visits > 9 THEN 1 ELSE 0 END AS known FROM candidates GROUP BY level, known HAVING count(*) > 1",
]  # fmt: skip


@pytest.mark.parametrize("sql", HONEST)
def test_what_is_written_in_earnest_is_far_from_the_bound(sql: str) -> None:
    assert growth(cut(sql)) * 10 < MOST


def test_the_queries_of_demonstrations_are_too() -> None:
    sql = [step.input for pair in SEED for step in pair.plan.steps if step.tool in ("look_up", "hard_filter")]
    assert sql
    assert max(growth(cut(text[8:-2].replace("$1.", ""))) for text in sql) < 1000


@pytest.mark.parametrize(
    ("sql", "right"),
    [
        ("SELECT 1", 1),
        ("SELECT id FROM candidates", 1),
        # price three times and the alias twice, in the place of each of which another three may stand
        ("SELECT price + price + price AS p FROM items ORDER BY p", 3 * 2),
        # x and items once each, in the inner query; in the outer one x twice and y once; six tokens inside
        ("SELECT x + x AS y FROM (SELECT price x FROM items)", 2 * 1 * 6),
        ("SELECT x LIKE x FROM (SELECT price x FROM items)", 2 * 1 * 6),
        ("SELECT like LIKE like FROM (SELECT price like FROM items)", 2 * 1 * 6),
        ('SELECT "a b" + [a b] FROM (SELECT price `a b` FROM items)', 2 * 1 * 6),
        ("SELECT *, t.* FROM (SELECT price x FROM items) t", 2 * 1 * 6),
        ("SELECT count(*), 2 * 3 FROM (SELECT price x FROM items)", 1 * 6),
        ("WITH q AS (SELECT 1) SELECT 1 FROM q a, q b", 3 * 1 * 3),
        ("SELECT 1 FROM (SELECT x FROM items UNION SELECT x FROM items)", 2 * 2 * 10),
    ],
)
def test_growth_is_reckoned_by_uses(sql: str, right: int) -> None:
    assert growth(cut(sql)) == right


@pytest.mark.parametrize("word", sorted(_RESERVED))
def test_what_is_held_for_no_name_is_none(word: str) -> None:
    """Else it could be used as one without being counted."""
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError):
        connection.execute(f"SELECT {word} FROM (SELECT 1 AS {word})")
    connection.close()


def test_names_that_come_to_one_are_counted_when_they_have() -> None:
    """Misspelt names of columns are mended one by one, and what they mean may be an alias."""
    uses = " + ".join(["price", "cost", "price_usd", "prices", "costs", "priice"])
    sql = "SELECT visits AS price FROM items"
    for _ in range(7):
        sql = f"SELECT {uses} AS price FROM ({sql})"
    assert growth(cut(sql)) < MOST
    with pytest.raises(Fault) as caught:
        FENCE.ask(sql, rows=1)
    assert caught.value.code == "too_large"


WORDS = st.sampled_from(
    [
        *(
            "SELECT x+x x FROM (",
            "SELECT x||x||y AS x, y FROM (",
            "SELECT * FROM (",
            ") ",
            "SELECT 1 x, 2 y",
            "WITH q AS (",
        ),
        *(
            ", ",
            "q AS (",
            "SELECT x, y FROM q a, q b",
            "SELECT x FROM q",
            " UNION ALL ",
            "WHERE x IN (y, y, x)",
            "x+x*y",
        ),
        *("(SELECT price x, visits y FROM items)", " ORDER BY x, y, x", " GROUP BY x"),
    ]
)


@given(st.lists(WORDS, min_size=2, max_size=25))
def test_what_is_let_through_compiles_in_bounded_time(words: list[str]) -> None:
    began = time.perf_counter()
    try:
        FENCE.ask(" ".join(words), rows=1)
    except Fault as fault:
        assert fault.code
    assert time.perf_counter() - began < 4
