"""What a run keeps of its scenario names every file in full, so that it can be taken up from any folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine.scenario.running import portable


def test_paths_are_kept_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = portable(
        {
            "data": {"format": "audience", "items": {"format": "steam", "path": "games"}},
            "method": {"kind": "interec", "store": "more.jsonl"},
            "prompts": {"interec.plan": "plan.j2"},
        }
    )
    assert kept["data"]["items"] == {"format": "steam", "path": str(tmp_path / "games")}
    assert kept["method"]["store"] == str(tmp_path / "more.jsonl")
    assert kept["prompts"] == {"interec.plan": str(tmp_path / "plan.j2")}
    assert portable({"data": {"format": "atomic", "path": "cds"}})["data"]["path"] == str(tmp_path / "cds")


def test_an_item_table_beside_a_log_stays_relative_to_it(tmp_path: Path) -> None:
    data = {"format": "csv", "path": str(tmp_path / "log.csv"), "items": {"path": "items.csv", "id": "i", "title": "t"}}
    assert portable({"data": data})["data"]["items"]["path"] == "items.csv"
