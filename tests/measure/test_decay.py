"""Decay on planted truth: what a simulation has put in comes out, in intervals that cover it as often as they say."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from simengine.errors import InputError
from simengine.measure.contacts import Contacts
from simengine.measure.decay import Decay, Planting, measure_decay
from simengine.measure.decay_fits import fit_hops
from simengine.measure.holding import Holdings, Spell
from simengine.measure.reachability import reach

SEEDS = 100
DRAWS = 1000  # resamples; fewer than by default, for the time that it takes
NOBODY = Holdings((), 0, 0.0, 0.0)
CHANCES = [0.4, *(pytest.param(p, marks=pytest.mark.slow) for p in (0.2, 0.6))]
"""A hundred simulations of each take seconds: one is in the default run, the others in the long one."""

Pairs = Sequence[tuple[int, int, int]]
"""Contacts: position of the event, source, target."""


def contacts_of(pairs: Pairs, times: Sequence[float], kinds: Sequence[str] | None = None) -> Contacts:
    """Contacts as arrays; ``kinds`` is that of each, ``interaction`` unless told otherwise."""
    position, source, target = np.array(pairs, np.int32).reshape(-1, 3).T.copy()
    names = tuple(dict.fromkeys(kinds or ("interaction",)))
    codes = [names.index(kind) for kind in kinds] if kinds else np.zeros(len(position))
    return Contacts(
        agents=tuple(f"a{number}" for number in range(1 + max(44, source.max(), target.max()))),
        events=tuple(f"e{number}" for number in range(len(times))),
        kinds=names,
        times=np.array(times, np.float64),
        position=position,
        source=source,
        target=target,
        kind=np.array(codes, np.int32),
        part_position=np.concatenate([position, position]),
        part_agent=np.concatenate([source, target]),
        edges=np.stack([source, target], axis=1),
    )


def planting(contacts: Contacts, spells: Sequence[Spell], control: Sequence[Spell] = ()) -> Planting:
    events, times = len(contacts.events), contacts.times
    treatment, without = (Holdings(tuple(each), events, times[0], times[-1]) for each in (spells, control))
    return Planting(contacts, reach(contacts, {"a0": 0}), treatment, without)


def market(rng: np.random.Generator, p: float) -> Planting:
    """Random interactions of 30 users with 15 items: where one of two holds it, the other takes it with chance p."""
    users, items = rng.integers(0, 30, 120), rng.integers(30, 45, 120)
    users[0] = 0  # the seed
    begin = {0: -1}
    carrier: dict[int, tuple[str, ...]] = {0: ()}
    pairs = []
    for position, (user, item) in enumerate(zip(users.tolist(), items.tolist(), strict=True)):
        pairs += [(position, user, item), (position, item, user)]
        for source, target in ((user, item), (item, user)):
            if begin.get(source, position) < position and target not in begin and rng.random() < p:
                begin[target], carrier[target] = position, (f"a{source}",)
    spells = [Spell(f"a{who}", at, max(0.0, at), carriers=carrier[who]) for who, at in begin.items()]
    return planting(contacts_of(pairs, range(120)), spells)


def tree(rng: np.random.Generator, p: float, q: float = 0.0) -> Planting:
    """Each holder of a tree of fives, three levels deep, meets its children once and passes it on with chance p.

    Besides each agent comes to hold it with chance q in treatment and control alike.
    """
    parents = [(child - 1) // 5 for child in range(1, 156)]
    spells, anyway, holders = [Spell("a0", -1, 0.0)], [], {0}
    for child, parent in enumerate(parents, start=1):
        passed, has = parent in holders and rng.random() < p, rng.random() < q
        spell = Spell(f"a{child}", child - 1, child - 1.0, carriers=(f"a{parent}",) if passed else ())
        if passed or has:
            holders.add(child)
            spells.append(spell)
        if has:
            anyway.append(spell)
    pairs = [(child - 1, parent, child) for child, parent in enumerate(parents, start=1)]
    return planting(contacts_of(pairs, range(155)), spells, anyway)


def covered(found: Sequence[tuple[float, float]], truth: float) -> int:
    return sum(low <= truth <= high for low, high in found)


@pytest.mark.parametrize("p", CHANCES)
@pytest.mark.parametrize("plantings", [1, 8])
def test_transmission_is_covered_by_its_interval(p: float, plantings: int) -> None:
    """Where one planting is all, too: a success does not depend on the contacts before it, only on p."""
    found, values = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        decay = measure_decay([market(rng, p) for _ in range(plantings)], draws=DRAWS)
        all_, kind = decay.transmission
        assert (kind.kind, kind.trials) == ("interaction", all_.trials)
        assert decay.spontaneous.successes == 0
        found.append(all_.rate.interval[1:3])
        values.append(all_.rate.value)
    assert covered(found, p) >= 90
    assert np.mean(values) == pytest.approx(p, abs=0.1 if plantings == 1 else 0.02)


@pytest.mark.parametrize("p", CHANCES)
def test_share_by_hop_recovers_what_a_tree_passes_on(p: float) -> None:
    found, values = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        decay = measure_decay([tree(rng, p) for _ in range(20)], draws=DRAWS)
        kept = decay.fit.kept
        found.append(kept.interval[1:3])
        values.append(kept.value)
        assert decay.fit.half_life.value == pytest.approx(math.log(2) / -math.log(kept.value))
        assert [share.agents for share in decay.hops] == [20, 100, 500, 2500]
    assert covered(found, p) >= 90
    assert np.mean(values) == pytest.approx(p, abs=0.01)


def test_reproduction_on_a_tree_is_children_by_chance() -> None:
    rng = np.random.default_rng(1)
    decay = measure_decay([tree(rng, 0.5) for _ in range(100)], draws=DRAWS)
    assert [row.generation for row in decay.reproduction] == [0, 1, 2, 3]
    for row in decay.reproduction[:3]:  # five children each, half of them take it
        assert row.number.low <= 2.5 <= row.number.high
        assert row.number.value == pytest.approx(2.5, abs=0.3)
    assert decay.reproduction[3].carried == 0
    assert decay.reproduction[0].carriers == 100


@pytest.mark.parametrize("q", [0.3, pytest.param(0.1, marks=pytest.mark.slow)])
def test_those_who_hold_it_anyway_cancel_out(q: float) -> None:
    """A star: the seed meets 40 others once, each takes it with chance 0.5, and with chance q has it anyway."""
    net, raw, kept = [], [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        star = []
        for _ in range(8):
            took, anyway = rng.random(40) < 0.5, rng.random(40) < q
            treated, control = (
                [Spell(f"a{at + 1}", at, float(at)) for at in np.flatnonzero(who).tolist()]
                for who in (took | anyway, anyway)
            )
            pairs = [(at, 0, at + 1) for at in range(40)]
            star.append(planting(contacts_of(pairs, range(40)), [Spell("a0", -1, 0.0), *treated], control))
        decay = measure_decay(star, draws=DRAWS)
        net.append(decay.hops[1].net.interval[:3])
        raw.append(decay.hops[1].share.value)
        kept.append(decay.fit.kept.value)
        assert decay.times[-1].net == decay.hops[1].net  # at the end all are reached
        assert decay.notes[-1].startswith("Some hold it in the control too")
    assert np.mean([value for value, _, _ in net]) == pytest.approx(0.5, abs=0.01)
    assert np.mean(kept) == pytest.approx(0.5, abs=0.01)
    assert np.mean(raw) == pytest.approx(0.5 + 0.5 * q, abs=0.01)
    assert covered([bounds for _, *bounds in net], 0.5) >= 90


def test_without_any_transmission_the_net_share_is_nothing() -> None:
    star = [(at, 0, at + 1) for at in range(40)]
    anyway = [Spell(f"a{at + 1}", at, float(at)) for at in range(0, 40, 4)]
    one = planting(contacts_of(star, range(40)), [Spell("a0", -1, 0.0), *anyway], anyway)
    decay = measure_decay([one, one], draws=DRAWS)
    assert decay.hops[1].share.value == decay.hops[1].control.value == 0.25
    assert decay.hops[1].net.value == 0
    assert decay.fit.kept.value == 0
    assert 0 < decay.fit.kept.high < 0.2


@pytest.mark.parametrize("half", [2.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_half_life_of_exponential_holding_times(half: float) -> None:
    """40 agents hold it from random times on, and lose it after exponential ones or not before the log's end."""
    found, wrong = [], 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        decay = measure_decay([_losing(rng, half / math.log(2)) for _ in range(8)], draws=DRAWS)
        found.append(decay.loss.half_life.interval[1:3])
        wrong += decay.loss.p < 0.05
        assert 0 < decay.loss.losses < decay.loss.spells == 8 * 40
    assert covered(found, half) >= 90
    assert wrong <= 12  # of 100 that are exponential, 5 are rejected by chance; 12 or fewer with probability 0.998


