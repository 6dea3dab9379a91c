"""The readings of reviews and of discussions, on logs made by hand: shares, changes of mind, ends, who is left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from simengine.data import Dataset, MarketSettings, load
from simengine.kernel import Version
from simengine.measure.studies import READINGS, Found
from simengine.runlog import EventLine, MessageLine

CONDITIONS = [f"{sign} {side}" for sign in ("positive", "negative") for side in ("similar", "dissimilar")]
MOMENTS = ["before", *CONDITIONS]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(MarketSettings(format="market", users=4, items=12, interests=2, interactions=4))


def decided(user: str, when: str, yes: bool) -> MessageLine:
    body = {"when": when, "yes": yes, "explanation": "why"}
    return MessageLine(f"m {when}", f"user:{user}", "item:t", "decision", body)


def case(user: str, answers: str, units: Mapping[str, str] | None = None) -> EventLine:
    """A test user's decisions before and under each condition: ``y``, ``n``, or ``-`` where one is missing."""
    said = [decided(user, when, it == "y") for when, it in zip(MOMENTS, answers, strict=True) if it != "-"]
    data = {"user": user, "item": "t", "writers": ["a", "b"]}
    return EventLine("e", "reviews.read", 1, data=data, messages=said, units=dict(units or {"decide/before": "ok"}))


def skipped(user: str, *writers: str) -> EventLine:
    return EventLine("e", "reviews.skip", 1, data={"user": user, "item": "t", "writers": list(writers)})


def written(*lengths: int, failed: int = 0) -> EventLine:
    """An event in which so many reviews of so many words were written, and others failed."""
    memories = [Version("venue:reviews/t", f"s:{at}", 1, "word " * words) for at, words in enumerate(lengths)]
    units = {f"review/{at}": "ok" for at in range(len(lengths))} | {f"review/x{at}": "empty" for at in range(failed)}
    data = {"item": "t", "writer": "a", "words": 50}
    return EventLine("e", "reviews.write", 1, data=data, memories=memories, units=units)


def found(kind: str, dataset: Dataset, *lines: EventLine, draw: Path | None = None) -> Found:
    reading = READINGS[kind](kind, dataset)
    for line in lines:
        reading.take(line)
    result = reading.found(0)
    if draw is not None:
        reading.draw(result, draw)
    return result


def values(result: Found) -> dict[tuple[str, str], float | None]:
    return {(row.group, row.metric): row.value for row in result.results}


FOUR = [case("a", "nynnn"), case("b", "nyynn"), case("c", "yyynn"), case("d", "yyyny")]


def test_shares_and_changes_of_mind(dataset: Dataset, tmp_path: Path) -> None:
    """Of four users c and d say yes before; under each condition it can be read off the columns of ``FOUR``."""
    result = found("reviews", dataset, *FOUR, draw=tmp_path / "reviews.png")
    assert values(result) == {
        ("before", "yes"): 2 / 4,
        ("positive similar", "yes"): 1,
        ("positive similar", "no->yes"): 2 / 4,
        ("positive similar", "yes->no"): 0,
        ("positive dissimilar", "yes"): 3 / 4,
        ("positive dissimilar", "no->yes"): 1 / 4,
        ("positive dissimilar", "yes->no"): 0,
        ("negative similar", "yes"): 0,
        ("negative similar", "no->yes"): 0,
        ("negative similar", "yes->no"): 2 / 4,
        ("negative dissimilar", "yes"): 1 / 4,
        ("negative dissimilar", "no->yes"): 0,
        ("negative dissimilar", "yes->no"): 1 / 4,
        ("positive similar - before", "yes"): 2 / 4,
        ("positive dissimilar - before", "yes"): 1 / 4,
        ("negative similar - before", "yes"): -2 / 4,
        ("negative dissimilar - before", "yes"): -1 / 4,
        ("positive similar - positive dissimilar", "yes"): 1 / 4,
        ("negative similar - negative dissimilar", "yes"): -1 / 4,
    }
    assert all(
        (row.stage, row.ranker, row.k, row.n, row.repeats) == ("reviews", "test users", None, 4, 1)
        for row in result.results
    )
    assert result.skipped == {} and result.notes == []
    assert (tmp_path / "reviews.png").read_bytes().startswith(b"\x89PNG")


def test_differences_are_paired(dataset: Dataset) -> None:
    """All say yes afterwards, so each user's difference is one less the decision before, also in every resample."""
    cases = [case(str(at), ("nynnn", "yyyyy")[at % 2]) for at in range(20)]
    rows = {(row.group, row.metric): row for row in found("reviews", dataset, *cases).results}
    difference, before = rows["positive similar - before", "yes"], rows["before", "yes"]
    assert difference.value == 0.5 == before.value
    assert (difference.low, difference.high) == pytest.approx((1 - before.high, 1 - before.low))
    sure = rows["positive similar", "yes"]
    assert (sure.low, sure.high) == (1, 1)


