"""What a model may write to do harm, or by accident: each ends in the tracker with the right code, quickly."""

from __future__ import annotations

import json
import random
import time

import pytest
from interec_games import make_shop, shop_data

from simengine.data import Item
from simengine.llm.replies import Unreadable
from simengine.methods.interec.bus import Bus, Record
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.plan import execute, refuse
from simengine.methods.interec.reply import fault_of, read

TEXT = "aaaaaaaaab " * 80
ITEMS = [
    Item(f"g{at}", f"Game {at}", "Action; War", extra={"description": TEXT, "price": "1"}) for at in range(1, 4001)
]
SHOP = make_shop(shop_data(ITEMS, {"u1": ("g1", "g2"), "u2": ("g2", "g3")}))
SECONDS = 3.0
"""The fence gives a query two."""

QUERIES = [
    # statements that are no reading
    ("DROP TABLE items", "forbidden_statement"),
    ("drop table if exists items", "forbidden_statement"),
    ("DELETE FROM items", "forbidden_statement"),
    ("UPDATE items SET price = 0", "forbidden_statement"),
    ("INSERT INTO items (id, title) VALUES (9999, 'x')", "forbidden_statement"),
    ("REPLACE INTO items (id, title) VALUES (1, 'x')", "forbidden_statement"),
    ("CREATE TABLE t (x)", "forbidden_statement"),
    ("CREATE TEMP TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items END", "forbidden_statement"),
    ("ALTER TABLE items RENAME TO stuff", "forbidden_statement"),
    ("ATTACH DATABASE 'other.db' AS other", "forbidden_statement"),
    ("DETACH DATABASE main", "forbidden_statement"),
    ("PRAGMA writable_schema = ON", "forbidden_statement"),
    ("PRAGMA table_info(items)", "forbidden_statement"),
    ("VACUUM INTO 'copy.db'", "forbidden_statement"),
    ("REINDEX", "forbidden_statement"),
    ("BEGIN EXCLUSIVE", "forbidden_statement"),
    ("EXPLAIN SELECT id FROM items", "forbidden_statement"),
    ("VALUES (1)", "forbidden_statement"),
    ("(SELECT id FROM items)", "forbidden_statement"),
    ("WITH t AS (SELECT 1) DELETE FROM items", "forbidden_statement"),
    ("WITH t AS (SELECT 1) INSERT INTO items (id, title) SELECT 9999, 'x'", "forbidden_statement"),
    ("import os", "forbidden_statement"),
    ("__import__('os').system('true')", "forbidden_statement"),
    # several statements, comments, quotes
    ("SELECT id FROM candidates; DROP TABLE items", "several_statements"),
    ("SELECT id FROM candidates; SELECT 1", "several_statements"),
    ("; DELETE FROM items", "several_statements"),
    ("SELECT id FROM candidates WHERE title = 'x'; DROP TABLE items; --'", "comment"),
    ("SELECT id FROM candidates -- WHERE price > 1", "comment"),
    ("SELECT id FROM candidates /* ; DROP TABLE items */", "comment"),
    ("SEL/**/ECT id FROM candidates", "comment"),
    ("/*!50000 DROP TABLE items */", "comment"),
    ("SELECT id FROM candidates WHERE title = 'open", "bad_sql"),
    ('SELECT id FROM candidates WHERE title = "open', "bad_sql"),
    ("SELECT id FROM candidates WHERE title = 'a\0b'", "bad_sql"),
    ("SELECT id FROM candidates WHERE title = '\ud800'", "wrong_input"),
    ("", "wrong_input"),
    (" ;; ", "empty"),
    # other tables
    ("SELECT name FROM sqlite_master", "forbidden_table"),
    ("SELECT count(*) FROM sqlite_schema", "forbidden_table"),
    ("SELECT sql FROM sqlite_temp_master", "forbidden_table"),
    ("SELECT id FROM candidates UNION SELECT sql FROM sqlite_master", "forbidden_table"),
    ("SELECT id FROM candidates WHERE title IN (SELECT name FROM main.sqlite_master)", "forbidden_table"),
    ("SELECT name FROM pragma_table_info('items')", "forbidden_table"),
    ("SELECT * FROM pragma_database_list", "forbidden_table"),
    ("SELECT value FROM json_each('[1, 2]')", "forbidden_table"),
    ("SELECT * FROM sqlite_stmt", "forbidden_table"),
    ("SELECT count(*) FROM sqlite_stmt", "forbidden_table"),
    ("SELECT count(*) FROM json_each('[1, 2]')", "forbidden_table"),
    ("SELECT count(*) FROM pragma_function_list", "forbidden_table"),
    (
        "SELECT count(*) FROM sqlite_schema WHERE 1 IN (WITH sqlite_schema AS (SELECT 1) SELECT * FROM sqlite_schema)",
        "forbidden_table",
    ),
    ("SELECT * FROM users", "not_found"),
    ("SELECT * FROM other.items", "not_found"),
    # functions
    ("SELECT load_extension('evil.so')", "forbidden_function"),
    ("SELECT readfile('secrets.txt')", "forbidden_function"),
    ("SELECT writefile('x', 'y')", "forbidden_function"),
    ("SELECT edit('x')", "forbidden_function"),
    ("SELECT id FROM candidates ORDER BY random()", "forbidden_function"),
    ("SELECT hex(randomblob(1000000000))", "forbidden_function"),
    ("SELECT zeroblob(1000000000)", "forbidden_function"),
    ("SELECT printf('%1000000000d', 1)", "forbidden_function"),
    ("SELECT strftime('%s', 'now')", "forbidden_function"),
    ("SELECT id FROM candidates WHERE title < CURRENT_DATE", "forbidden_function"),
    ("SELECT sqlite_version()", "forbidden_function"),
    ("SELECT fts3_tokenizer('simple')", "forbidden_function"),
    # without end
    ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id FROM n", "recursion"),
    ("WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n", "recursion"),
    ("SELECT count(*) FROM items a, items b, items c, items d", "too_much_work"),
    ("SELECT a.id FROM items a JOIN items b ON instr(a.description, b.description || 'c')", "too_much_work"),
    ("SELECT a.id FROM items a JOIN items b ON a.description LIKE '%' || b.description || '%'", "too_large"),
    ("SELECT a.description || b.description FROM items a, items b ORDER BY 1", "too_much_work"),
    ("SELECT id FROM items WHERE (SELECT count(*) FROM items i WHERE i.price <= items.price) > 1", "too_much_work"),
    ("SELECT group_concat(description) FROM items", "too_large"),
    ("SELECT id FROM items WHERE description LIKE '" + "%a" * 150 + "%b'", "too_large"),
    ("SELECT id FROM items WHERE " + "(" * 500 + "1" + ")" * 500, "too_large"),
    ("SELECT " + ", ".join(["id"] * 100) + " FROM items", "too_large"),
    ("SELECT " + " UNION SELECT ".join(["1"] * 20), "too_large"),
    ("SELECT count(*) FROM " + ", ".join(f"items t{at}" for at in range(60)), "too_much_work"),
    ("WITH t AS (UPDATE items SET price = 0 RETURNING id) SELECT id FROM t", "bad_sql"),
    ("WITH t AS (SELECT 1) UPDATE items SET price = 0", "forbidden_statement"),
    ("SELECT id FROM items WHERE title = '" + "x" * 5000 + "'", "too_long"),
    ("SELECT id FROM candidates WHERE id = " + "9" * 1500, "no_match"),
    ("SELECT " + "-" * 3000 + "1", "comment"),
    # letters that look alike, signs that are no SQL
    ("SELECT іd FROM candidates", "bad_sql"),
    ("SELECT id FROM іtems", "bad_sql"),
    ("ＤＲＯＰ TABLE items", "bad_sql"),
    ("DRОP TABLE items", "bad_sql"),
    ("SELECT id FROM candidates； DROP TABLE items", "bad_sql"),
    ("SELECT id FROM candidates WHERE title = ’x’", "bad_sql"),
    ("SELECT `іd` FROM candidates", "not_found"),
    ("SELECT id FROM candidates WHERE id = ?", "bad_sql"),
    ("SELECT id FROM candidates WHERE id = :name", "bad_sql"),
    ("SELECT id FROM candidates WHERE id = {{ 7 * 7 }}", "bad_sql"),
    ("SELECT id FROM candidates WHERE title = 'Game 4001'", "not_found"),
    ("SELECT title FROM candidates", "no_ids"),
]