def test_holding_times_that_are_not_exponential_are_told() -> None:
    rng = np.random.default_rng(0)
    decay = measure_decay([_losing(rng, 5.0, shape=3.0) for _ in range(8)], draws=DRAWS)
    assert decay.loss.shape == pytest.approx(3, abs=0.5)
    assert decay.loss.p < 1e-6


def _losing(rng: np.random.Generator, scale: float, shape: float = 1.0) -> Planting:
    times = np.sort(np.concatenate([[0.0], rng.uniform(0, 20, 398), [20.0]]))
    spells = []
    for agent in range(40):
        begin = int(rng.integers(0, 300))
        until = times[begin] + scale * rng.weibull(shape)
        ended = until < 20
        end = int(np.searchsorted(times, until)) if ended else None
        spells.append(Spell(f"a{agent}", begin, times[begin], end, float(until) if ended else None))
    return planting(contacts_of([(0, 0, 39)], times.tolist()), spells)


def test_trials_by_hand() -> None:
    """One trial for each target of an event, of its strongest kind; none where the target holds it already."""
    rows = [
        (0, 0, 1, "exposure"),  # 0 holds it, 1 takes it
        (1, 0, 2, "read"),  # 0 and 1 hold it: one trial of 2, an exposure; fails
        (1, 1, 2, "exposure"),
        (1, 3, 2, "interaction"),  # 3 does not hold it
        (2, 3, 4, "interaction"),  # nobody holds it, but 4 begins to
        (3, 0, 1, "interaction"),  # 1 holds it already; loses it here
        (4, 4, 1, "interaction"),  # 1 takes it again
        (5, 2, 3, "interaction"),  # nobody holds it, and nothing happens
    ]
    spells = [Spell("a0", -1, 0.0), Spell("a1", 0, 0.0, 3, 3.0), Spell("a4", 2, 2.0), Spell("a1", 4, 4.0)]
    contacts = contacts_of([row[:3] for row in rows], range(6), [row[3] for row in rows])
    decay = measure_decay([planting(contacts, spells)])
    told = {row.kind: (row.successes, row.trials) for row in decay.transmission}
    assert told == {"all": (2, 3), "interaction": (1, 1), "exposure": (1, 2)}
    assert list(told) == ["all", "interaction", "exposure"]
    assert (decay.spontaneous.successes, decay.spontaneous.trials) == (1, 2)
    # 1 at 1 hop, 2 at 1 hop, 3 at 2 hops over 2; 4 met 3 too early
    assert [(share.agents, share.holders) for share in decay.hops] == [(1, 1), (2, 1), (1, 0)]
    assert [(share.at, share.agents, share.holders) for share in decay.times[::4]] == [
        (0, 1, 1),
        (1.25, 2, 1),
        (2.5, 2, 1),
        (3.75, 2, 0),
        (5, 3, 1),
    ]
    assert (decay.loss.losses, decay.loss.held) == (1, 5 + 3 + 3 + 1)
    assert decay.loss.rate.value == pytest.approx(1 / 12)
    assert any("multiple exposures" in note for note in decay.notes)
    assert any("one planting" in note for note in decay.notes)


