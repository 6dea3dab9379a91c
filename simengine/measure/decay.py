"""How a planted preference travels and fades: transmission, share of holders by hop and time, loss, reproduction.

Reads what other modules have gathered of one or more plantings, and pools them. A planting's *control* is the same run
without it: whoever holds the preference there holds it anyway. Shares are net of the control in the sense of Abbott
(1925): (t - c) / (1 - c), the share among those who would not hold it anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from simengine.errors import InputError
from simengine.measure.carriers import carried, tree_of_carriers
from simengine.measure.contacts import Contacts, is_grouping
from simengine.measure.decay_fits import bounds_of_hops, deviance_of_hops, fit_hops, weibull
from simengine.measure.estimates import Estimate, Numbers, Pool, half_life, survival, wilson
from simengine.measure.held import Held
from simengine.measure.holding import Holdings
from simengine.measure.possible import Apart, Met, apart, met
from simengine.measure.reachability import Reach
from simengine.measure.statistics import DRAWS
from simengine.measure.trials import Trials, by_strength, contact_trials

POINTS = 17
"""At how many times since planting the spread is told, from 0 to the end of the shortest log."""
FEW = 20
"""Below so many plantings, their resamples tell too little: on planted trees, intervals of r cover it too rarely."""


@dataclass(frozen=True, eq=False)
class Planting:
    """One preference planted once: contacts of the treatment, the possible reach, holdings of treatment and control.

    The seeds are the agents of the reach at 0 hops. Where there is no control, an empty ``Holdings`` says that nobody
    would hold the preference anyway.
    """

    contacts: Contacts
    reach: Reach
    treatment: Holdings
    control: Holdings


class Transmission(msgspec.Struct, frozen=True):
    """Trials of one kind of contact, and how many of them passed the preference on."""

    kind: str
    trials: int
    successes: int
    rate: Estimate


class Share(msgspec.Struct, frozen=True):
    """Holders among the users and items possibly reached ``at`` a number of hops, or by a time since planting.

    ``share`` is that of the treatment, ``control`` that of the same agents in the control, ``net`` the one net of the
    other, whose interval takes the control's share as known where there is one planting only.
    """

    at: float
    agents: int
    holders: int
    share: Estimate
    control: Estimate
    net: Estimate


class HopFit(msgspec.Struct, frozen=True):
    """share(h) = r^h over hops from 1 on: ``kept`` is r, ``half_life`` ln 2 / -ln r hops.

    ``p`` is the probability of so great a deviance on ``freedom`` degrees of freedom, were it so and all agents
    independent: agents with a common ancestor are not, which makes it too small.
    """

    kept: Estimate
    half_life: Estimate
    deviance: float | None
    freedom: int
    p: float | None


class Loss(msgspec.Struct, frozen=True):
    """How long the preference is held: exponential times, censored at the log's end, in units of the log's time.

    ``rate`` is losses by the total time held, ``half_life`` ln 2 by it. ``shape`` is that of the Weibull distribution
    which fits best (1 is exponential, below it losses come early), ``p`` that of the gain in likelihood by it.
    """

    spells: int
    losses: int
    held: float
    rate: Estimate
    half_life: Estimate
    shape: float | None
    p: float | None


class Reproduction(msgspec.Struct, frozen=True):
    """How many agents each carrier of a generation has brought the preference to; seeds are generation 0."""

    generation: int
    carriers: int
    carried: int
    number: Estimate


class Decay(msgspec.Struct, frozen=True):
    """Everything that is measured of a study's plantings.

    ``transmission`` has all contacts first (``kind`` is ``all``), then each kind; ``spontaneous`` are contacts without
    a source that holds the preference. A holder by hop is who ever holds it, by time who holds it then; ``times`` leave
    the seeds out. ``met`` and ``apart`` tell who could have it, by kind of contact and by distance whatever the times.
    ``notes`` say in words how to read the numbers.
    """

    plantings: int
    transmission: tuple[Transmission, ...]
    spontaneous: Transmission
    hops: tuple[Share, ...]
    times: tuple[Share, ...]
    fit: HopFit
    loss: Loss
    reproduction: tuple[Reproduction, ...]
    met: tuple[Met, ...]
    apart: tuple[Apart, ...]
    notes: tuple[str, ...]


def measure_decay(plantings: Sequence[Planting], *, seed: int = 0, draws: int = DRAWS) -> Decay:
    """All of it over one or more plantings; intervals are those of :class:`~simengine.measure.estimates.Pool`.

    :class:`InputError` without plantings, or where the contacts of one are of another log than its holdings.
    """
    if not plantings:
        raise InputError("there is no planting to measure", remedy="give a run with a planting and its control")
    seen = [_Seen(planting, at) for at, planting in enumerate(plantings)]
    pool = Pool(len(plantings), seed=seed, draws=draws)
    return Decay(
        len(plantings),
        *_transmission(pool, [each.trials for each in seen]),
        hops := _by_hop(pool, seen),
        _by_time(pool, seen),
        _hop_fit(pool, seen),
        _loss(pool, seen),
        _reproduction(pool, plantings),
        met([planting.reach for planting in plantings]),
        apart([planting.reach for planting in plantings], [each.treatment.ever() for each in seen]),
        _notes(len(plantings), hops),
    )


class _Seen:
    """One planting's agents, counted in the ways that are asked for."""

    def __init__(self, planting: Planting, number: int) -> None:
        contacts, self._reach = planting.contacts, planting.reach
        if len(contacts.events) != planting.treatment.events:
            problem = f"contacts of {len(contacts.events)} events, holdings of {planting.treatment.events}"
            raise InputError(problem, remedy="read both from the log of the treatment", planting=number)
        numbers = {agent: at for at, agent in enumerate(self._reach.agents)}
        self.treatment, self._control = Held(planting.treatment, numbers), Held(planting.control, numbers)
        self._reached = (self._reach.hops >= 0) & ~np.array([is_grouping(agent) for agent in numbers], np.bool_)
        own = {agent: at for at, agent in enumerate(contacts.agents)}
        self.trials = contact_trials(contacts, Held(planting.treatment, own))
        times = self._reach.time[self._reach.hops == 0]
        self._planted = float(np.nanmin(times, initial=planting.treatment.finish))
        self.span = planting.treatment.finish - self._planted
        self.finish = planting.treatment.finish

    @property
    def farthest(self) -> int:
        """The greatest number of hops."""
        return int(self._reach.hops.max(initial=0))

    def by_hop(self, farthest: int) -> Numbers:
        """Holders in the treatment, in the control, and agents at each hop, shape (3, farthest + 1)."""
        reached = self._reached
        groups = (self.treatment.ever() & reached, self._control.ever() & reached, reached)
        return np.stack([np.bincount(self._reach.hops[who], minlength=farthest + 1) for who in groups]).astype(float)

    def by_time(self, since: float) -> Numbers:
        """The same among the agents reached by a time since planting, shape (3,)."""
        time = self._planted + since
        reached = self._reached & (self._reach.hops > 0) & (self._reach.time <= time)
        groups = (self.treatment.at(time), self._control.at(time), reached)
        return np.array([np.count_nonzero(who & reached) for who in groups], np.float64)

    def durations(self) -> tuple[Numbers, NDArray[np.bool_]]:
        """How long each spell went on as far as the log tells, and whether it ended in a loss."""
        lost = np.isfinite(self.treatment.until)
        return np.minimum(self.treatment.until, self.finish) - self.treatment.since, lost


