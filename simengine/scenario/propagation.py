"""What became of planted preferences: a run with its plantings is held against its control, which is a fork of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

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
from simengine.scenario.variants import has_variants


@dataclass(frozen=True)
class Pair:
    """A run with plantings and its control, which may be missing."""

    name: str
    treatment: Path
    control: Path | None


class FalsePositive(msgspec.Struct, frozen=True):
    """A user who said that it holds a statement which cannot have come to it."""

    run: str
    user: str
    at: str
    preference: str


class Probing(msgspec.Struct, frozen=True):
    """What the probes of a time and statement were answered: of ``users`` asked, how many hold it, by each way.

    ``unread`` answers could not be read; ``control`` is how many hold it by their answers in the control.
    """

    at: str
    preference: str
    users: int
    answers: int
    words: int
    similar: int | None
    unread: int
    control: int | None


class Spread(msgspec.Struct, frozen=True):
    """All that was found: ``decay.json``.

    ``outside`` are agents whose memories differ from the control's though nothing leads to them, of which there are
    none in a sound run; ``false_positives`` the probes that were answered with yes where nothing leads to the user.
    """

    runs: tuple[str, ...]
    decay: Decay
    probes: tuple[Probing, ...]
    agreement: tuple[Agreement, ...]
    false_positives: tuple[FalsePositive, ...]
    outside: tuple[Outside, ...]


def pairs(folders: Sequence[Path], control: Path | None = None) -> list[Pair]:
    """The runs with plantings in these folders, each with its control.

    In a folder of variants the control is the variant without plantings. Raises :class:`InputError` where there is no
    run with plantings.
    """
    found: list[Pair] = []
    for folder in folders:
        runs = sorted(path for path in folder.iterdir() if path.is_dir()) if has_variants(folder) else [folder]
        planted = {path: _is_planted(path) for path in runs}
        without = [path for path, enabled in planted.items() if not enabled]
        beside = control or (without[0] if len(without) == 1 else None)
        found += [Pair(path.name, path, _control_of(path, without, beside)) for path, yes in planted.items() if yes]
    if not found:
        raise InputError(
            "no preference was planted in these runs",
            file=str(folders[0]) if folders else None,
            remedy="say `plant: {statements: [{preference: ..., seeds: {random: 1}}]}` in the scenario",
        )
    return found


def _is_planted(folder: Path) -> bool:
    plant = read(Folder.of(folder).scenario)[0].plant
    return plant.enabled and bool(plant.statements)


def _control_of(treatment: Path, without: Sequence[Path], beside: Path | None) -> Path | None:
    """The run without plantings that was forked from this one; else the only one there is."""
    for path in without:
        with Reader(Folder.of(path).events) as reader:
            parent = reader.provenance.parent
        if parent is not None and Path(parent).resolve() == treatment.resolve():
            return path
    return beside


class _Read:
    """One log, read once: who holds which statement when, the probes, and where statements were planted."""

    def __init__(self, folder: Path, statements: Sequence[str]) -> None:
        slots = known_by(folder)
        readers = [HoldingsReader(Preference(text), {}, tuple(slots.values())) for text in statements]
        probes = ProbeReader(slots["user"])
        self.seeds: list[dict[str, int]] = [{} for _ in statements]
        for position, line in enumerate(Reader(Folder.of(folder).events)):
            probes.take(line)
            for reader in readers:
                reader.take(line)
            if line.kind == PLANT:
                self.seeds[line.data["statement"]][f"user:{line.data['user']}"] = position
        self.holdings: list[Holdings] = [reader.holdings() for reader in readers]
        self.probed: list[Probed] = probes.probed


def measure_spread(found: Sequence[Pair], *, seed: int = 0) -> Spread:
    """Everything that is measured of these runs; see :class:`Spread`."""
    plantings: list[Planting] = []
    strays: list[Outside] = []
    positives: list[FalsePositive] = []
    treated: list[Probed] = []
    controls: list[Probed] = []
    for pair in found:
        scenario = read(Folder.of(pair.treatment).scenario)[0]
        statements = [statement.preference for statement in scenario.plant.statements]
        mine = _Read(pair.treatment, statements)
        other = None if pair.control is None else _Read(pair.control, statements)
        contacts = read_contacts(_lines(pair.treatment))
        reached = [reach(contacts, seeds) for seeds in mine.seeds]
        nobody = Holdings((), mine.holdings[0].events, mine.holdings[0].start, mine.holdings[0].finish)
        anyway = [nobody for _ in statements] if other is None else other.holdings
        plantings += [Planting(contacts, *parts) for parts in zip(reached, mine.holdings, anyway, strict=True)]
        positives += _false_positives(pair.name, mine.probed, reached)
        treated += mine.probed
        if pair.control is not None and other is not None:
            controls += other.probed
            strays += _outside(pair.treatment, pair.control)
    probes, agreements = _probes(treated, controls, read(Folder.of(found[0].treatment).scenario)[0].embed)
    return Spread(
        runs=tuple(str(pair.treatment) for pair in found),
        decay=measure_decay(plantings, seed=seed),
        probes=probes,
        agreement=agreements,
        false_positives=tuple(positives),
        outside=tuple(strays),
    )


def _lines(folder: Path) -> Reader:
    return Reader(Folder.of(folder).events)


def _outside(treatment: Path, control: Path) -> list[Outside]:
    """The agents that differ between both runs where nothing leads to them from any planting."""
    merged = read_contacts(merge_events(_lines(control), _lines(treatment)))
    seeds = {
        f"user:{name.rpartition('/')[2]}": position
        for position, name in enumerate(merged.events)
        if name.startswith(f"{PLANT}/")
    }
    return outside(reach(merged, seeds), _lines(control), _lines(treatment))


def _false_positives(run: str, probed: Sequence[Probed], reached: Sequence[Reach]) -> list[FalsePositive]:
    since = [dict(zip(each.agents, each.since.tolist(), strict=True)) for each in reached]
    return [
        FalsePositive(run, probe.user, probe.at, probe.preference)
        for probe in probed
        if probe.holds and since[probe.statement].get(f"user:{probe.user}", NEVER) > probe.position
    ]


def _probes(
    treated: Sequence[Probed], controls: Sequence[Probed], embed: EmbedSettings
) -> tuple[tuple[Probing, ...], tuple[Agreement, ...]]:
    """Who holds what by each way of telling, and how far the ways agree."""
    if not treated:
        return (), ()
    # An embedding server is not asked for what is measured behind a run; words are compared instead.
    embedder = make_embedder(embed if embed.kind != "openai" else EmbedSettings())
    values = asyncio.run(similarities(embedder, [*treated, *controls]))
    mine, theirs = values[: len(treated)], values[len(treated) :]
    similar = is_similar(mine, theirs)
    rows: dict[tuple[str, str], list[int]] = {}
    for at, probe in enumerate(treated):
        rows.setdefault((probe.at, probe.preference), []).append(at)
    held = {(probe.user, probe.at, probe.preference) for probe in controls if probe.holds}
    told = tuple(
        Probing(
            at=when,
            preference=text,
            users=len(places),
            answers=sum(bool(treated[at].holds) for at in places),
            words=sum(treated[at].words for at in places),
            similar=int(similar[places].sum()) if controls else None,
            unread=sum(treated[at].holds is None for at in places),
            control=sum((treated[at].user, when, text) in held for at in places) if controls else None,
        )
        for (when, text), places in rows.items()
    )
    answered = [at for at, probe in enumerate(treated) if probe.holds is not None]
    answers, words = ([bool(getattr(treated[at], name)) for at in answered] for name in ("holds", "words"))
    ways = [agreement("answers", "words", answers, words)]
    if controls:
        by_similarity = np.asarray(similar)[answered].tolist()
        ways += [agreement("answers", "similarity", answers, by_similarity)]
        ways += [agreement("words", "similarity", words, by_similarity)]
    return told, tuple(ways)