def test_one_hop_is_fitted_by_its_share_and_two_by_likelihood() -> None:
    assert fit_hops([1], [3], [10], [0]) == pytest.approx(0.3)
    assert fit_hops([1, 2], [4, 0], [10, 0], [0, 0]) == pytest.approx(0.4)
    # 6 of 10 and 3 of 10: the greatest of the likelihood on a fine grid
    grid = np.linspace(0.01, 0.99, 98001)
    likelihood = 6 * np.log(grid) + 4 * np.log(1 - grid) + 3 * np.log(grid**2) + 7 * np.log(1 - grid**2)
    assert fit_hops([1, 2], [6, 3], [10, 10], [0, 0]) == pytest.approx(grid[likelihood.argmax()], abs=1e-4)
    rows = fit_hops([1, 2, 3000], [[0, 0, 0], [5, 5, 5], [0, 0, 1]], [5, 5, 5], [0, 0, 0])
    assert rows[:2].tolist() == [0, 1]
    assert 0.99 < rows[2] < 1
    assert math.isnan(fit_hops([1, 2], [0, 0], [0, 0], [0, 0]))


def test_a_study_goes_to_json_and_back() -> None:
    decay = measure_decay([market(np.random.default_rng(3), 0.5) for _ in range(3)], draws=DRAWS)
    again = msgspec.json.decode(msgspec.json.encode(decay), type=Decay)
    assert again.transmission == decay.transmission
    assert again.loss.half_life.value is None  # nobody lost it: infinite
    assert msgspec.json.encode(again) == msgspec.json.encode(decay)


def test_a_planting_that_nobody_meets() -> None:
    """The seed takes part in nothing: no trial, no hop, no fit, and no error."""
    contacts = contacts_of([(0, 0, 1)], [0.0, 1.0])
    alone = Planting(contacts, reach(contacts, {"loner": 0}), Holdings((Spell("loner", -1, 0.0),), 2, 0.0, 1.0), NOBODY)
    decay = measure_decay([alone, alone])
    assert [(share.at, share.agents, share.holders) for share in decay.hops] == [(0, 2, 2)]
    assert math.isnan(decay.fit.kept.value)
    assert math.isnan(decay.transmission[0].rate.value)
    assert decay.loss.rate.value == 0
    assert [(row.carriers, row.carried) for row in decay.reproduction] == [(2, 0)]


def test_agreeing_plantings_are_not_certain() -> None:
    one = planting(contacts_of([(0, 0, 1)], [0.0, 1.0]), [Spell("a0", -1, 0.0)])
    rate = measure_decay([one] * 8).transmission[0].rate
    assert (rate.value, rate.low, rate.n) == (0, 0, 8)
    assert rate.high == pytest.approx(0.3244, abs=1e-3)  # Wilson, 0 of 8


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InputError, match="no planting"):
        measure_decay([])
    good = planting(contacts_of([(0, 0, 1)], [0.0]), [Spell("a0", -1, 0.0)])
    with pytest.raises(InputError, match="contacts of 1 events, holdings of 0"):
        measure_decay([Planting(good.contacts, good.reach, NOBODY, NOBODY)])
