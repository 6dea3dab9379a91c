"""Comparing two histories: the first difference is named so that a person understands it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from histories import HEADER, PROVENANCE, Small, run, write

from simengine.errors import Divergence, LogError
from simengine.kernel import Call, Lookahead, Version
from simengine.runlog import ABSENT, Comparer, Difference, EventLine, MessageLine, Reader, Writer, first_difference
from simengine.runlog.records import Chain, End, Line, SpawnLine, digest
from simengine.world import Edge

ROWS = 4
LOOKAHEAD = Lookahead(1.5, ("user:1",))


def line() -> EventLine:
    """An event with two of each kind of record."""
    return EventLine(
        "row7",
        "interaction",
        12,
        "row6",
        {"item": "5", "shown": ["5", "9"]},
        (Edge("user:1", "item:5", "interaction", 12), Edge("user:1", "item:9", "exposure", 12)),
        [
            MessageLine("row7#.0", "user:1", "item:5", "choice", "I like it", ["item:5/text@2"]),
            MessageLine("row7#.1", "item:5", "user:1", "answer", {"stars": 4}),
        ],
        [
            Version("user:1", "long", 3, "likes jazz", append=True),
            Version("item:5", "text", 3, "for those who like jazz", "reflect.item", ["row7#.0"]),
        ],
        {"choose/r1": "ok", "reflect.item/r1": "ok"},
        {"reflect.item": "ok", "": "unreadable"},
        [
            SpawnLine("row7>.0", "later", 13.5, (0, 13.5, 7, "", 0), ("user:1",), ("item:5",), {"said": "so"}),
            SpawnLine(
                "row7>.1", "later", 14, (0, 14, 7, "", 1), lookahead=LOOKAHEAD, edges=(Edge("user:1", "v", "x"),)
            ),
        ],
    )


def with_(record: str, at: int, **changes: Any) -> Callable[[EventLine], EventLine]:
    """Changes fields of the record at a place in one of the event's lists."""

    def change(event: EventLine) -> EventLine:
        records = list(getattr(event, record))
        records[at] = msgspec.structs.replace(records[at], **changes)
        return msgspec.structs.replace(event, **{record: records})

    return change


def having(**changes: Any) -> Callable[[EventLine], EventLine]:
    return lambda event: msgspec.structs.replace(event, **changes)


def less(record: str) -> Callable[[EventLine], EventLine]:
    """Takes away the last record of a list."""
    return lambda event: msgspec.structs.replace(event, **{record: getattr(event, record)[:-1]})


EDGE = {"user": "user:1", "node": "item:9", "kind": "exposure", "time": 12}
ANSWER = {"id": "row7#.1", "sender": "item:5", "recipient": "user:1", "kind": "answer", "body": {"stars": 4}}
REF = "item:5/text@2"

CASES = [
    (having(event="row8"), Difference("event", "row7", "row8")),
    (having(kind="rank"), Difference("kind", "interaction", "rank")),
    (having(time=12.0), Difference("time", 12, 12.0)),
    (having(parent=None), Difference("parent", "row6", None)),
    (having(data=None), Difference("data", {"item": "5", "shown": ["5", "9"]}, None)),
    (having(data={"item": "5", "shown": ["5", "8"]}), Difference("data.shown[1]", "9", "8")),
    (having(data={"item": "5"}), Difference("data.shown", ["5", "9"], ABSENT)),
    (having(data={"shown": ["5", "9"], "item": "5"}), Difference("data[0]", "item", "shown")),
    (with_("edges", 1, kind="interaction"), Difference("edges[1].kind", "exposure", "interaction", "user:1")),
    (with_("edges", 0, node="item:4"), Difference("edges[0].node", "item:5", "item:4", "user:1")),
    (less("edges"), Difference("edges[1]", EDGE, ABSENT, "user:1")),
    (with_("messages", 0, body="I hate it"), Difference("messages[0].body", "I like it", "I hate it", "user:1")),
    (with_("messages", 0, because=[]), Difference("messages[0].because", [REF], ABSENT, "user:1")),
    (with_("messages", 0, because=["x"]), Difference("messages[0].because[0]", REF, "x", "user:1")),
    (with_("messages", 1, body={"stars": 5}), Difference("messages[1].body.stars", 4, 5, "item:5")),
    (less("messages"), Difference("messages[1]", ANSWER, ABSENT, "item:5")),
    (
        with_("memories", 1, value="for no one"),
        Difference("memories[1].value", "for those who like jazz", "for no one", "item:5", "reflect.item"),
    ),
    (with_("memories", 0, version=4), Difference("memories[0].version", 3, 4, "user:1")),
    (with_("memories", 0, append=False), Difference("memories[0].append", True, ABSENT, "user:1")),
    (with_("memories", 0, agent="user:2"), Difference("memories[0].agent", "user:1", "user:2", "user:1")),
    (with_("memories", 0, unit="choose"), Difference("memories[0].unit", ABSENT, "choose", "user:1")),
    (
        having(calls={"choose/r1": "failed: refused", "reflect.item/r1": "ok"}),
        Difference('calls["choose/r1"]', "ok", "failed: refused"),
    ),
    (having(calls={"choose/r1": "ok"}), Difference('calls["reflect.item/r1"]', "ok", ABSENT)),
    (having(calls={}), Difference('calls["choose/r1"]', "ok", ABSENT)),
    (
        having(calls={"reflect.item/r1": "ok", "choose/r1": "ok"}),
        Difference("calls[0]", "choose/r1", "reflect.item/r1"),
    ),
    (having(units={"reflect.item": "refused", "": "unreadable"}), Difference('units["reflect.item"]', "ok", "refused")),
    (having(units={"reflect.item": "ok"}), Difference('units[""]', "unreadable", ABSENT)),
    (with_("spawns", 0, time=13), Difference("spawns[0].time", 13.5, 13)),
    (with_("spawns", 0, order=(0, 13.5, 7, "", 1)), Difference("spawns[0].order[4]", 0, 1)),
    (with_("spawns", 0, writes=("user:2",)), Difference("spawns[0].writes[0]", "user:1", "user:2")),
    (with_("spawns", 0, data={"said": "no"}), Difference("spawns[0].data.said", "so", "no")),
    (with_("spawns", 1, lookahead=Lookahead(2, ("user:1",))), Difference("spawns[1].lookahead.delay", 1.5, 2)),
    (with_("spawns", 1, edges=(Edge("user:1", "v", "y"),)), Difference("spawns[1].edges[0].kind", "x", "y")),
]


