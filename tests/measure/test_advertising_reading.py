"""The reading of advertising, on logs made by hand: shares by order, words, what is left out, and the figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine.data import Dataset, MarketSettings, load
from simengine.kernel import Version
from simengine.measure.studies import READINGS, Found
from simengine.runlog import EventLine, MessageLine


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(MarketSettings(format="market", users=4, items=12, interests=2, interactions=4))


def made(item: str, units: dict[str, str] | None = None, **texts: str) -> EventLine:
    venue = f"venue:advertising/{item}"
    written = [Version(venue, slot, 1, text) for slot, text in texts.items()]
    return EventLine(
        "e", "advertising.create", 1, data={"item": item}, memories=written, units=units or {"draft": "ok"}
    )


def judged(item: str, first: str, preferred: str) -> EventLine:
    shown = ["draft", "refined"] if first == "draft" else ["refined", "draft"]
    data = {"item": item, "user": "u", "shown": shown}
    said = [MessageLine("m1", f"venue:advertising/{item}", "user:u", "advertisement")]
    body = {"preferred": preferred, "explanation": "why"}
    said.append(MessageLine("m2", "user:u", f"venue:advertising/{item}", "verdict", body))
    return EventLine("e", "advertising.judge", 1, data=data, messages=said, units={"judge": "ok"})


def unjudged(item: str, reason: str) -> EventLine:
    data = {"item": item, "user": "u", "shown": ["draft", "refined"]}
    return EventLine("e", "advertising.judge", 1, data=data, units={"judge": reason})


def found(dataset: Dataset, *lines: EventLine, name: str = "advertising") -> Found:
    reading = READINGS["advertising"](name, dataset)
    for line in lines:
        reading.take(line)
    return reading.found(0)


LINES = (
    made("a", draft="one two", refined="one two three four"),
    made("b", draft="one two three four", refined="one two three four five six"),
    judged("a", "refined", "refined"),
    judged("a", "draft", "refined"),
    judged("a", "draft", "refined"),
    judged("a", "draft", "refined"),
    judged("b", "refined", "refined"),
    judged("b", "draft", "draft"),
)
"""All four judges of a prefer the refined version; b's two take what is shown first."""


def test_shares_are_means_over_items_of_their_judges_shares(dataset: Dataset) -> None:
    """Over judges 5 of 6 prefer the refined version; over items it is the mean of 1 and 1/2."""
    result = found(dataset, *LINES)
    values = {(row.metric, row.group): row.value for row in result.results}
    assert values == {
        ("prefers refined", "both orders"): 3 / 4,
        ("prefers refined", "refined first"): 1,
        ("prefers refined", "draft first"): 1 / 2,
        ("takes what is first", "both orders"): (1 / 4 + 1) / 2,
        ("words", "draft"): 3,
        ("words", "refined"): 5,
    }
    assert {row.n for row in result.results} == {2}
    assert "advertising: 6 judgements; n counts items, whose judges share the advertisements" in result.notes


def test_judges_of_one_item_do_not_make_it_sure(dataset: Dataset) -> None:
    """Of two items, one wins with all its twenty judges and one loses with all: that is two cases, not forty."""
    lines = [
        judged(item, "draft", preferred) for item, preferred in (("a", "refined"), ("b", "draft")) for _ in range(20)
    ]
    result = next(row for row in found(dataset, *lines).results if row.metric == "prefers refined")
    assert (result.value, result.low, result.high, result.n) == (1 / 2, 0, 1, 2)


def test_failures_are_counted_by_reason(dataset: Dataset) -> None:
    result = found(
        dataset,
        made("a", {"draft": "refusal"}),
        made("b", {"draft": "ok", "critique/personal": "no_heading", "refine": "no_suggestions"}, draft="one two"),
        unjudged("a", "no_advertisements"),
        unjudged("b", "no_advertisements"),
        unjudged("c", "unmatched"),
        judged("c", "draft", "draft"),
    )
    assert result.skipped == {"judge: no_advertisements": 2, "judge: unmatched": 1}
    assert result.notes[:3] == [
        "advertising: of 2 items, 1 failed in critique/personal: no_heading",
        "advertising: of 2 items, 1 failed in draft: refusal",
        "advertising: of 2 items, 1 failed in refine: no_suggestions",
    ]
    assert {(row.metric, row.group): row.n for row in result.results} == {
        ("prefers refined", "both orders"): 1,
        ("prefers refined", "draft first"): 1,
        ("takes what is first", "both orders"): 1,
        ("words", "draft"): 1,
    }


def test_other_events_are_nothing_to_it(dataset: Dataset) -> None:
    assert found(dataset, *LINES, name="advertising-2") == Found([])


def test_the_figure_shows_what_there_is(dataset: Dataset, tmp_path: Path) -> None:
    reading = READINGS["advertising"]("advertising", dataset)
    for number, lines in enumerate((LINES[:1], LINES[1:3], LINES[3:])):
        for line in lines:
            reading.take(line)
        reading.draw(reading.found(0), tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