_LOOK = {"tool": "look_up", "input": {"sql": "SELECT title FROM items LIMIT 1"}}


def _steps(*steps: object) -> str:
    return json.dumps({"thought": "", "steps": steps})


def _titles(*titles: object) -> dict[str, object]:
    return {"tool": "store", "input": {"titles": titles}}


def _look(column: str) -> dict[str, object]:
    return {"tool": "look_up", "input": {"sql": f"SELECT title FROM items WHERE title IN ({column})"}}


PLANS = [
    ("", "unreadable"),
    ("I would rather not.", "unreadable"),
    ('{"thought": "only"}', "unreadable"),
    ('{"steps": "rank, then fetch"}', "unreadable"),
    ('{"steps": [{"tool": "fetch", "input": {"n": 5', "unreadable"),
    ('{"steps": [{"tool": "fetch", "input": {n: 5}}]}', "unreadable"),
    ('{"steps": [{"tool": "fetch"}]} {"steps": [{"tool": "rank"}]}', "unreadable"),
    ('{"steps": [], "steps": [{"tool": "fetch"}]}', "unreadable"),
    ('{"steps": [{"tool": "fetch", "input": {"n": ' + "9" * 5000 + "}}]}", "unreadable"),
    ('{"steps": ' + "[" * 100_000, "unreadable"),
    ('{"a": ' * 50_000, "unreadable"),
    (_steps({"tool": "shell", "input": "rm -rf *"}), "unknown_tool"),
    (_steps({"tool": "__import__('os').system('true')", "input": {}}), "unknown_tool"),
    (_steps({"tool": "fеtch", "input": {}}), "unknown_tool"),  # with a Cyrillic letter
    (_steps({"tool": ["fetch"], "input": {}}), "unknown_tool"),
    (_steps({"tool": None}), "unknown_tool"),
    (_steps("fetch"), "unknown_tool"),
    (_steps({"input": {"n": 5}}), "unknown_tool"),
    (_steps({"tool": "fetch", "input": {"n": "5"}}), "wrong_input"),
    (_steps({"tool": "fetch", "input": {"n": True}}), "wrong_input"),
    (_steps({"tool": "fetch", "input": {"n": 5.5}}), "wrong_input"),
    (_steps({"tool": "fetch", "input": {"n": -1}}), "wrong_input"),
    (_steps({"tool": "fetch", "input": {"n": 10**9}}), "wrong_input"),
    (_steps({"tool": "fetch", "input": {"n": float("nan")}}), "wrong_input"),
    (_steps({"tool": "fetch", "input": {"n": 5, "also": "x"}}), "wrong_input"),
    (_steps({"tool": "look_up", "input": {"sql": ["SELECT 1"]}}), "wrong_input"),
    (_steps({"tool": "look_up", "input": {}}), "wrong_input"),
    (_steps({"tool": "rank", "input": {"by": "magic"}}), "wrong_input"),
    (_steps({"tool": "rank", "input": {"liked": "Game 1"}}), "wrong_input"),
    (_steps({"tool": "store", "input": {"titles": []}}), "wrong_input"),
    (_steps(_titles(1, 2)), "wrong_input"),
    (_steps(_titles(*["x"] * 51)), "wrong_input"),
    (_steps(_titles("x" * 301)), "wrong_input"),
    (_steps(_titles("\ud800")), "wrong_input"),
    (_steps(*[{"tool": "fetch"}] * 11), "too_many_steps"),
    (_steps(*[{"tool": "rank"}] * 10_000), "too_many_steps"),
    (_steps(_titles("$2.title"), _LOOK), "later_reference"),
    (
        _steps({"tool": "hard_filter", "input": "SELECT id FROM candidates WHERE title = $2.title"}, _LOOK),
        "later_reference",
    ),
    (_steps(_titles("$1.title")), "cycle"),
    (_steps(_look("$2.title"), _look("$1.title")), "cycle"),
    (_steps(_look("$2.title"), _look("'$3.title'"), _look("$1.title")), "cycle"),
    (_steps(_titles("$0.title")), "unknown_reference"),
    (_steps(_titles("$7.title")), "unknown_reference"),
    (_steps({"tool": "rank"}, _titles("$1.title")), "unknown_reference"),
    (_steps(_LOOK, {"tool": "soft_filter", "input": ["$1.price"]}), "unknown_reference"),
    (_steps(_LOOK, _LOOK, {"tool": "look_up", "input": "SELECT $1.title; DROP TABLE items"}), "several_statements"),
    (_steps(_titles("Game 4001", "'; DROP TABLE items; --")), "not_found"),
    (_steps({"tool": "soft_filter", "input": ["Game 0"]}), "not_found"),
]


