"""What reflection did to choices, read out of logs made by hand and of runs whose model answers anything."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simengine.data import MarketSettings, load
from simengine.llm.backends.scripted import Scripted
from simengine.measure import Result
from simengine.measure.studies import READINGS
from simengine.measure.studies.reflection import Reflection
from simengine.runlog import EventLine
from simengine.runlog.records import MessageLine

DATA = load(MarketSettings(format="market", users=4, items=12, interests=3, interactions=4, seed=1))
CHECKED = {"choose/r1": "ok", "choose/check": "ok"}


def step(user: str, *taken: str, units: dict[str, str] = CHECKED, kinds: Sequence[str] = ()) -> EventLine:
    """An interaction with item ``yes`` in which these were taken; the last is the check unless ``kinds`` says else."""
    kinds = kinds or [*["choice"] * len(taken[1:]), "check"][: len(taken)]
    said = [MessageLine("m", f"user:{user}", f"item:{item}", kind) for kind, item in zip(kinds, taken, strict=True)]
    seen = [MessageLine("m", "item:yes", f"user:{user}", "description")]
    data = {"user": user, "item": "yes", "negative": "no"}
    return EventLine("e", "interaction", 1, data=data, messages=seen + said, units=units)


def read(*lines: EventLine) -> Reflection:
    reading = Reflection("optimize", DATA)
    for line in lines:
        reading.take(line)
    return reading


def table(results: Sequence[Result]) -> dict[str, dict[str, tuple[float | None, int]]]:
    found: dict[str, dict[str, tuple[float | None, int]]] = {}
    for result in results:
        assert (result.stage, result.ranker, result.k) == ("optimize", "choice", None)
        found.setdefault(result.group, {})[result.metric] = (result.value, result.n)
    return found


def test_the_first_choice_and_the_check_are_counted_by_the_users_step() -> None:
    """u: wrong, then right behind it, and right at once; v, whose rows come between: wrong both times."""
    reading = read(step("u", "no", "yes"), step("v", "no", "no"), step("u", "yes", "yes"))
    assert table(reading.found(0).results) == {
        "step 1": {"accuracy before": (0.0, 2), "accuracy after": (0.5, 2), "gain": (0.5, 2)},
        "step 2": {"accuracy before": (1.0, 1), "accuracy after": (1.0, 1), "gain": (0.0, 1)},
        # each user weighs the same, however many steps he has: u gained one half, v nothing
        "all steps": {"accuracy before": (0.25, 2), "accuracy after": (0.5, 2), "gain": (0.25, 2)},
    }
    assert reading.found(0).skipped == {}


def test_of_several_rounds_the_first_counts() -> None:
    reading = read(step("u", "no", "yes", "no"))
    assert table(reading.found(0).results)["step 1"]["accuracy before"] == (0.0, 1)
    assert table(reading.found(0).results)["step 1"]["accuracy after"] == (0.0, 1)


def test_intervals_are_over_users() -> None:
    """Half of a hundred users gain: the standard error is 0.05, so the interval is about 0.4 to 0.6."""
    reading = read(*(step(f"u{at}", "yes" if at % 2 else "no", "yes") for at in range(100)))
    gain = next(result for result in reading.found(0).results if result.metric == "gain")
    assert gain.value == 0.5
    assert gain.low == pytest.approx(0.4, abs=0.02)
    assert gain.high == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (step("u", units={"choose/r1": "unmatched"}), "choose/r1: unmatched"),
        (step("u", "no", kinds=["choice"], units={"choose/r1": "ok", "choose/r2": "refusal"}), "choose/r2: refusal"),
        (step("u", "no", kinds=["choice"], units={"choose/r1": "ok", "choose/check": "late"}), "choose/check: late"),
    ],
)
def test_a_step_without_both_choices_is_counted_by_reason_and_keeps_its_number(line: EventLine, reason: str) -> None:
    found = read(line, step("u", "yes", "yes")).found(0)
    assert found.skipped == {reason: 1}
    assert list(table(found.results)) == ["step 2", "all steps"]


def test_a_failed_reflection_is_no_reason_to_leave_a_step_out() -> None:
    units = {"choose/r1": "ok", "reflect.user/r1": "no_heading", "choose/check": "ok"}
    found = read(step("u", "no", "no", units=units)).found(0)
    assert found.skipped == {}
    assert table(found.results)["step 1"]["gain"] == (0.0, 1)


def test_a_log_without_checks_has_nothing_to_say() -> None:
    lines = [step("u", "no", "yes", kinds=["choice", "choice"], units={"choose/r1": "ok", "choose/r2": "ok"})]
    other = EventLine("rank/u/B/1", "ranking", 1, data={"user": "u"})
    assert read(*lines, other).found(0).results == []


def test_where_no_check_succeeds_the_values_are_unknown_and_the_reasons_told() -> None:
    failed = {"choose/r1": "ok", "choose/check": "refusal"}
    found = read(step("u", "no", kinds=["choice"], units=failed)).found(0)
    assert found.skipped == {"choose/check: refusal": 1}
    assert [(group, values["gain"][1]) for group, values in table(found.results).items()] == [("all steps", 0)]
    assert all(math.isnan(result.value or 0.0) for result in found.results)


def test_many_steps_make_ten_rows_at_most() -> None:
    """23 steps: three to a row, the last with two; every step is in one row."""
    found = read(*(step("u", "no", "yes") for _ in range(23))).found(0)
    labels = list(table(found.results))
    assert labels == [*(f"steps {first} to {first + 2}" for first in range(1, 20, 3)), "steps 22 to 23", "all steps"]


def test_the_figure_is_drawn_over_the_steps(tmp_path: Path) -> None:
    reading = read(*(step(user, "no", "yes") for user in "uv" for _ in range(3)))
    path = tmp_path / "optimize.png"
    reading.draw(reading.found(0), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_it_reads_the_stage_optimize() -> None:
    assert READINGS["optimize"] is Reflection


# -- a run -------------------------------------------------------------------------------------------------------------

RECHECK = """
name: recheck
seed: 3
data: {format: market, users: 3, items: 12, interests: 3, interactions: 6, seed: 4}
method: {kind: agentcf, recheck: true}
stages: [{optimize: {}}]
"""


def test_a_run_with_checks_reports_them_and_draws_them(tmp_path: Path) -> None:
    finished = runs.run(tmp_path / "run", text=RECHECK)
    groups = list(dict.fromkeys(result.group for result in finished.report.results))
    assert groups == ["step 1", "step 2", "step 3", "all steps"]
    assert {result.n for result in finished.report.results} == {3}
    assert (finished.path / "optimize.png").is_file()
    plain = runs.run(tmp_path / "plain", "method.recheck=false", text=RECHECK)
    assert plain.report.results == []
    assert not (plain.path / "optimize.png").exists()


TEXTS = st.one_of(
    st.text(max_size=60), st.sampled_from(["Chosen album: 1", "My updated self-introduction: I like it."])
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_whatever_a_model_answers_each_step_is_counted_once_and_in_range(texts: list[str]) -> None:
    """Replies go round in circles; what cannot be read is skipped with its reason."""
    replies = iter(range(10**6))
    model = Scripted(lambda request: texts[next(replies) % len(texts)])
    with tempfile.TemporaryDirectory() as folder:
        sets = ("llm.limits.concurrency=1", "llm.temperature=0.5")
        report = runs.run(Path(folder) / "run", *sets, text=RECHECK, backend=model).report
    rows = [result for result in report.results if result.metric == "gain" and result.group != "all steps"]
    if report.results:
        assert sum(result.n for result in rows) + sum(report.skipped.get("optimize", {}).values()) == report.events == 9
    for result in report.results:
        least = -1 if result.metric == "gain" else 0
        assert result.n < 2 or least <= result.interval.low <= result.interval.mean <= result.interval.high <= 1
