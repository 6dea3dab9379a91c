"""A cross-domain data set by AgentCF++'s construction (section 4.1.1): what each step keeps, and what is written."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationInfo, field_validator

from simengine.data.settings import Ratio
from simengine.data.sources.amazon import Amazon
from simengine.data.sources.atomic_files import InterWriter, new_folder, write_items
from simengine.data.sources.atomic_source import AtomicFiles
from simengine.data.sources.catalogue import Found
from simengine.data.sources.construction_notes import Kept, readme, scenario_part
from simengine.data.sources.gather import Gathered, Rows, gather
from simengine.data.sources.lines import Watch
from simengine.data.sources.source import Source, found_in
from simengine.data.table import nearest
from simengine.errors import InputError


class Construction(BaseModel):
    """The numbers of the construction; the defaults are the paper's. ``until`` is the last day, in UTC.

    Without ``domains`` all are used. ``split`` says how the data set is to be split where it is used: chronologically,
    by default each user's own interactions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    domains: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    min_rating: float = 4.0
    since: date = date(2021, 10, 1)
    until: date = date(2022, 3, 31)
    min_domains: PositiveInt = 2
    min_interactions: PositiveInt = 10
    users: PositiveInt = 100
    seed: int = 0
    split: Ratio = Ratio(ratio=(0.8, 0.1, 0.1), by="user")

    @field_validator("until")
    @classmethod
    def _after_since(cls, until: date, info: ValidationInfo) -> date:
        since = info.data.get("since", until)
        if until < since:
            raise ValueError(f"the last day, {until}, is before the first, {since}")
        return until


def cross_domain(
    source: Path, out: Path, settings: Construction, watch: Watch = lambda _: None
) -> tuple[tuple[Kept, ...], tuple[str, ...]]:
    """Make the data set from a folder of Amazon reviews, or of a whole log in atomic files whose items have domains.

    Writes atomic files, ``data.yaml`` (a scenario can extend it) and ``README.md`` (what was done) to ``out``. Returns
    what each step kept, and notes. Raises :class:`InputError`, and then leaves no file; so where nobody is left.
    """
    opened = _open(source, settings)
    with new_folder(out) as new, gather(opened.logs, watch) as gathered:
        steps = _Steps(settings, gathered, source)
        rows = steps.sample([steps.narrow(block) for block in gathered.in_order()])
        chosen = {gathered.items.names[number] for number in np.unique(rows["item"]).tolist()}
        every = found_in(gathered).every
        catalogue = opened.catalogue(Found({item: every[item] for item in every if item in chosen}, every), watch)
        name = out.resolve().name
        InterWriter(new(f"{name}.inter"), gathered).write(rows)
        write_items(new(f"{name}.item"), catalogue)
        report = steps.report()
        notes = (gathered.time_note(), *gathered.repeat_notes(), *catalogue.notes(), *_few(report[-1], settings.users))
        digests = {**gathered.digests, **catalogue.digests}
        new("README.md").write(readme(name, settings.model_dump(mode="json"), report, notes, digests))
        new("data.yaml").write(scenario_part(out, settings.split))
    return report, notes


def _few(last: Kept, asked: int) -> Iterator[str]:
    if last.users < asked:
        yield f"{asked} users are asked for, {last.users} are left and all taken"


def _open(source: Path, settings: Construction) -> Source:
    if not source.is_dir():
        raise InputError("there is no such folder", remedy="Name the folder of the data.", file=str(source))
    logs, tables = (list(source.glob(pattern)) for pattern in ("*.inter", "*.item"))
    if len(logs) == len(tables) == 1:
        return AtomicFiles(source)
    if logs or tables:
        raise InputError(
            f"{len(logs)} .inter and {len(tables)} .item files are here, one of each is wanted",
            remedy="Give a folder with one whole log and its item table.",
            file=str(source),
        )
    return Amazon(source, settings.domains)


