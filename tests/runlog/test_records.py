"""The lines of a history: what is read is what was written, and the kernel gets its children back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from histories import HEADER, Small, run, write
from hypothesis import given
from hypothesis import strategies as st

from simengine.kernel import Committed, Event, Lookahead, Restored, Version
from simengine.runlog import EventLine, Reader, event_line
from simengine.runlog.records import Chain, Line
from simengine.world import Edge

ROWS = 4


class Keeping:
    """A sink that keeps what is committed."""

    def __init__(self) -> None:
        self.records: list[Committed] = []

    def commit(self, record: Committed) -> None:
        self.records.append(record)


def test_every_line_that_is_read_and_written_again_is_the_same_bytes(tmp_path: Path) -> None:
    texts = (write(tmp_path / "log", ROWS)).splitlines(keepends=True)
    chain = Chain()
    assert chain.close(Line(header=HEADER)) == texts[1]
    for text in texts[2:-1]:
        line = msgspec.json.decode(text, type=EventLine)
        line.sum = ""
        assert chain.close(line) == text


numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("äk:", max_size=3), inner, max_size=3),
    max_leaves=6,
)
edges = st.builds(Edge, st.just("user:1"), st.just("item:ü"), st.sampled_from(["interaction", "exposure"]), numbers)
children = st.builds(
    Event,
    id=st.just("row0>.0"),
    kind=st.just("later"),
    order=st.tuples(st.just(0), numbers, st.text("ab/", max_size=3), st.integers(0, 9)),
    time=numbers,
    writes=st.sampled_from([(), ("user:1",), ("user:1", "item:ü")]),
    reads=st.sampled_from([(), ("item:2",)]),
    data=plain,
    facts=st.lists(edges, max_size=2).map(tuple),
    parent=st.just("row0"),
    lookahead=st.none() | st.builds(Lookahead, numbers.filter(lambda delay: delay >= 0), st.just(("user:1",))),
)


@given(st.lists(children, max_size=2), plain, numbers)
def test_what_the_kernel_gets_back_is_what_it_gave(made: list[Event], value: Any, time: int | float) -> None:
    event = Event(id="row0", kind="interaction", order=(0, 1), time=time, data=value)
    version = Version("user:1", "short", 3, value, "choose", ["row0#.0", "item:2/text@1"], True)
    record = Committed(event, [version], [], [("choose/r1", "ok")], [("choose", "ok"), ("", "unreadable")], made)
    text = Chain().close(event_line(record))
    line = msgspec.json.decode(text, type=EventLine)
    assert line.restored() == Restored("row0", [version], made, True)
    line.sum = ""
    assert Chain().close(line) == text, "numbers keep their kind: 1 is not 1.0"


def test_two_restorations_of_one_log_share_nothing_that_can_change(tmp_path: Path) -> None:
    write(tmp_path / "log", ROWS)
    one, other = ([line.restored() for line in Reader(tmp_path / "log")] for _ in range(2))
    assert one == other
    assert {id(part) for part in _mutable(one)}.isdisjoint(id(part) for part in _mutable(other))
    before = msgspec.json.encode(other)
    sink = Keeping()
    run(sink, ROWS + 1, one, Small())
    assert len(sink.records) == 2
    assert msgspec.json.encode(other) == before


def _mutable(value: Any) -> Iterator[Any]:
    """All lists, mappings and versions below a value."""
    if isinstance(value, list | dict | Version):
        yield value
    if isinstance(value, msgspec.Struct):
        value = [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _mutable(part)


def test_a_failed_unit_makes_a_failed_event() -> None:
    assert not EventLine("e", "k", 0).failed
    assert not EventLine("e", "k", 0, units={"choose": "ok"}).failed
    assert EventLine("e", "k", 0, units={"choose": "ok", "reflect.item": "unreadable"}).failed
    assert EventLine("e", "k", 0, units={"": "refused"}).failed