def _transmission(pool: Pool, trials: Sequence[Trials]) -> tuple[tuple[Transmission, ...], Transmission]:
    def told(kind: str, counts: Sequence[tuple[int, int]]) -> Transmission:
        successes, tried = np.array(counts, np.int64).reshape(-1, 2).T
        return Transmission(kind, int(tried.sum()), int(successes.sum()), pool.share(successes, tried))

    kinds = sorted({kind for each in trials for kind in each.by_kind}, key=by_strength)
    rows = [told("all", [each.all for each in trials])]
    rows += [told(kind, [each.by_kind.get(kind, (0, 0)) for each in trials]) for kind in kinds]
    return tuple(rows), told("spontaneous", [each.spontaneous for each in trials])


def _by_hop(pool: Pool, seen: Sequence[_Seen]) -> tuple[Share, ...]:
    farthest = max(each.farthest for each in seen)
    counts = np.stack([each.by_hop(farthest) for each in seen])
    return tuple(_share(pool, float(hop), counts[:, :, hop]) for hop in range(farthest + 1))


def _by_time(pool: Pool, seen: Sequence[_Seen]) -> tuple[Share, ...]:
    moments = np.linspace(0.0, min(each.span for each in seen), POINTS)
    moments = np.unique(moments)  # one where the log ends with the planting
    return tuple(_share(pool, at, np.stack([each.by_time(at) for each in seen])) for at in moments.tolist())