@dataclass(eq=False)
class _Tally:
    """Users, items and interactions that are left after a step, counted block by block."""

    step: str
    items: NDArray[np.bool_]
    users: int = 0
    interactions: int = 0

    def count(self, rows: Rows) -> Rows:
        self.users += len(np.unique(rows["user"]))
        self.items[rows["item"]] = True
        self.interactions += len(rows)
        return rows

    def kept(self) -> Kept:
        return Kept(self.step, self.users, int(np.count_nonzero(self.items)), self.interactions)


class _Steps:
    """The steps in their order. All but the last look at one user at a time, so blocks of whole users will do."""

    def __init__(self, settings: Construction, gathered: Gathered, source: Path) -> None:
        known = sorted(set(gathered.domains) - {""})
        _check(settings, known, gathered.rated, str(source))
        self._settings = settings
        self._domain = np.array([known.index(name) if name else -1 for name in gathered.domains], np.int32)
        self._chosen = [known.index(name) for name in settings.domains or known]
        unit = timedelta(seconds=1) if gathered.unit == "s" else timedelta(milliseconds=1)
        self._since, self._before = (
            (day - date(1970, 1, 1)) / unit for day in (settings.since, settings.until + timedelta(days=1))
        )
        names = (
            "all reviews",
            f"in the domains {', '.join(settings.domains)}" if settings.domains else f"in all {len(known)} domains",
            f"rated {settings.min_rating:g} or higher",
            f"from {settings.since} to {settings.until} (UTC)",
            f"of users in {settings.min_domains} domains or more",
            f"of users with {settings.min_interactions} interactions or more",
            f"of {settings.users} users, drawn by lot with the seed {settings.seed}",
        )
        self._tallies = [_Tally(name, np.zeros(len(self._domain), bool)) for name in names]

    def narrow(self, rows: Rows) -> Rows:
        """What the steps before the sample leave of a block of whole users."""
        everything, chosen, rated, within, several, enough, _ = self._tallies
        everything.count(rows)
        rows = chosen.count(rows[np.isin(self._domain[rows["item"]], self._chosen)])
        rows = rated.count(rows[rows["rating"] >= self._settings.min_rating])
        rows = within.count(rows[(rows["time"] >= self._since) & (rows["time"] < self._before)])
        rows = several.count(rows[self._domains_of(rows) >= self._settings.min_domains])
        _, place, counts = np.unique(rows["user"], return_inverse=True, return_counts=True)
        return enough.count(rows[counts[place] >= self._settings.min_interactions])

    def _domains_of(self, rows: Rows) -> NDArray[np.int64]:
        """For each row in how many domains its user has rows."""
        users, place = np.unique(rows["user"], return_inverse=True)
        seen = np.zeros((len(users), int(self._domain.max(initial=0)) + 1), bool)
        seen[place, self._domain[rows["item"]]] = True
        domains: NDArray[np.int64] = seen.sum(axis=1)[place]
        return domains

    def sample(self, blocks: list[Rows]) -> Rows:
        """The rows of the users that are drawn; of all where there are not more."""
        left = sum(map(len, blocks))
        if not left:
            told = "; ".join(f"{one.interactions} {one.step}" for one in self.report()[:-1])
            raise InputError(f"nobody is left: interactions {told}", remedy="Widen the step that leaves none.")
        rows = np.concatenate(blocks)
        users = rows["user"][np.sort(np.unique(rows["user"], return_index=True)[1])]  # in natural order of ids
        draws = random.Random(f"cross-domain {self._settings.seed}")
        drawn = draws.sample(users.tolist(), min(self._settings.users, len(users)))
        return self._tallies[-1].count(rows[np.isin(rows["user"], drawn)])

    def report(self) -> tuple[Kept, ...]:
        """What each step kept."""
        return tuple(tally.kept() for tally in self._tallies)


def _check(settings: Construction, known: Sequence[str], rated: bool, source: str) -> None:
    """Refuse what these data do not have."""
    if not rated:
        raise InputError("the log has no ratings", remedy="The construction needs a column rating.", file=source)
    for domain in settings.domains or ():
        if domain not in known:
            near = nearest(domain, known)
            raise InputError(
                f"there is no domain {domain}; the domains are {', '.join(known) or 'not told'}",
                remedy=f"Did you mean {near}?" if near else "Name domains that are there.",
                file=source,
            )
