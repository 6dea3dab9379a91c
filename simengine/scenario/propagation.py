"""What became of planted preferences: a run with its plantings is held against its control, which is a fork of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from pathlib import Path

import msgspec
import numpy as np

from simengine.data import Dataset
from simengine.embed import EmbedSettings, make_embedder
from simengine.errors import InputError
from simengine.measure.contacts import merge_events, read_contacts
from simengine.measure.decay import Decay, Planting, measure_decay
from simengine.measure.holding import Holdings, HoldingsReader
from simengine.measure.preference import Preference
from simengine.measure.probes import Agreement, Probed, ProbeReader, agreement, is_similar, similarities
from simengine.measure.reachability import NEVER, Outside, Reach, outside, reach
from simengine.methods.planting import PLANT
from simengine.runlog import Reader
from simengine.scenario.folder import Folder
from simengine.scenario.loading import known_by
from simengine.scenario.schema import read
from simengine.scenario.spread import FalsePositive, Probing, RunDecay, Spread
from simengine.scenario.variants import VARIANTS, has_variants
from simengine.scenario.yamlfile import tree
from simengine.world import user


@dataclass(frozen=True)
class Pair:
    """A run with plantings and its control, which may be missing."""

    name: str
    treatment: Path
    control: Path | None


def pairs(folders: Sequence[Path], control: Path | None = None) -> list[Pair]:
    """The runs with plantings in these folders, or in their folders of variants, each with its control.

    That is the run without plantings that one of the two was forked from, or else ``control``, or else the only run
    without plantings. Raises :class:`InputError` where there is no run with plantings.
    """
    planted = {run: _is_planted(run) for folder in folders for run in _runs_in(folder)}
    without = [run for run, yes in planted.items() if not yes]
    beside = control or (without[0] if len(without) == 1 else None)
    treatments = [run for run, yes in planted.items() if yes]
    if not treatments:
        raise InputError(
            "no preference was planted in these runs",
            file=str(folders[0]) if folders else None,
            remedy="say `plant: {statements: [{preference: ..., seeds: {random: 1}}]}` in the scenario",
        )
    names = [run.name for run in treatments]
    telling = len(set(names)) == len(names)
    return [Pair(run.name if telling else str(run), run, _control_of(run, without) or beside) for run in treatments]


def has_plantings(folder: Path) -> bool:
    """Whether the run of a folder, or one of its variants, was told to plant a preference."""
    return any(map(_is_planted, _runs_in(folder)))


def _runs_in(folder: Path) -> list[Path]:
    """The run of a folder, or those of its variants that there are, in their order."""
    if not has_variants(folder):
        return [folder]
    variants = tree(folder / VARIANTS).value
    assert isinstance(variants, dict)
    return [folder / name for name in variants if (folder / name).is_dir()]


def _is_planted(folder: Path) -> bool:
    plant = read(Folder.of(folder).scenario)[0].plant
    return plant.enabled and bool(plant.statements)


def _control_of(treatment: Path, without: Sequence[Path]) -> Path | None:
    """The run without plantings of which one was forked from the other."""
    for path in without:
        if _parent(path) == treatment.resolve() or _parent(treatment) == path.resolve():
            return path
    return None


def _parent(folder: Path) -> Path | None:
    with _lines(folder) as reader:
        parent = reader.provenance.parent
    return None if parent is None else Path(parent).resolve()


def _lines(folder: Path) -> Reader:
    return Reader(Folder.of(folder).events)


@dataclass(frozen=True)
class _Seed:
    """An agent in whom a statement, known by its number, was planted, with the event and its position in the log."""

    agent: str
    statement: int
    event: str
    position: int


class _Read:
    """One log, read once: who of ``agents`` holds which statement when, the probes, and in whom it was planted."""

    def __init__(self, folder: Path, statements: Sequence[str], data: Dataset | None, agents: Sequence[str]) -> None:
        known = known_by(folder, data)
        first = {agent: known.initial(agent) for agent in agents}
        readers = [HoldingsReader(Preference(text), first, tuple(known.slots.values())) for text in statements]
        probes = ProbeReader(known.slots["user"], known.initial)
        self.problem = known.problem
        self.planted: list[_Seed] = []
        log = _lines(folder)
        for position, line in enumerate(log):
            probes.take(line)
            for reader in readers:
                reader.take(line)
            if line.kind == PLANT:
                self.planted.append(_Seed(user(line.data["user"]), line.data["statement"], line.event, position))
        self.holdings: list[Holdings] = [reader.holdings() for reader in readers]
        self.probed: list[Probed] = probes.probed
        self.sum, self.finished = log.sum, log.end is not None


class _Found:
    """What was found of one run with plantings and of its control; ``controls`` are the probes of that one."""

    def __init__(self, pair: Pair, data: Dataset | None) -> None:
        self.pair = pair
        scenario = read(Folder.of(pair.treatment).scenario)[0]
        statements = [statement.preference for statement in scenario.plant.statements]
        contacts = read_contacts(_lines(pair.treatment))
        mine = _Read(pair.treatment, statements, data, contacts.agents)
        seeds: list[dict[str, int]] = [{} for _ in statements]
        for seed in mine.planted:
            seeds[seed.statement][seed.agent] = seed.position
        reached = [reach(contacts, planted) for planted in seeds]
        anyway = [Holdings((), held.events, held.start, held.finish) for held in mine.holdings]
        self.notes = [*_notes(pair.name, statements, seeds, mine)]
        self.controls: list[Probed] | None = None
        self.outside: list[Outside] = []
        if pair.control is not None:
            other = _Read(pair.control, statements, data, contacts.agents)
            anyway, self.controls = other.holdings, other.probed
            self.notes += [] if other.finished else [_unfinished(pair.control.name)]
            self.outside = _outside(pair.treatment, pair.control, [*other.planted, *mine.planted])
        parts = zip(reached, mine.holdings, anyway, strict=True)
        self.plantings = [Planting(contacts, *part) for part in compress(parts, seeds)]
        self.sum = mine.sum
        self.treated = mine.probed
        self.positives = _false_positives(pair.name, mine.probed, reached)

    def told(self, decay: Decay) -> RunDecay:
        """The run as it is told."""
        control = None if self.pair.control is None else str(self.pair.control)
        return RunDecay(self.pair.name, str(self.pair.treatment), control, decay)


def _notes(run: str, statements: Sequence[str], seeds: Sequence[Mapping[str, int]], log: _Read) -> Iterator[str]:
    """What to say of a run's plantings, each of which has its seeds, and of its log."""
    if not log.finished:
        yield _unfinished(run)
    for text, planted in zip(statements, seeds, strict=True):
        if not planted:
            yield f'"{text}" was planted in nobody in {run} (that failed, or the log ends before it): it is left out.'
    for one, other in combinations(statements, 2):
        if Preference(one).held_in(other) or Preference(other).held_in(one):
            yield (
                f'"{one}" and "{other}" are told by the same words in {run}: whoever holds the one counts as a holder '
                "of the other."
            )
    if log.problem:
        yield f"What agents of {run} start with is not known ({log.problem}): nobody is taken to hold it at first."