def _carried_out(reply: str) -> tuple[Bus, tuple[Record, ...]]:
    bus = Bus(len(SHOP.table))
    try:
        return bus, execute(read(reply), bus, SHOP, random.Random(1))
    except (Unreadable, Fault) as error:
        return bus, (refuse(reply, fault_of(error), bus),)


def _ends_in(reply: str, code: str) -> None:
    began = time.perf_counter()
    bus, records = _carried_out(reply)
    assert time.perf_counter() - began < SECONDS
    assert code in [record.code for record in records]
    failed = next(record for record in records if record.code)
    assert failed.output
    assert (failed.before, failed.after, failed.result) == (4000, 4000, None)
    assert bus.records == records
    assert SHOP.fence.image() == SHOP.table.image


@pytest.mark.parametrize(("sql", "code"), QUERIES)
def test_a_hostile_query_ends_in_the_tracker(sql: str, code: str) -> None:
    _ends_in(_steps({"tool": "hard_filter", "input": {"sql": sql}}), code)


@pytest.mark.parametrize(("reply", "code"), PLANS)
def test_a_hostile_plan_ends_in_the_tracker(reply: str, code: str) -> None:
    _ends_in(reply, code)


def test_after_all_that_the_tools_still_work() -> None:
    _, records = _carried_out(_steps(_LOOK, {"tool": "store", "input": ["Game 1", "Game 4000"]}, {"tool": "fetch"}))
    assert [record.code for record in records] == ["", "", ""]