def test_who_is_left_out_is_counted_once_and_named(dataset: Dataset) -> None:
    lines = [
        *FOUR,
        skipped("e"),
        skipped("f", "a"),
        skipped("g", "a"),
        case("h", "-----", {"decide/before": "refusal"}),
        case("i", "n-nnn", {"decide/before": "ok", "decide/positive/similar": "no_review", "nearest": "ok"}),
        case("j", "n--nn", {"decide/positive/similar": "no_review", "decide/positive/dissimilar": "empty"}),
        case("k", "n----", {"decide/before": "ok", "nearest": "embedding"}),
    ]
    result = found("reviews", dataset, *lines)
    assert result.skipped == {
        "no past adopter": 1,
        "only one past adopter": 2,
        "decide/before: refusal": 1,
        "decide/positive/similar: no_review": 2,
        "nearest: embedding": 1,
    }
    assert {row.n for row in result.results} == {4}
    few, lost = result.notes
    assert (
        few.startswith("reviews: 3 of 11 test cases are left out, as fewer than two others") and "users e, f, g" in few
    )
    assert lost == "reviews: 4 of 11 test cases are left out, as a decision is missing (users h, i, j, k)"


def test_reviews_that_failed_or_are_too_long_are_told(dataset: Dataset) -> None:
    result = found("reviews", dataset, *FOUR, written(50, 51), written(3, failed=1), written(failed=2))
    assert result.notes == [
        "reviews: 3 of 6 reviews failed (empty); their readers read the others",
        "reviews: 1 of 3 reviews are longer than 50 words",
    ]


def test_without_a_contrast_there_is_nothing_to_say(dataset: Dataset) -> None:
    result = found("reviews", dataset, skipped("a"), skipped("b", "c"))
    assert result.results == [] and sum(result.skipped.values()) == 2


@pytest.mark.parametrize("kind", ["reviews", "discussion"])
def test_events_of_other_stages_are_not_taken(kind: str, dataset: Dataset) -> None:
    others = [EventLine("e", f"{kind}-2.{what}", 1, data={}) for what in ("read", "talk", "skip", "write")]
    assert found(kind, dataset, *others) == Found([])


def talk(user: str, answers: str, said: int, goodbye: bool, failed: str = "") -> EventLine:
    """A buyer's decisions, and the turns of the talk between them; the last may be a goodbye, a further one fail."""
    messages = [
        decided(user, when, it == "y") for when, it in zip(("before", "after"), answers, strict=True) if it != "-"
    ]
    for at in range(said):
        body = {"text": "word", "goodbye": goodbye and at == said - 1}
        messages.insert(1 + at, MessageLine(f"t{at}", f"user:{user}", "venue:v", "talk", body))
    units = {"decide/before": "ok", "review": "ok"} | {f"turn/{at + 1}": "ok" for at in range(said)}
    if failed:
        units[f"turn/{said + 1}"] = failed
    return EventLine("e", "discussion.talk", 1, data={"user": user, "item": "t"}, messages=messages, units=units)


def test_decisions_turns_and_ends_of_talks(dataset: Dataset, tmp_path: Path) -> None:
    lines = [
        talk("a", "ny", 3, True),
        talk("b", "yy", 8, False),
        talk("c", "yn", 1, True),
        talk("d", "n-", 2, False, "refusal"),
        EventLine("e", "discussion.skip", 1, data={"user": "f", "item": "t"}),
    ]
    result = found("discussion", dataset, *lines, draw=tmp_path / "discussion.png")
    assert values(result) == pytest.approx(
        {
            ("before", "yes"): 2 / 3,
            ("after", "yes"): 2 / 3,
            ("after", "no->yes"): 1 / 3,
            ("after", "yes->no"): 1 / 3,
            ("after - before", "yes"): 0,
            ("talks", "turns"): 14 / 4,
            ("talks", "goodbye"): 2 / 4,
            ("talks", "limit"): 1 / 4,
            ("talks", "failed"): 1 / 4,
        }
    )
    assert {(row.ranker, row.n) for row in result.results} == {("test users", 3), ("talks", 4)}
    assert result.skipped == {"no past adopter": 1, "turn/3: refusal": 1}
    assert result.notes == [
        "discussion: 1 of 5 test cases are left out, as nobody else had their item before (user f)",
        "discussion: 1 of 5 test cases are left out of the decisions, as one is missing (user d)",
    ]
    assert (tmp_path / "discussion.png").read_bytes().startswith(b"\x89PNG")


def test_a_talk_that_never_said_a_word_has_failed(dataset: Dataset, tmp_path: Path) -> None:
    result = found("discussion", dataset, talk("a", "n-", 0, False, "empty"), draw=tmp_path / "discussion.png")
    assert values(result) == {
        ("talks", "turns"): 0,
        ("talks", "goodbye"): 0,
        ("talks", "limit"): 0,
        ("talks", "failed"): 1,
    }
    assert result.skipped == {"turn/1: empty": 1}


def test_a_talk_that_could_not_begin_is_no_talk(dataset: Dataset) -> None:
    line = talk("a", "n-", 0, False)
    line.units["review"] = "refusal"
    result = found("discussion", dataset, line)
    assert result.results == [] and result.skipped == {"review: refusal": 1}