def _unfinished(run: str) -> str:
    return (
        f"{run} is not finished: what is measured ends with its log, and agents that differ from the control beyond "
        "that do so for this reason."
    )


async def measure_spread(found: Sequence[Pair], *, data: Dataset | None = None, seed: int = 0) -> Spread:
    """Everything that is measured of these runs; see :class:`Spread`.

    ``data`` are those of runs whose data were handed over in Python. Raises :class:`InputError` where nothing was
    planted, and for runs of one history that would be taken together.
    """
    each = [_Found(pair, data) for pair in found]
    probes, agreements = await _probes(each, read(Folder.of(found[0].treatment).scenario)[0].embed)
    together = None
    if len({_made_of(pair.treatment) for pair in found}) == 1:
        _check_different(each)
        together = _measured(each, seed)
    alone = len(each) == 1 and together is not None
    decays = [together] if alone and together else [_measured([one], seed) for one in each]
    return Spread(
        runs=tuple(one.told(decay) for one, decay in zip(each, decays, strict=True)),
        decay=together,
        probes=probes,
        agreement=agreements,
        false_positives=tuple(positive for one in each for positive in one.positives),
        outside=tuple(stray for one in each for stray in one.outside),
    )


def _measured(found: Sequence[_Found], seed: int) -> Decay:
    """What is measured of the plantings of some runs, with a note of each that did not come about."""
    plantings = [planting for one in found for planting in one.plantings]
    if not plantings:
        raise InputError(
            "none of the preferences was planted: that failed, or the log ends before it",
            file=str(found[0].pair.treatment),
            remedy="`simengine trace RUN --event plant/0` shows what became of the first one",
        )
    decay = measure_decay(plantings, seed=seed)
    return msgspec.structs.replace(decay, notes=(*decay.notes, *(note for one in found for note in one.notes)))


