"""Titles and the item table: what a person would read, and what is kept as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine.data.atomic import read_table
from simengine.data.items import make_items, readable, usual_columns
from simengine.errors import InputError


def items_in(path: Path, noun: str = "item"):
    table = read_table(path, numeric=False)
    return make_items(table, usual_columns(table), noun)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Tom Petty &amp; The Heartbreakers: Greatest Hits", "Tom Petty & The Heartbreakers: Greatest Hits"),
        ('Tom &amp; Jerry <span id="x">&#39;92</span>', "Tom & Jerry '92"),
        ("Honky Ch&acirc;teau", "Honky Château"),
        ("Best&lrm; of&nbsp;&nbsp;1", "Best of 1"),
        ("R&B; Soul", "R&B; Soul"),
        ("R&amp;B &amp;amp;", "R&B &amp;"),
        ("Rock &parade &copy", "Rock &parade &copy"),
        ("I <3 you; 1 < 2 > 0", "I <3 you; 1 < 2 > 0"),
        ("&lt;b&gt; as a title", "<b> as a title"),
        ("<b>Bold</b>ly<br/>gone", "Boldly gone"),
        ('<span id="parentalAdvisory" class="a-size-medium a-color-secondary a-text-normal"', ""),
        ('Jimi Hendrix,Axis: Bold As Love Mini Lp Cd" />', "Jimi Hendrix,Axis: Bold As Love Mini Lp Cd"),
        ('7" Singles', '7" Singles'),
        ("&#x1F3B5; &#0; &bogus;", "\U0001f3b5 \ufffd &bogus;"),
    ],
)
def test_readable(raw, text):
    assert readable(raw) == text


def test_items_stand_in_natural_order_and_keep_what_was_written(write):
    header = "item_id:token|movie_title:token_seq|price:float|class:token_seq\n"
    folder = write({"x.item": header + "10|A &amp; B|9.990|Pop\n9||x|Rock\n"})
    items, notes = items_in(folder / "x.item", "CD")
    assert list(items) == ["9", "10"]
    assert (items["10"].title, items["10"].raw_title, items["10"].category) == ("A & B", "A &amp; B", "Pop")
    assert dict(items["10"].extra) == {"price": "9.990"}
    assert items["9"].title == "Untitled CD 9"
    assert notes == ("1 items have no readable title; they are called 'Untitled CD <id>'",)


def test_an_item_listed_twice_is_an_error(write):
    path = write({"x.item": "item_id:token|title:token_seq\n1|A\n2|B\n1|C\n"}) / "x.item"
    with pytest.raises(InputError, match="item 1 is listed twice") as caught:
        items_in(path)
    assert caught.value.where["line"] == 4


def test_a_table_without_titles_is_an_error(write):
    path = write({"x.item": "item_id:token|price:float\n1|2\n"}) / "x.item"
    with pytest.raises(InputError, match="no field title; the fields are item_id, price"):
        items_in(path)


@pytest.mark.parametrize(("name", "broken"), [("agentcf-cds-dense", 4), ("agentcf-cds-sparse", 22)])
def test_real_titles(real_data: Path, name, broken):
    # The counts of broken span titles are those of the data's own description.
    items, _ = items_in(real_data / name / "CDs.item", "CD")
    assert sum(item.title.startswith("Untitled CD ") for item in items.values()) == broken
    assert not [item for item in items.values() if "&amp;" in item.title or "<" in item.title or "/>" in item.title]