@pytest.mark.parametrize(("change", "difference"), CASES, ids=[f"{n}-{case[1].record}" for n, case in enumerate(CASES)])
def test_the_first_difference_names_record_agent_and_unit(
    change: Callable[[EventLine], EventLine], difference: Difference
) -> None:
    found = first_difference(line(), change(line()))
    assert found == difference
    assert [type(found.expected), type(found.found)] == [type(difference.expected), type(difference.found)]
    back = first_difference(change(line()), line())
    assert back is not None
    assert (back.record, back.expected, back.found) == (difference.record, difference.found, difference.expected)


def test_every_part_of_a_line_has_a_case() -> None:
    parts = {case[1].record.partition(".")[0].partition("[")[0] for case in CASES}
    assert parts == {*EventLine.__struct_fields__} - {"sum"}


def test_equal_events_do_not_differ_whatever_went_before_them() -> None:
    assert first_difference(line(), line()) is None
    assert first_difference(None, None) is None
    one, other = line(), line()
    one.sum, other.sum = "a", "b"
    assert first_difference(one, other) is None


def test_an_event_that_one_history_does_not_have() -> None:
    assert first_difference(line(), None) == Difference("event", "row7", ABSENT)
    assert first_difference(None, line()) == Difference("event", ABSENT, "row7")


def test_of_many_differences_the_first_in_the_line_is_told() -> None:
    change = having(kind="rank", calls={}, memories=[])
    assert first_difference(line(), change(line())) == Difference("kind", "interaction", "rank")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    write(path, ROWS)
    return path


def changed(path: Path, change: Callable[[list[Any]], None]) -> Path:
    """Changes lines of a history and gives each the checksum that it must have then."""
    lines = [msgspec.json.decode(text, type=EventLine) for text in path.read_bytes().splitlines()[2:-1]]
    everything: list[Any] = [Line(header=HEADER), *lines, Line(end=End(2 * ROWS, 1))]
    change(everything)
    chain = Chain()
    for each in everything:
        each.sum = ""
    first = msgspec.json.encode(Line(provenance=PROVENANCE)) + b"\n"
    path.write_bytes(first + b"".join(chain.close(each) for each in everything))
    return path


def compare(path: Path, rows: int = ROWS, program: Small | None = None) -> Comparer:
    with Reader(path) as reader:
        comparer = Comparer(reader)
        run(comparer, rows, program=program)
        comparer.finish()
    return comparer


def test_a_run_that_is_executed_again_is_the_same(log: Path) -> None:
    comparer = compare(log)
    assert (comparer.events, comparer.failed) == (2 * ROWS, 1)
    reader = Reader(log)
    assert list(reader)
    assert comparer.sum == reader.sum, "the end is part of it"


def test_an_unfinished_history_is_compared_as_far_as_it_goes(log: Path) -> None:
    writer = Writer(log.with_name("other"), HEADER, PROVENANCE)
    run(writer, ROWS)
    writer.close()
    comparer = compare(log.with_name("other"))
    assert (comparer.events, comparer.sum) == (2 * ROWS, writer.sum)