def _check_different(found: Sequence[_Found]) -> None:
    """Refuse to take a run together with one of the same history, as its plantings would count twice."""
    seen: dict[str, Path] = {}
    for one in found:
        if one.sum in seen:
            raise InputError(
                f"this run has the same history as {seen[one.sum]}: taken together, its plantings would count twice",
                remedy="give each run once; runs of other seeds are others",
                file=str(one.pair.treatment),
            )
        seen[one.sum] = one.pair.treatment


def _made_of(folder: Path) -> bytes:
    """What a run was made of but its seed."""
    with _lines(folder) as reader:
        header = reader.header
    return msgspec.json.encode((header.scenario, header.data, header.prompts), order="sorted")


def _outside(treatment: Path, control: Path, planted: Iterable[_Seed]) -> list[Outside]:
    """The agents that differ between both runs where nothing leads to them from any of what was planted in either."""
    merged = read_contacts(merge_events(_lines(control), _lines(treatment)))
    positions = {event: position for position, event in enumerate(merged.events)}
    seeds: dict[str, int] = {}
    for seed in planted:
        position = positions[seed.event]
        seeds[seed.agent] = min(seeds.get(seed.agent, position), position)
    return outside(reach(merged, seeds), _lines(control), _lines(treatment))


def _false_positives(run: str, probed: Sequence[Probed], reached: Sequence[Reach]) -> list[FalsePositive]:
    since = [dict(zip(each.agents, each.since.tolist(), strict=True)) for each in reached]
    return [
        FalsePositive(run, probe.user, probe.at, probe.preference)
        for probe in probed
        if probe.holds and since[probe.statement].get(f"user:{probe.user}", NEVER) > probe.position
    ]


async def _probes(found: Sequence[_Found], embed: EmbedSettings) -> tuple[tuple[Probing, ...], tuple[Agreement, ...]]:
    """Who holds what by each way of telling, and how far the ways agree over all runs.

    Without any control there is nothing that similarities could be compared with.
    """
    treated = [probe for one in found for probe in one.treated]
    controls = [probe for one in found for probe in one.controls or ()]
    if not treated:
        return (), ()
    # An embedding server is not asked for what is measured behind a run; words are compared instead.
    embedder = make_embedder(embed if embed.kind != "openai" else EmbedSettings())
    values = await similarities(embedder, [*treated, *controls])
    similar = is_similar(values[: len(treated)], values[len(treated) :]).tolist() if controls else None
    rows: list[Probing] = []
    done = 0
    for one in found:
        here = slice(done, done := done + len(one.treated))
        rows += _probings(one, None if similar is None else similar[here])
    ways = {"answers": [bool(probe.holds) for probe in treated], "words": [probe.words for probe in treated]}
    if similar is not None:
        ways["similarity"] = similar
    read = [at for at, probe in enumerate(treated) if probe.holds is not None]
    return tuple(rows), tuple(_agreements({name: [told[at] for at in read] for name, told in ways.items()}))


def _agreements(ways: dict[str, list[bool]]) -> Iterator[Agreement]:
    names = list(ways)
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            yield agreement(first, second, ways[first], ways[second])


def _probings(one: _Found, similar: Sequence[bool] | None) -> Iterable[Probing]:
    """The probes of one run, by time and statement."""
    rows: dict[tuple[str, str], list[int]] = {}
    for at, probe in enumerate(one.treated):
        rows.setdefault((probe.at, probe.preference), []).append(at)
    held = {(probe.user, probe.at, probe.preference) for probe in one.controls or () if probe.holds}
    for (when, text), places in rows.items():
        probes = [one.treated[at] for at in places]
        yield Probing(
            run=one.pair.name,
            at=when,
            preference=text,
            users=len(places),
            answers=sum(bool(probe.holds) for probe in probes),
            words=sum(probe.words for probe in probes),
            similar=None if similar is None else int(np.sum([similar[at] for at in places])),
            unread=sum(probe.holds is None for probe in probes),
            control=None if one.controls is None else sum((probe.user, when, text) in held for probe in probes),
        )
