"""What a model may write to do harm, or by accident: each ends in the tracker with the right code, quickly."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time

import pytest
from interec_games import fault_of, make_shop, shop_data

from simengine.data import Item
from simengine.llm.replies import Unreadable
from simengine.methods.interec.bus import Bus, Record
from simengine.methods.interec.faults import Fault
from simengine.methods.interec.plan import execute, refuse
from simengine.methods.interec.reply import read

TEXT = "aaaaaaaaab " * 80
ITEMS = [
    Item(f"g{at}", f"Game {at}", "Action; War", extra={"description": TEXT, "price": "1"}) for at in range(1, 4001)
]
SHOP = make_shop(shop_data(ITEMS, {"u1": ("g1", "g2"), "u2": ("g2", "g3")}))
SECONDS = 3.0
"""The fence gives a query two."""

LONG_TEXT = "||".join(["description"] * 5)


def _chained(times: int, use: str) -> str:
    """Inner queries in a chain, each of which uses the one before: what they stand for grows with every link."""
    links = ", ".join(f"q{at} AS (SELECT {use.format(f'q{at - 1}')})" for at in range(1, times))
    return f"WITH q0 AS (SELECT id x FROM items), {links} SELECT x AS id FROM q{times - 1}"


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
    ("SELECT " + "-" * 3000 + "1", "too_long"),
    ("SELECT " + "-" * 1500 + "1", "comment"),
    # what is small as a text and huge when inner queries are put into outer ones, before anything runs
    (_chained(6, "+".join(["x"] * 30) + " x FROM {}"), "too_large"),
    (_chained(12, "x+x x FROM {}"), "too_large"),
    (_chained(9, 'iif("x", x, [X] + 1) x FROM {}'), "too_large"),
    (_chained(30, "a.x FROM {0} a, {0} b"), "too_large"),
    (_chained(9, " UNION ALL SELECT ".join(["x FROM {0}"] * 5)), "too_large"),
    (_chained(16, "*, * FROM {0}"), "too_large"),
    (_chained(8, "(" + " LIKE ".join(["x"] * 9) + ") x FROM {0}"), "too_large"),
    (
        f"SELECT {'+'.join(['x'] * 60)} y FROM (SELECT {'+'.join(['price'] * 60)} x FROM items) "
        f"WHERE y IN ({', '.join(['y'] * 60)})",
        "too_large",
    ),
    # much memory
    ("SELECT a.description || b.description || a.description x FROM items a, items b ORDER BY x DESC", "too_much_work"),
    (f"SELECT id, {', '.join(['x'] * 60)} FROM (SELECT id, {LONG_TEXT} x FROM candidates)", "too_large"),
    (f"SELECT id, {LONG_TEXT} x FROM candidates", "too_large"),
    ("SELECT id, group_concat(description) OVER (ORDER BY id) x FROM candidates", "too_large"),
    (
        "WITH t AS MATERIALIZED (SELECT a.description x FROM items a, items b) SELECT count(x) AS id FROM t",
        "too_much_work",
    ),
    (
        "SELECT id, sum(id) OVER (ORDER BY visits RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM items",
        "too_much_work",
    ),
    ("SELECT max(a.id + b.id + c.id) AS id FROM items a CROSS JOIN items b CROSS JOIN items c", "too_much_work"),
    ("SELECT id FROM candidates WHERE title IN (" + ", ".join(f"'zq{at}'" for at in range(180)) + ")", "too_large"),
    ("SELECT id FROM candidates WHERE tags IN (" + ", ".join(f"'zq{at}'" for at in range(180)) + ")", "too_large"),
    ("SELECT id FROM candidates WHERE " + "lower(" * 90 + "title" + ")" * 90 + " = 'game 1'", "too_large"),
    ("SELECT " + "NOT " * 400 + "1", "too_large"),
    ("SELECT " + "- " * 700 + "1", "too_large"),
    ("SELECT " + "(SELECT " * 60 + "1" + ")" * 60, "too_large"),
    ("SELECT count(*) FROM " + ", ".join(["items"] * 200), "bad_sql"),
    # more functions
    ("SELECT replace(description, 'a', description) FROM items", "forbidden_function"),
    ("SELECT printf('%.*c', 1000000000, 'x')", "forbidden_function"),
    ("SELECT format('%1000000000s', 'x')", "forbidden_function"),
    ("SELECT hex(description) FROM items", "forbidden_function"),
    ("SELECT char(0)", "forbidden_function"),
    ("SELECT quote(title) FROM items", "forbidden_function"),
    ("SELECT json_extract('{}', '$')", "forbidden_function"),
    ("SELECT id, row_number() OVER (ORDER BY title) FROM candidates", "forbidden_function"),
    ("SELECT rtreecheck('items')", "forbidden_function"),
    ("SELECT sqlite_log(1, 'x')", "forbidden_function"),
    ("SELECT total_changes()", "forbidden_function"),
    # more tables
    ("SELECT id FROM current", "forbidden_table"),
    ("SELECT id FROM temp.current", "forbidden_table"),
    ("SELECT candidates.id FROM candidates, current WHERE current.id > 0", "forbidden_table"),
    ("SELECT * FROM temp.sqlite_master", "forbidden_table"),
    ("SELECT * FROM pragma_database_list", "forbidden_table"),
    ("SELECT id FROM items INDEXED BY evil", "bad_sql"),
    ("SELECT id FROM candidates ORDER BY title COLLATE evil", "bad_sql"),
    # more without end
    (
        "WITH RECURSIVE n(x) AS (VALUES (1) UNION SELECT x + 1 FROM n LIMIT 1000000000) SELECT sum(x) FROM n",
        "recursion",
    ),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a", "bad_sql"),
    # numbers
    ("SELECT sum(9223372036854775807) AS id FROM items", "bad_sql"),
    ("SELECT abs(-9223372036854775807 - 1) AS id", "bad_sql"),
    ("SELECT id FROM candidates LIMIT 9223372036854775807 OFFSET 9223372036854775807", "no_match"),
    ("SELECT id FROM candidates LIMIT 'x'", "bad_sql"),
    ("SELECT 9e999 AS id", "no_ids"),
    ("SELECT 9e999 - 9e999 AS id", "no_ids"),
    ("SELECT 0xffffffffffffffffff AS id", "bad_sql"),
    ("SELECT 1.2.3 AS id", "bad_sql"),
    # texts and comments
    ("SELECT x'00ff' AS id", "bad_sql"),
    ("SELECT CAST(substr(CAST('é' AS BLOB), 1, 1) AS TEXT) AS id", "bad_sql"),
    ("SELECT CAST(description AS BLOB) AS id FROM items", "no_ids"),
    ("SELECT id FROM candidates WHERE title = “Game 1”", "bad_sql"),
    ("SELECT id FROM candidates WHERE title = ‘Game 1’", "bad_sql"),
    ("SELECT id FROM candidates WHERE title = ＇x＇ OR 1", "bad_sql"),
    ("SELECT\u00a0id FROM candidates", "bad_sql"),
    ("SELECT id\u200b FROM candidates", "bad_sql"),
    ("SELECT id \u202e FROM candidates", "bad_sql"),
    ("SELECT /* /* */ */ id FROM candidates", "comment"),
    ("SELECT id --\r FROM candidates", "comment"),
    ("SELECT id FROM candidates WHERE title = '/* -- ; */'", "not_found"),
    ("SELECT id FROM candidates WHERE title = '''; DROP TABLE items; --'", "not_found"),
    ("SELECT @x", "bad_sql"),
    ("SELECT $x", "bad_sql"),
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


def steps(*steps: object) -> str:
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
    ('{"steps": [{"tool": "fetch", "input": ' + "[" * 500 + "]" * 500 + "}]}", "unreadable"),
    ('{"steps": [{"tool": ' + "[" * 99 + "]" * 99 + "}]}", "unreadable"),
    ('{"steps": [{"tool": ' + "[" * 90 + "]" * 90 + "}]}", "unknown_tool"),
    ('{"\\ud800": 1, "\\ud800": 2, "steps": []}', "unreadable"),
    (steps({"tool": "shell", "input": "rm -rf *"}), "unknown_tool"),
    (steps({"tool": "__import__('os').system('true')", "input": {}}), "unknown_tool"),
    (steps({"tool": "fеtch", "input": {}}), "unknown_tool"),  # with a Cyrillic letter
    (steps({"tool": ["fetch"], "input": {}}), "unknown_tool"),
    (steps({"tool": None}), "unknown_tool"),
    (steps("fetch"), "unknown_tool"),
    (steps({"input": {"n": 5}}), "unknown_tool"),
    (steps({"tool": "fetch", "input": {"n": "5"}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": True}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": 5.5}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": -1}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": 10**9}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": float("nan")}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": 10**4000}}), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": float("inf")}}), "wrong_input"),
    (steps({"tool": "look_up", "input": {"sql": "SELECT " + "1, " * 300_000 + "1"}}), "too_long"),
    (steps({"tool": "rank", "input": {"\ud800": 1}}), "wrong_input"),
    (steps(_titles("x" * 1_000_000)), "wrong_input"),
    (steps({"tool": "fetch", "input": {"n": 5, "also": "x"}}), "wrong_input"),
    (steps({"tool": "look_up", "input": {"sql": ["SELECT 1"]}}), "wrong_input"),
    (steps({"tool": "look_up", "input": {}}), "wrong_input"),
    (steps({"tool": "rank", "input": {"by": "magic"}}), "wrong_input"),
    (steps({"tool": "rank", "input": {"liked": "Game 1"}}), "wrong_input"),
    (steps({"tool": "store", "input": {"titles": []}}), "wrong_input"),
    (steps(_titles(1, 2)), "wrong_input"),
    (steps(_titles(*["x"] * 51)), "wrong_input"),
    (steps(_titles("x" * 301)), "wrong_input"),
    (steps(_titles("\ud800")), "wrong_input"),
    (steps(*[{"tool": "fetch"}] * 11), "too_many_steps"),
    (steps(*[{"tool": "rank"}] * 10_000), "too_many_steps"),
    (steps(_titles("$2.title"), _LOOK), "later_reference"),
    (
        steps({"tool": "hard_filter", "input": "SELECT id FROM candidates WHERE title = $2.title"}, _LOOK),
        "later_reference",
    ),
    (steps(_titles("$1.title")), "cycle"),
    (steps(_look("$2.title"), _look("$1.title")), "cycle"),
    (steps(_look("$2.title"), _look("'$3.title'"), _look("$1.title")), "cycle"),
    (steps(_titles("$0.title")), "unknown_reference"),
    (steps(_titles("$7.title")), "unknown_reference"),
    (steps({"tool": "rank"}, _titles("$1.title")), "unknown_reference"),
    (steps(_LOOK, {"tool": "soft_filter", "input": ["$1.price"]}), "unknown_reference"),
    (steps(_LOOK, _LOOK, {"tool": "look_up", "input": "SELECT $1.title; DROP TABLE items"}), "several_statements"),
    (steps(_titles("Game 4001", "'; DROP TABLE items; --")), "not_found"),
    (steps({"tool": "soft_filter", "input": ["Game 0"]}), "not_found"),
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
    _ends_in(steps({"tool": "hard_filter", "input": {"sql": sql}}), code)


@pytest.mark.parametrize(("reply", "code"), PLANS)
def test_a_hostile_plan_ends_in_the_tracker(reply: str, code: str) -> None:
    _ends_in(reply, code)


def test_what_a_query_sorts_takes_no_memory() -> None:
    """Sixty thousand rows of two thousand characters, in a process of their own, whose memory is measured."""
    program = """
import resource
from test_interec_hostile import SHOP, _carried_out, steps
sql = "SELECT a.description || b.description || a.description x FROM items a, items b ORDER BY x DESC"
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_carried_out(steps({"tool": "look_up", "input": {"sql": sql}}))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) < 40


def test_one_instruction_that_takes_long_is_stopped_soon() -> None:
    """A set of thousands of characters to trim by, none of which is in the text until the last."""
    trims = "+".join(f"length(trim(x, s || '{at}ab '))" for at in range(9))
    signs = "".join(map(chr, range(0x100, 0x100 + 350)))
    sql = f"SELECT sum({trims}) AS id FROM (SELECT {LONG_TEXT} x, '{signs}' s FROM items)"
    _ends_in(steps({"tool": "hard_filter", "input": {"sql": sql}}), "too_slow")


def test_after_all_that_the_tools_still_work() -> None:
    _, records = _carried_out(steps(_LOOK, {"tool": "store", "input": ["Game 1", "Game 4000"]}, {"tool": "fetch"}))
    assert [record.code for record in records] == ["", "", ""]