class Drifting(Small):
    """Answers otherwise than before, in the middle of a long text."""

    def __init__(self, at: str, padding: str = "") -> None:
        super().__init__(padding)
        self.at = at

    async def answer(self, call: Call) -> tuple[str, str]:
        said, stamp = await super().answer(call)
        return said.replace("because", "in spite") if call.id.startswith(self.at) else said, stamp


def test_a_divergence_shows_both_side_by_side(log: Path) -> None:
    with pytest.raises(Divergence) as caught:
        compare(log, program=Drifting("row1#"))
    assert caught.value.where == {
        "event": "row1",
        "record": "messages[0].body",
        "agent": "user:1",
        "expected": '"because of row1#choose/r1 🎷"',
        "found": '"in spite of row1#choose/r1 🎷"',
    }
    assert (
        'event row1, record messages[0].body, agent user:1, expected "because of row1#choose/r1 🎷", '
        'found "in spite of row1#choose/r1 🎷": the re-execution differs from the log' in str(caught.value)
    )


def test_a_divergence_of_a_memory_names_agent_and_unit(log: Path) -> None:
    changed(log, lambda lines: setattr(lines[1].memories[1], "value", f"{'very ' * 40}old"))
    with pytest.raises(Divergence) as caught:
        compare(log)
    where = caught.value.where
    assert (where["record"], where["agent"], where["unit"]) == ("memories[1].value", "item:0", "reflect.item")
    assert where["found"] == '"I am item:0, known to user:0"'
    assert where["expected"] == f'"{"very " * 15}very…', "80 characters of a long text are shown"


def test_long_texts_are_shown_where_they_part(log: Path) -> None:
    start, rest = "The agent likes " + "calm music, " * 30, ", and more of it" * 10
    changed(log, lambda lines: setattr(lines[3].messages[0], "body", f"{start}jazz{rest}"))

    class Rock(Small):
        async def answer(self, call: Call) -> tuple[str, str]:
            said, stamp = await super().answer(call)
            return f"{start}rock{rest}" if call.id.startswith("row1") else said, stamp

    with pytest.raises(Divergence) as caught:
        compare(log, program=Rock())
    where = caught.value.where
    assert where["expected"].startswith("… music, calm music, jazz, and more")
    assert where["found"].startswith("… music, calm music, rock, and more")
    assert {len(where["expected"]), len(where["found"])} == {82}, "80 characters and a mark at either end"


def test_an_event_too_many_and_one_too_few(log: Path) -> None:
    with pytest.raises(Divergence) as caught:
        compare(log, ROWS + 1)
    assert caught.value.where == {"event": "row4", "record": "event", "expected": "nothing", "found": '"row4"'}
    with pytest.raises(Divergence) as caught:
        compare(log, ROWS - 1)
    assert caught.value.where == {"event": "row3", "record": "event", "expected": '"row3"', "found": "nothing"}


def test_an_end_that_counts_otherwise(log: Path) -> None:
    changed(log, lambda lines: lines.__setitem__(-1, Line(end=End(2 * ROWS, 2))))
    with pytest.raises(Divergence) as caught:
        compare(log)
    assert caught.value.where == {
        "record": "end",
        "expected": '{"events":8,"failed":2}',
        "found": '{"events":8,"failed":1}',
    }


def test_a_line_that_says_the_same_in_another_text(log: Path) -> None:
    texts = log.read_bytes().splitlines()
    chain = Chain()
    assert chain.check(texts[1])
    spaced = texts[2].partition(b',"sum"')[0].replace(b'"kind":', b'"kind": ') + b"}"
    closed = spaced[:-1] + b',"sum":"' + digest(chain.sum, spaced).encode() + b'"}'
    log.write_bytes(b"\n".join([*texts[:2], closed, b""]))
    with pytest.raises(Divergence) as caught:
        compare(log)
    assert caught.value.where["record"] == "text"
    assert '"kind": "inter' in caught.value.where["expected"]
    assert '"kind":"inter' in caught.value.where["found"]


def test_damage_in_the_log_is_told_as_damage(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b"row2", b"row9"))
    with pytest.raises(LogError, match="does not fit the checksum") as caught:
        compare(log)
    assert not isinstance(caught.value, Divergence)


def test_a_difference_leaves_the_hash_of_what_was_equal(log: Path) -> None:
    with Reader(log) as reader:
        comparer = Comparer(reader)
        with pytest.raises(Divergence):
            run(comparer, ROWS, program=Drifting("row1#"))
    equal = Reader(log)
    events = iter(equal)
    next(events), next(events)
    assert (comparer.events, comparer.sum) == (2, equal.sum)
    equal.close()
