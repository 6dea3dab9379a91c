"""An audit of an evaluation: what in its test cases makes good numbers mean little, each with how many and who.

It looks at the cases themselves (:mod:`~simengine.measure.faults`), and lets scorers that know no taste rank them. It
changes nothing and stops nothing: a finding is to be read beside the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from simengine.data import Case, Dataset
from simengine.measure.compare import PerCase, per_case
from simengine.measure.faults import Finding, can_be_scored, faults, unchecked
from simengine.measure.results import Attempt, Result
from simengine.measure.statistics import Interval, bootstrap_columns, means_of_each
from simengine.measure.trivial import CHANCE, TRIVIAL, results_of, score_trivially

CUT = 10
"""The cut-off of the NDCG by which trivial scorers are judged, if it is among those asked for, else the greatest."""

_ROUNDING = 1e-9  # a difference of means below this is none

_MEANING = {
    "popular first": "knowing what is popular is enough for that, so compare with it and not with chance",
    "unpopular first": "negatives are more popular than targets, so whoever shuns what is popular does well",
    "unseen first": "telling what training has touched from what it has not is enough for that, with no idea of taste, "
    "so a good number here means little",
}


class Audit(msgspec.Struct, frozen=True):
    """What an audit of ``cases`` test cases has found; nothing, where ``findings`` is empty.

    trivial: results of chance and of the trivial scorers in every metric, over the ``scored`` cases that have their
        target among their candidates.
    unchecked: what could not be looked at, and why.
    """

    findings: tuple[Finding, ...]
    trivial: tuple[Result, ...]
    unchecked: tuple[str, ...]
    cases: int
    scored: int


def audit(
    dataset: Dataset,
    cases: Sequence[Case],
    *,
    ks: Sequence[int] = (1, 5, 10),
    attempts: Mapping[str, Sequence[Sequence[Attempt]]] | None = None,
    stage: str = "audit",
    seed: int = 0,
) -> Audit:
    """Look through test cases of a data set for what spoils an evaluation on them.

    ``attempts``, as :func:`~simengine.measure.results.evaluate` takes them, are the rankings of the evaluated rankers:
    with these, every ranker is named that a trivial scorer beats. ``stage`` stands in the results of trivial scorers.
    Raises ``ValueError`` where there is no cut-off, or where numbers of cases do not fit.
    """
    if not ks:
        raise ValueError("an audit needs a cut-off of NDCG")
    cut = CUT if CUT in ks else max(ks)
    scored = [case for case in cases if can_be_scored(case)]
    trivially = score_trivially(dataset, scored, ks)
    results = results_of(stage, trivially, seed=seed)
    at_cut = {row.ranker: row for row in results if (row.metric, row.k) == ("ndcg", cut)}
    winners = _winners(at_cut)
    rankers = {name: _ranked(cases, ranked, cut) for name, ranked in (attempts or {}).items()}
    return Audit(
        findings=(
            *faults(dataset, cases),
            *(_won(at_cut[name], at_cut[CHANCE]) for name in winners),
            *_beaten(trivially, rankers, winners, cut, seed),
        ),
        trivial=tuple(results),
        unchecked=tuple(unchecked(dataset)),
        cases=len(cases),
        scored=len(scored),
    )


def _winners(at_cut: Mapping[str, Result]) -> list[str]:
    """The trivial scorers whose interval lies above the expectation of chance; none where there are too few users."""
    chance = at_cut[CHANCE].value or 0.0
    return [name for name in TRIVIAL if (low := at_cut[name].low) is not None and low > chance + _ROUNDING]


def _won(row: Result, chance: Result) -> Finding:
    text = (
        f"Ranking {row.ranker} gets NDCG@{row.k} {row.value:.3f} [{row.low:.3f}, {row.high:.3f}] over {row.n} users, "
        f"where chance gets {chance.value:.3f}: {_MEANING[row.ranker]}."
    )
    return Finding(f"{_code(row.ranker)}-wins", text, row.n, row.n, ())


def _ranked(cases: Sequence[Case], attempts: Sequence[Sequence[Attempt]], cut: int) -> PerCase:
    """The values of a ranker, over the cases that it has ranked at least once."""
    pairs = [pair for pair in zip(cases, attempts, strict=True) if can_be_scored(pair[0])]
    return per_case([case for case, _ in pairs], [repeats for _, repeats in pairs], [cut])


def _beaten(
    trivially: Mapping[str, PerCase], rankers: Mapping[str, PerCase], winners: Sequence[str], cut: int, seed: int
) -> Iterator[Finding]:
    """For each trivial scorer the rankers that it beats: surely, or by its mean if it surely beats chance itself."""
    leads = {ranker: _leads(trivially, found, cut, seed) for ranker, found in rankers.items()}
    for name in TRIVIAL:
        beaten = {
            ranker: lead[name]
            for ranker, lead in leads.items()
            if lead[name].mean > _ROUNDING and (name in winners or lead[name].low > _ROUNDING)
        }
        if beaten:
            text = (
                f"Ranking {name}, which knows no taste, scores above {len(beaten)} of the {len(rankers)} evaluated "
                f"rankers in NDCG@{cut}: {'; '.join(_lead(ranker, lead) for ranker, lead in beaten.items())}."
            )
            yield Finding(f"beaten-by-{_code(name)}", text, len(beaten), len(rankers), tuple(beaten))


def _leads(trivially: Mapping[str, PerCase], ranker: PerCase, cut: int, seed: int) -> dict[str, Interval]:
    """By how much each trivial scorer lies above a ranker, paired over the cases that this one has ranked."""
    metric = ("ndcg", cut)
    place = {case: at for at, case in enumerate(trivially[CHANCE].cases)}
    rows = np.array([place[case] for case in ranker.cases], np.int64)
    leads = (trivially[name].values[metric][rows] - ranker.values[metric] for name in TRIVIAL)
    table = np.column_stack([means_of_each(lead, ranker.users) for lead in leads])
    return dict(zip(TRIVIAL, bootstrap_columns(table, seed=seed), strict=True))


def _lead(ranker: str, lead: Interval) -> str:
    if lead.n < 2:
        return f"{ranker} by {lead.mean:.3f}, of one user"
    chance = "" if lead.low > 0 else ", which may be chance"
    return f"{ranker} by {lead.mean:.3f} [{lead.low:.3f}, {lead.high:.3f}]{chance}"


def _code(name: str) -> str:
    return name.replace(" ", "-")
