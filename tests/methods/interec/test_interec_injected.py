"""Titles of the data that look like SQL, like templates or like references: each is a text wherever a plan puts it."""

from __future__ import annotations

import random

import pytest
from interec_games import make_shop, shop_data
from test_interec_hostile import steps

from simengine.data import Item
from simengine.methods.interec.bus import Bus
from simengine.methods.interec.plan import execute
from simengine.methods.interec.reply import read


def _look_and(tool: str, given: object) -> str:
    """A plan that looks titles up and uses what it found."""
    return steps(
        {"tool": "look_up", "input": {"sql": "SELECT title, price FROM items"}}, {"tool": tool, "input": given}
    )


ODD = (
    "'; DROP TABLE items; --",
    "' OR 1 = 1 --",
    'x" OR "1" = "1',
    "x') UNION SELECT sql FROM sqlite_master --",
    "`; DELETE FROM items",
    "%",
    "{{ 7 * 7 }}",
    "${1}.title",
    "one\\",
    "O'Brien''s",
    "two -- /* comment",
)


@pytest.mark.parametrize("title", ODD)
def test_what_a_title_says_is_never_carried_out(title: str) -> None:
    """A title of the data that is put in the place of a reference is a text, whatever it holds."""
    shop = make_shop(shop_data([Item("g1", title, "Action", extra={"price": "1"}), Item("g2", "Quiet", "Action")], {}))
    sql = "SELECT id FROM candidates WHERE title IN ($1.title) AND title <> 'Quiet'"
    for reply in (_look_and("hard_filter", sql), _look_and("store", ["$1.title"])):
        bus = Bus(len(shop.table))
        records = execute(read(reply), bus, shop, random.Random(1))
        assert [record.code for record in records] == ["", "", ""]
        assert records[1].after == (1 if records[1].tool == "hard_filter" else 2)
        assert shop.fence.image() == shop.table.image


def test_a_title_that_looks_like_a_reference_stands_for_nothing() -> None:
    shop = make_shop(shop_data([Item("g1", "$2.title", "Action"), Item("g2", "Quiet", "Action")], {}))
    bus = Bus(len(shop.table))
    look = {"tool": "look_up", "input": {"sql": "SELECT title FROM items"}}
    use = {"tool": "look_up", "input": {"sql": "SELECT id FROM items WHERE title = ($1.title)"}}
    execute(read(steps(look, use)), bus, shop, random.Random(1))
    assert [record.code for record in bus.records] == ["", "unknown_reference"]
