"""Rankings that were made elsewhere: read from a file, and scored by the places that they give."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from simengine.data import Case
from simengine.errors import InputError
from simengine.measure import evaluate
from simengine.rankers.recorded import Recorded
from simengine.scenario import Setup, read

SCENARIO = Path(__file__).parents[2] / "scenarios" / "agentcf-cds.yaml"
CANDIDATES = ("a", "b", "c", "d")


def recorded(tmp_path: Path, *rows: str) -> Recorded:
    path = tmp_path / "rankings.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    ranker = Recorded(path, "theirs")
    ranker.fit(None)  # type: ignore[arg-type]  (it learns nothing of a data set)
    return ranker


def score(ranker: Recorded, user: str = "u") -> list[float]:
    return [float(each) for each in ranker.score(Case(user, "a", (), CANDIDATES, 0), CANDIDATES)]


@pytest.mark.parametrize(
    ("ids", "places"),
    [
        ('["b", "a", "d", "c"]', [-1, 0, -3, -2]),
        ('["b", "b", "a", "d"]', [-1, 0, -4, -2]),  # the first place of a repeated one counts, c is left out
        ('["a", "b", "a", "d", "c"]', [-1, 0, -3, -2]),  # one too many: the first is a heading
        ('["x", "b", "a"]', [-1, 0, -4, -4]),  # what is no candidate takes no place
        ("[]", [-4, -4, -4, -4]),
    ],
)
def test_candidates_score_by_their_place(tmp_path: Path, ids: str, places: list[float]) -> None:
    assert score(recorded(tmp_path, f'{{"user_id": "u", "matched_item_ids": {ids}}}')) == places


def test_a_ranking_is_of_the_first_case_of_its_user(tmp_path: Path) -> None:
    ranker = recorded(tmp_path, '{"user_id": "u", "matched_item_ids": ["b", "a"]}')
    assert all(math.isnan(each) for each in ranker.score(Case("u", "a", (), CANDIDATES, 0, 2), CANDIDATES))


def test_a_user_without_a_ranking_cannot_be_scored(tmp_path: Path) -> None:
    assert all(map(math.isnan, score(recorded(tmp_path, '{"user_id": "v", "matched_item_ids": ["a"]}'))))


@pytest.mark.parametrize(
    ("rows", "problem", "line"),
    [
        (('{"user_id": "u"}',), "this is no recorded ranking", 1),
        (('{"user_id": "u", "matched_item_ids": []}',) * 2, "user u is ranked twice", 2),
    ],
)
def test_wrong_rows_are_said_with_their_line(tmp_path: Path, rows: tuple[str, ...], problem: str, line: int) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        recorded(tmp_path, *rows)
    assert caught.value.where["line"] == line


def test_a_file_that_is_not_there_is_said_when_the_ranker_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of recorded rankings"):
        Recorded(tmp_path / "none.jsonl", "theirs")


@pytest.mark.parametrize(
    ("density", "ndcg"), [("dense", (0.1300, 0.3891, 0.5013)), ("sparse", (0.1300, 0.3091, 0.4631))]
)
def test_the_recorded_rankings_of_the_authors(real_data: Path, density: str, ndcg: tuple[float, ...]) -> None:
    """The reference values that are told with the data."""
    folder = real_data / f"agentcf-cds-{density}"
    dataset = Setup.of(read(SCENARIO, [f"data.path={folder}"])[0]).dataset
    ranker = Recorded(folder / "recorded" / "llmrank_rankings.jsonl", "theirs")
    ranker.fit(dataset)
    attempts = {"theirs": [[ranker.score(case, case.candidates or ())] for case in dataset.cases]}
    found = {(row.metric, row.k): row.value for row in evaluate("rank", dataset.cases, attempts).results}
    assert [found["ndcg", k] for k in (1, 5, 10)] == pytest.approx(ndcg, abs=5e-5)
