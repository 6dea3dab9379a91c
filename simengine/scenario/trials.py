"""Which rankings a stage asks for: of every test case, under every condition, as often as the stage says."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from simengine.data import Case, Dataset, by_popularity, redrawn
from simengine.errors import InputError
from simengine.kernel import stream
from simengine.methods import Trial
from simengine.scenario.schema import BiasStage, RankingStage, RankStage, RecordedRanker

THIRDS = ("rare", "middle", "popular")
"""The conditions of a study of popularity, by where its negatives come from."""


def trials(name: str, stage: RankingStage, dataset: Dataset, seed: int) -> tuple[Trial, ...]:
    """The rankings of the stage called ``name``; a case without candidates has none.

    Raises :class:`InputError` where that is so of all cases, where a study of popularity has too few items for any, or
    where a user has several cases and the stage has recorded rankings.
    """
    cases = [case for case in dataset.cases if case.candidates is not None]
    if dataset.cases and not cases:
        raise InputError(
            "no test case has a negative to rank its target among",
            remedy="Take data with more items.",
            stage=name,
            items=len(dataset.items),
        )
    several = next((case.user for case in cases if case.number > 1), None)
    if several is not None and any(isinstance(ranker, RecordedRanker) for ranker in stage.rankers):
        raise InputError(
            "recorded rankings are one for each user, and there are users who have several test cases",
            remedy="Say `cases: first` under data.split, or leave the recorded rankings out.",
            stage=name,
            user=several,
        )
    if isinstance(stage, RankStage):
        return tuple(_repeats(name, stage, cases, dataset, seed))
    assert isinstance(stage, BiasStage)
    if stage.by == "position":
        return tuple(_positions(cases))
    return tuple(_popularities(name, cases, dataset, seed))


def groups(found: tuple[Trial, ...]) -> list[str]:
    """The conditions of a stage's rankings, in order; one without a name where they are not told apart."""
    return list(dict.fromkeys(trial.group for trial in found))


def _repeats(name: str, stage: RankStage, cases: list[Case], dataset: Dataset, seed: int) -> Iterator[Trial]:
    pool = list(dataset.items)
    for time in [None] if isinstance(stage.when, str) else stage.when:
        group = "" if time is None else f"at {time}"
        for case in cases if time is None else [msgspec.structs.replace(case, time=time) for case in cases]:
            for repeat in range(1, stage.repeats + 1):
                if stage.candidates == "given":
                    yield Trial(case, repeat, group)
                else:
                    fresh = redrawn(
                        case, dataset, pool, stream(seed, "candidates", name, case.user, *case.again, str(repeat))
                    )
                    yield Trial(fresh, repeat, group, drawn=True)


def _positions(cases: list[Case]) -> Iterator[Trial]:
    most = max((len(case.candidates or ()) for case in cases), default=0)
    for place in range(most):
        for case in cases:
            if place < len(case.candidates or ()):
                yield Trial(case, group=f"position {place + 1}", place=place)


def _popularities(name: str, cases: list[Case], dataset: Dataset, seed: int) -> Iterator[Trial]:
    """Of each case as many negatives from every third; one that some third has too few for has none of these trials.

    Else a condition with fewer candidates would look easier than the others.
    """
    items = by_popularity(dataset)
    pools = [items[at * len(items) // len(THIRDS) : (at + 1) * len(items) // len(THIRDS)] for at in range(len(THIRDS))]
    left = False
    for case in cases:
        drawn = [
            redrawn(case, dataset, pool, stream(seed, "candidates", name, third, case.user, *case.again))
            for third, pool in zip(THIRDS, pools, strict=True)
        ]
        if all(len(one.candidates or ()) == len(case.candidates or ()) for one in drawn):
            left = True
            yield from (Trial(one, group=third, drawn=True) for third, one in zip(THIRDS, drawn, strict=True))
    if cases and not left:
        raise InputError(
            "no user is left to whom each third of the items has enough negatives to show",
            remedy="Take data with more items, or test cases with fewer candidates.",
            stage=name,
            items=len(items),
        )
