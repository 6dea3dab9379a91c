"""Makes the rankers that stand beside agents in a stage, still to be fitted."""

from __future__ import annotations

from simengine.rankers import RANKERS, Ranker
from simengine.rankers.recorded import Recorded
from simengine.scenario.schema import RankingStage, Scenario


def baselines(stage: RankingStage, scenario: Scenario) -> list[Ranker]:
    """The stage's rankers. Raises :class:`~simengine.errors.InputError` where a library or a file is missing."""
    folder = getattr(scenario.data, "path", None)
    return [
        RANKERS[entry](seed=scenario.seed)
        if isinstance(entry, str)
        else Recorded(entry.recorded if folder is None else folder / entry.recorded, entry.name)
        for entry in stage.rankers
    ]