def _share(pool: Pool, at: float, counts: Numbers) -> Share:
    """From holders in the treatment, in the control, and agents, shape (plantings, 3)."""
    treated, anyway, agents = counts.T
    share, control = pool.share(treated, agents), pool.share(anyway, agents)
    known = float(anyway.sum() / agents.sum()) if agents.sum() else math.nan
    low, high = wilson(treated.sum(), agents.sum())
    alone = ((low - known) / (1 - known), (high - known) / (1 - known)) if known < 1 else (math.nan, math.nan)
    net = pool.estimate(counts, _net, alone, agents.sum())
    return Share(at, int(agents.sum()), int(treated.sum()), share, control, net)


def _net(sums: Numbers) -> Numbers:
    treated, anyway, agents = sums[..., 0], sums[..., 1], sums[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(agents > anyway, (treated - anyway) / (agents - anyway), np.nan)


def _hop_fit(pool: Pool, seen: Sequence[_Seen]) -> HopFit:
    farthest = max(each.farthest for each in seen)
    hops = np.arange(1, farthest + 1)
    counts = np.stack([each.by_hop(farthest)[:, 1:] for each in seen])
    treated, anyway, agents = counts.sum(axis=0)

    def fitted(sums: Numbers) -> Numbers:
        parts = sums.reshape(*sums.shape[:-1], 3, farthest)
        return fit_hops(hops, parts[..., 0, :], parts[..., 2, :], parts[..., 1, :])

    r = float(fitted(counts.sum(axis=0).reshape(-1)))
    alone = bounds_of_hops(r, hops, treated, agents, anyway)
    kept = pool.estimate(counts.reshape(len(seen), -1), fitted, alone, agents.sum())
    deviance = math.nan if math.isnan(r) else deviance_of_hops(r, hops, treated, agents, anyway)
    freedom = max(0, int(np.count_nonzero(agents)) - 1)
    return HopFit(kept, kept.mapped(half_life), deviance, freedom, survival(deviance, freedom))


def _loss(pool: Pool, seen: Sequence[_Seen]) -> Loss:
    durations = [each.durations() for each in seen]
    losses, held = (np.array([each[column].sum() for each in durations], np.float64) for column in (1, 0))
    times, lost = (np.concatenate([each[column] for each in durations]) for column in (0, 1))
    rate = pool.rate(losses, held)
    shape, gain = weibull(times, lost)
    half = rate.mapped(lambda value: math.log(2) / value if value > 0 else math.inf if value == 0 else math.nan)
    return Loss(len(times), int(lost.sum()), float(held.sum()), rate, half, shape, survival(gain, 1))


def _reproduction(pool: Pool, plantings: Sequence[Planting]) -> tuple[Reproduction, ...]:
    sizes = []
    for planting in plantings:
        seeds = [planting.reach.agents[at] for at in np.flatnonzero(planting.reach.hops == 0)]
        sizes.append(carried(tree_of_carriers(planting.treatment, seeds)))
    generations = max(map(len, sizes))
    counts = np.stack([np.pad(each, (0, generations + 1 - len(each))) for each in sizes])
    return tuple(
        Reproduction(at, int(by.sum()), int(to.sum()), pool.rate(to, by))
        for at, (by, to) in enumerate(zip(counts.T, counts.T[1:], strict=False))
    )


def _notes(plantings: int, hops: Sequence[Share]) -> tuple[str, ...]:
    notes = [
        "Share by hop mixes multiple exposures: an agent may have met several holders, or none of those that could "
        "have reached it in time. It is no chance of one contact; that is the transmission.",
        "Carriers that began to hold it late had little time to pass it on, so the last generations' reproduction is "
        "cut short by the end of the log.",
    ]
    if plantings == 1:
        notes.append("There is one planting, so intervals take trials and agents as independent, which is too narrow.")
    else:
        notes.append(
            f"Intervals resample the {plantings} plantings, and are never narrower than of independent trials."
        )
    if 1 < plantings < FEW:
        notes.append(f"Fewer than {FEW} plantings tell little about others: the intervals are rather too narrow.")
    if any(share.control.value for share in hops[1:]):
        notes.append("Some hold it in the control too: shares net of it and the fit are of those who do not.")
    return tuple(notes)
