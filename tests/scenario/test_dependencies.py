"""How much can run side by side, on hand-made events and on the negatives that AgentCF's authors recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from simengine import scenario as scenarios
from simengine.kernel import Event
from simengine.scenario.check import plan
from simengine.scenario.dependencies import Dependencies, find_dependencies


def _event(number: int, writes: str, reads: str = "") -> Event:
    return Event(id=str(number), kind="x", order=(number,), time=number, writes=tuple(writes), reads=tuple(reads))


@pytest.mark.parametrize(
    ("events", "path", "widest"),
    [
        ([], 0, 0),
        ([("a", ""), ("b", ""), ("c", "")], 1, 3),
        ([("a", ""), ("a", ""), ("a", "")], 3, 1),
        ([("a", ""), ("b", "a"), ("c", "a")], 2, 2),  # two readers of one version do not wait for each other
        ([("b", "a"), ("c", "a"), ("a", "")], 1, 3),  # a later writer never waits for an earlier reader
        ([("ab", ""), ("bc", ""), ("cd", ""), ("a", "")], 3, 2),
    ],
)
def test_levels_by_hand(events: list[tuple[str, str]], path: int, widest: int) -> None:
    found = find_dependencies(_event(number, *sides) for number, sides in enumerate(events))
    assert (found.events, found.critical_path, found.widest) == (len(events), path, widest)
    assert found.parallelism == (len(events) / path if path else 0.0)


@pytest.mark.parametrize(
    ("events", "batch", "path", "widest"),
    [
        ([("a", ""), ("a", ""), ("a", "")], 3, 1, 3),  # all three read what was before their batch
        ([("a", ""), ("a", ""), ("a", "")], 2, 2, 2),  # the third stands in the next batch, and waits
        ([("a", ""), ("b", ""), ("c", ""), ("d", "")], 2, 1, 4),  # batches that share nobody do not wait
        ([("a", ""), ("a", ""), ("a", "")], 1, 3, 1),  # a batch of one is no batch
    ],
)
def test_levels_of_batches_by_hand(events: list[tuple[str, str]], batch: int, path: int, widest: int) -> None:
    found = find_dependencies((_event(number, *sides) for number, sides in enumerate(events)), batch)
    assert found == Dependencies(len(events), path, widest, len(events) / path, batch)


@pytest.mark.parametrize(("both", "path", "widest"), [("false", 15, 63), ("true", 27, 44)])
def test_the_recorded_negatives_of_cds_dense(both: str, path: int, widest: int, real_data: Path) -> None:
    """500 interactions in the order step, then user; the negative is read, or written as well."""
    text = (runs.ROOT / "scenarios" / "agentcf-cds.yaml").read_text(encoding="utf-8")
    sets = [f"data.path={real_data / 'agentcf-cds-dense'}", "data.negatives=recorded/selections.jsonl"]
    scenario, _ = scenarios.read("cds.yaml", [*sets, f"method.update_negative={both}"], text)
    assert plan(scenario, dependencies=True).dependencies == Dependencies(500, path, widest, 500 / path)


TALKS = """
name: talks
data: {format: market, users: 5, items: 60, interests: 3, interactions: 6}
method: {kind: interec}
stages: [{converse: {users: 2}}]
"""


def test_where_nothing_is_re_enacted_it_is_said_that_there_are_none() -> None:
    scenario, _ = scenarios.read("talks.yaml", (), TALKS)
    notes = plan(scenario, dependencies=True).notes
    assert "no stage `optimize` re-enacts interactions, so there are no dependencies between them to tell" in notes
    assert "a talk is counted as one event here; in the run each of its turns is one" in notes
    assert not any("dependencies" in note for note in plan(scenario).notes)
