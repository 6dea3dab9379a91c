"""Where two logs part: the first event that differs, or that only one of them has."""

from __future__ import annotations

from pathlib import Path

from histories import write

from simengine.runlog import ABSENT
from simengine.runlog.parting import find_parting


def test_equal_logs_do_not_part(tmp_path: Path) -> None:
    write(tmp_path / "one", 5)
    write(tmp_path / "other", 5)
    assert find_parting(tmp_path / "one", tmp_path / "other") is None


def test_a_shorter_log_parts_where_it_ends(tmp_path: Path) -> None:
    write(tmp_path / "one", 3)
    write(tmp_path / "other", 5)
    parting = find_parting(tmp_path / "one", tmp_path / "other")
    assert parting is not None
    last = parting.event
    assert (parting.after, parting.difference.record) == (6, "event")  # three rows, each with a child
    assert (parting.difference.expected, parting.difference.found) == (ABSENT, last)
    back = find_parting(tmp_path / "other", tmp_path / "one")
    assert back is not None
    assert (back.event, back.difference.expected, back.difference.found) == (last, last, ABSENT)
