"""Published numbers stand beside ours, and variants are drawn beside one another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios
from simengine.errors import InputError

PUBLISHED = """
published:
  source: a paper
  rows:
    - {name: Their agents, ranker: agentcf B, values: {ndcg@10: 0.5, mrr: 0.4}}
    - {name: Pop (full), ranker: pop, not_comparable: on more data, values: {ndcg@10: 0.6}}
    - {name: Another, values: {ndcg@10: 0.7}}
"""


def test_each_published_number_stands_beside_ours(tmp_path: Path) -> None:
    report = runs.run(tmp_path / "run", text=runs.SMALL + PUBLISHED).report
    ours = {(row.ranker, row.metric, row.k): row.value for row in report.results}
    found = [(row.name, row.metric, row.k, row.published, row.value, row.not_comparable) for row in report.published]
    assert found == [
        ("Their agents", "ndcg", 10, 0.5, ours["agentcf B", "ndcg", 10], ""),
        ("Their agents", "mrr", None, 0.4, ours["agentcf B", "mrr", None], ""),
        ("Pop (full)", "ndcg", 10, 0.6, ours["pop", "ndcg", 10], "on more data"),
        ("Another", "ndcg", 10, 0.7, None, ""),
    ]


def test_quoting_a_paper_is_no_part_of_what_a_run_is(tmp_path: Path) -> None:
    quoted = runs.run(tmp_path / "run", text=runs.SMALL + PUBLISHED).report
    assert quoted.hash == runs.run(tmp_path / "other").report.hash


def test_a_metric_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="say a metric such as ndcg@10"):
        runs.run(tmp_path / "run", text=runs.SMALL + PUBLISHED.replace("mrr: 0.4", "map: 0.4"))


def test_a_ranker_with_a_recorded_file_stands_beside_the_others(tmp_path: Path) -> None:
    cases = runs.run(tmp_path / "run").report.results[0].n
    rows = [event["data"]["user"] for event in runs.events(tmp_path / "run", "ranking")]
    path = tmp_path / "theirs.jsonl"
    path.write_text("\n".join(f'{{"user_id": "{user}", "matched_item_ids": []}}' for user in rows), encoding="utf-8")
    entry = f"stages[1].rank={{rankers: [random, {{name: theirs, recorded: {path}}}]}}"
    results = runs.run(tmp_path / "with", entry).report.results
    values = {(row.ranker, row.metric, row.k): (row.value, row.n) for row in results}
    assert values["theirs", "ndcg", 10] == (pytest.approx(values["random", "ndcg", 10][0]), cases)


def test_variants_are_drawn_into_their_common_folder(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(runs.SMALL + "variants: {one: {}, other: {method: {rounds: 1}}}\n", encoding="utf-8")
    asyncio.run(scenarios.run_many(scenarios.read_all(path), out=tmp_path / "runs"))
    assert (tmp_path / "runs" / "rank.png").read_bytes().startswith(b"\x89PNG")


def test_a_single_ranking_has_its_audit_and_its_differences(tmp_path: Path) -> None:
    report = runs.run(tmp_path / "run").report
    assert report.audit["rank"].cases == 8
    assert {row.ranker for row in report.compared["rank"]} == {"random", "pop"}
    assert {row.reference for row in report.compared["rank"]} == {"agentcf B"}
