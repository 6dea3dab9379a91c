"""A walk along causes: what led to a record, what hangs on it, and how a phrase got into a memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from histories import HEADER, PROVENANCE, write

from simengine.errors import InputError, LogError
from simengine.kernel import Committed, Event, Note, Version
from simengine.runlog import Writer
from simengine.runlog.origins import Origin, find_origins
from simengine.runlog.texts import Change, Phrase, find_changes, find_phrases, holds, keeps
from simengine.runlog.trace import Cause, Record, Trace
from simengine.world import Edge, Message

Says = tuple[str, str, str, Any, list[str]]
Keeps = tuple[str, str, int, Any, list[str]]


def committed(name: str, says: list[Says] = [], keeps: list[Keeps] = [], parent: str | None = None) -> Committed:  # noqa: B006
    """An event: messages as sender, recipient, kind, body, causes; versions as agent, slot, number, value, causes."""
    event = Event(id=name, kind="event", order=(0,), time=1, parent=parent, facts=(Edge("user:1", "item:1", "seen"),))
    notes = [Note(f"{name}#.{at}", Message(*said[:4]), said[4]) for at, said in enumerate(says)]
    return Committed(event, [Version(*kept[:4], "unit", kept[4]) for kept in keeps], notes, [], [], [])


def log(path: Path, *records: Committed) -> Path:
    writer = Writer(path, HEADER, PROVENANCE)
    for record in records:
        writer.commit(record)
    writer.end()
    writer.close()
    return path


STORY = (
    committed(
        "e1",
        [("item:1", "user:1", "description", None, ["item:1/about@0"])],
        [("user:1", "short", 1, "I like: Brass; dusk tempo.\nI dislike: Techno.", ["user:1/short@0", "e1#.0"])],
    ),
    committed(
        "e2",
        [("user:1", "item:2", "choice", "It is no techno.", ["user:1/short@1"])],
        [
            ("user:1", "short", 2, "I like: Techno; dusk tempo.", ["e2#.0", "user:1/short@1", "item:2/about@0"]),
            ("item:2", "about", 1, "Two: techno. It suits people who like: dusk tempo.", ["e2#.0", "user:1/short@1"]),
        ],
    ),
    committed(
        "e3",
        [("user:1", "user:2", "talk", "Try something with DUSK TEMPO!", ["user:1/short@2"])],
        [("user:2", "short", 1, "I like: Dusk tempo; harps.", ["e3#.0", "item:2/about@1"])],
    ),
    committed("e3>.0", [], [("user:2", "long", 1, "We talked.", [])], parent="e3"),
    committed("e4", [("user:3", "venue:1", "ranking", {"order": ["2", "1"]}, ["user:2/long@1"])]),
)


def initial(agent: str) -> Mapping[str, Any]:
    firsts = {"item:1": {"about": "One: brass, dusk tempo"}, "item:2": {"about": "Two: techno"}}
    return firsts.get(agent, {"short": "I like all."} if agent.startswith("user") else {})


@pytest.fixture
def story(tmp_path: Path) -> Trace:
    return Trace(log(tmp_path / "events.jsonl", *STORY), initial)


# -- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("I like: Brass; dusk tempo.\nI dislike: fog.", ["I like|Brass", "I like|dusk tempo", "I dislike|fog"]),
        ("I love J. S. Bach. I hate noise! Do I?", ["|I love J. S. Bach", "|I hate noise!", "|Do I?"]),
        ('He said "go." Then he went.', ['|He said "go."', "|Then he went"]),
        ('"Fog" is an album filed under: jazz; blues.', ['|"Fog" is an album filed under: jazz', "|blues"]),
        ("Rated 4.5 of 5; twice; twice", ["|Rated 4.5 of 5", "|twice"]),
        ("- \n;;  ...", []),
        ("", []),
    ],
)
def test_phrases_are_sentences_and_entries_of_lists(text: str, phrases: list[str]) -> None:
    assert [f"{found.label}|{found.text}" for found in find_phrases(text)] == phrases


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("I like DUSK  tempo!", "dusk tempo", True),
        ("dusk\ntempo", "dusk tempo", True),
        ("tempo dusk", "dusk tempo", False),
        ("dusky tempo", "dusk tempo", False),
        ("rock'n'roll", "rock", False),
        ("", "dusk", False),
    ],
)
def test_a_text_holds_a_phrase_where_its_words_stand_side_by_side(text: str, phrase: str, held: bool) -> None:
    assert holds(text, phrase) is held


def test_a_phrase_is_kept_only_under_its_label() -> None:
    text = "I like: jazz.\nI dislike: techno."
    assert keeps(text, Phrase("I like", "jazz"))
    assert not keeps(text, Phrase("I like", "techno"))
    assert keeps(text, Phrase("", "techno"))


def test_changes_give_both_texts_back() -> None:
    old, new = "I like jazz and fog horns", "I like brass and fog horns too"
    changes = find_changes(old, new)
    assert changes == [
        Change("=", "I like"),
        Change("-", "jazz"),
        Change("+", "brass"),
        Change("=", "and fog horns"),
        Change("+", "too"),
    ]
    assert " ".join(text for sign, text in changes if sign != "+") == old
    assert " ".join(text for sign, text in changes if sign != "-") == new


# -- the index --------------------------------------------------------------------------------------------------------


def test_events_are_read_from_disk_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, 40)
    trace = Trace(path)
    events = list(trace)
    assert len(trace) == len(events) == 80  # each of the 40 rows has a child
    assert [trace.event(line.event) for line in events] == events
    assert [trace.position(line.event) for line in events] == list(range(80))


def test_the_index_holds_no_texts(tmp_path: Path) -> None:
    text = "word " * 100_000
    records = [committed(f"e{n}", [], [("user:1", "short", n, text, [])]) for n in range(1, 21)]
    path = log(tmp_path / "events.jsonl", *records)
    tracemalloc.start()
    trace = Trace(path)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 20 * len(text)
    assert held < len(text)
    assert trace.record("user:1/short@20").text == text


def test_an_agents_memories_come_in_order_its_first_ones_before(story: Trace) -> None:
    names = [memory.name for memory in story.memories("user:1")]
    assert names == ["user:1/short@0", "user:1/short@1", "user:1/short@2"]
    first, second, _ = story.memories("user:1")
    assert (first.text, first.event, first.known) == ("I like all.", None, True)
    assert (second.event, second.time, second.unit, second.because) == ("e1", 1, "unit", ("user:1/short@0", "e1#.0"))
    assert story.before(second) == first
    assert story.before(first) is None
    assert [memory.name for memory in story.memories("venue:1")] == []


def test_what_nobody_could_say_is_not_known(tmp_path: Path) -> None:
    trace = Trace(log(tmp_path / "events.jsonl", *STORY))
    first = trace.record("user:1/short@0")
    assert first == Record("user:1/short@0", "user:1", slot="short", known=False)
    assert trace.before(trace.record("user:1/short@1")) is None
    assert [memory.name for memory in trace.memories("user:1")] == ["user:1/short@1", "user:1/short@2"]


def test_ids_may_hold_the_marks_that_names_are_made_with(tmp_path: Path) -> None:
    agent, event = "user:a/b@7#c", "rank/a#b/1"
    says = [(agent, "item:1", "choice", "hm", [])]
    trace = Trace(log(tmp_path / "events.jsonl", committed(event, says, [(agent, "x/y", 1, "text", [])])), initial)
    assert trace.record(f"{event}#.0").text == "hm"
    assert trace.record(f"{agent}/x/y@1").text == "text"
    assert trace.record(f"{agent}/short@0").text == "I like all."


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda trace: trace.event("e5"), "no event e5\n  Nearest: e"),
        (lambda trace: list(trace.memories("usr:1")), "no agent usr:1\n  Nearest: user:1"),
        (lambda trace: trace.record("user:1/shrt@2"), "version user:1/shrt@2\n  Nearest: user:1/short@2"),
        (lambda trace: trace.record("user:1/short@3"), "version user:1/short@3\n  Nearest: user:1/short@2"),
        (lambda trace: trace.record("item:9/about@0"), "version item:9/about@0"),
        (lambda trace: trace.record("item:2/abut@0"), "version item:2/abut@0"),
        (lambda trace: trace.record("e2#.1"), "version e2#.1\n  Nearest: e2#.0"),
        (lambda trace: list(trace.cone("e2#.1")), "version e2#.1"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_ones(story: Trace, ask: Any, problem: str) -> None:
    with pytest.raises(InputError) as error:
        ask(story)
    assert problem in str(error.value)


def test_an_unfinished_log_is_traced_as_far_as_it_goes(tmp_path: Path) -> None:
    path = log(tmp_path / "events.jsonl", *STORY)
    path.write_bytes(path.read_bytes()[:-200])
    trace = Trace(path)
    assert not trace.finished
    assert len(trace) == 4


def test_versions_that_do_not_follow_one_another_are_told(tmp_path: Path) -> None:
    path = log(tmp_path / "events.jsonl", committed("e1", [], [("user:1", "short", 2, "text", [])]))
    with pytest.raises(LogError, match="memory user:1/short@2: this memory version follows on number 0"):
        Trace(path)


# -- causes and cones -------------------------------------------------------------------------------------------------


def outline(cause: Cause) -> Any:
    name = cause.record.name + ("*" if cause.again else "")
    return {name: [outline(child) for child in cause.causes]} if cause.causes else name


def test_the_causes_of_a_record_go_back_to_memories_each_told_once(story: Trace) -> None:
    assert outline(story.causes("user:1/short@2")) == {
        "user:1/short@2": [{"e2#.0": ["user:1/short@1*"]}, "user:1/short@1", "item:2/about@0"]
    }
    assert outline(story.causes("e3#.0")) == {"e3#.0": ["user:1/short@2"]}
    assert outline(story.causes("user:1/short@0")) == "user:1/short@0"


# The child hangs on all that its event has done, and e4 goes by the child's memory.
BEHIND_E3 = [("e3>.0", "user:2/long@1"), ("e4", "e4#.0")]
BEHIND_E2 = [("e3", "e3#.0", "user:2/short@1"), *BEHIND_E3]


@pytest.mark.parametrize(
    ("name", "dependants"),
    [
        ("e1", [("e2", "e2#.0", "user:1/short@2", "item:2/about@1"), *BEHIND_E2]),
        ("e2#.0", [("e2", "user:1/short@2", "item:2/about@1"), *BEHIND_E2]),
        ("item:2/about@0", [("e2", "user:1/short@2"), *BEHIND_E2]),
        ("item:2/about@1", [("e3", "user:2/short@1"), *BEHIND_E3]),
        ("e3", BEHIND_E3),
        ("user:2/long@1", [("e4", "e4#.0")]),
        ("e4", []),
    ],
)
def test_a_cone_holds_what_was_reached_along_causes(story: Trace, name: str, dependants: list[tuple[str, ...]]) -> None:
    assert [(found.event, *found.records) for found in story.cone(name)] == dependants


# -- origins ----------------------------------------------------------------------------------------------------------


def by_phrase(trace: Trace, name: str) -> dict[str, Origin]:
    return {f"{origin.label}: {origin.phrase}": origin for origin in find_origins(trace, name)}


def test_a_phrase_is_traced_to_the_first_memory_that_held_it_through_what_only_showed_it(story: Trace) -> None:
    origin = by_phrase(story, "user:1/short@2")["I like: dusk tempo"]
    assert origin.path == ("item:1/about@0", "e1#.0", "user:1/short@1", "user:1/short@2")
    assert (origin.source, origin.since, origin.unknown) == ("item:1/about@0", "user:1/short@1", ())


def test_what_was_disliked_and_now_is_liked_came_from_others_not_from_the_dislike(story: Trace) -> None:
    origin = by_phrase(story, "user:1/short@2")["I like: Techno"]
    assert origin.path == ("item:2/about@0", "user:1/short@2")
    assert origin.since == "user:1/short@2"


def test_a_phrase_that_was_told_is_traced_through_the_message(story: Trace) -> None:
    origin = by_phrase(story, "user:2/short@1")["I like: Dusk tempo"]
    assert origin.source == "item:1/about@0"
    assert origin.path[-2:] in {("e3#.0", "user:2/short@1"), ("item:2/about@1", "user:2/short@1")}
    assert origin.since == "user:2/short@1"


def test_records_that_hold_it_as_early_and_as_near_are_named_together(tmp_path: Path) -> None:
    kept = ("user:1", "short", 1, "I like: techno.", ["user:1/short@0", "item:2/about@0", "item:3/about@0"])

    def both(agent: str) -> Mapping[str, Any]:
        return {"about": "Techno"} if agent.startswith("item") else {"short": ""}

    event = committed("e1", [("item:2", "user:1", "shown", "", []), ("item:3", "user:1", "shown", "", [])], [kept])
    [origin] = find_origins(Trace(log(tmp_path / "events.jsonl", event), both), "user:1/short@1")
    assert (origin.path, origin.also) == (("item:2/about@0", "user:1/short@1"), ("item:3/about@0",))


def test_what_no_cause_holds_is_new(story: Trace) -> None:
    assert by_phrase(story, "user:2/short@1")["I like: harps"] == Origin(
        "I like", "harps", ("user:2/short@1",), "user:2/short@1"
    )
    assert by_phrase(story, "user:1/short@1")["I dislike: Techno"].path == ("user:1/short@1",)


def test_a_first_memory_that_is_not_known_leaves_it_open(tmp_path: Path) -> None:
    origin = by_phrase(Trace(log(tmp_path / "events.jsonl", *STORY)), "user:1/short@2")["I like: dusk tempo"]
    assert origin.path == ("user:1/short@1", "user:1/short@2")
    assert origin.unknown == ("user:1/short@0", "item:1/about@0")


def test_a_phrase_that_stayed_thousands_of_steps_is_traced(tmp_path: Path) -> None:
    records = [
        committed(f"e{n}", [], [("user:1", "short", n, "I like: brass.", [f"user:1/short@{n - 1}", "item:1/about@0"])])
        for n in range(1, 3001)
    ]
    [origin] = find_origins(Trace(log(tmp_path / "events.jsonl", *records), initial), "user:1/short@3000")
    assert (origin.source, origin.since, len(origin.path)) == ("item:1/about@0", "user:1/short@1", 3001)
