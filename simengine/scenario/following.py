"""Follows a preference through a run, and finds the items of a run by what people call them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rapidfuzz import fuzz, process

from simengine.data import Item
from simengine.errors import InputError
from simengine.measure.chain import Followed
from simengine.measure.holding import HoldingsReader
from simengine.measure.preference import Preference
from simengine.methods.planting import PLANT
from simengine.runlog.trace import Trace
from simengine.scenario.loading import known_by, load_run
from simengine.world import item


def follow(folder: Path, trace: Trace, text: str) -> Followed:
    """Who came to hold a preference in a run and how; ``trace`` is that of the run.

    Memories are those by which others know an agent, as in the measures of decay. Raises :class:`InputError` for a text
    that states no preference, and where the run's data, which its method needs, are not here.
    """
    preference = Preference(text)
    initial = {agent: trace.begun(agent) for agent in trace.agents}
    reader = HoldingsReader(preference, initial, tuple(known_by(folder).slots.values()))
    seeds: dict[str, list[str]] = {}
    for line in trace:
        reader.take(line)
        if line.kind == PLANT and preference.held_in(line.data["preference"]):
            for memory in line.memories:
                seeds.setdefault(memory.agent, []).append(memory.ref)
    return Followed(trace, preference, reader.holdings(), seeds)


def find_item(folder: Path, trace: Trace, name: str) -> str:
    """The agent of an item that is named by its id or by its title as in the data, whatever its case.

    Raises :class:`InputError` for one that the run does not know, with the nearest ids and titles, and for a title of
    several items. Without the run's data only ids are known.
    """
    there = set(trace.agents)
    bare = name.removeprefix("item:")
    if item(bare) in there:
        return item(bare)
    setup = load_run(folder).setup
    items: Mapping[str, Item] = setup.dataset.items if setup is not None else {}
    called = [ident for ident, found in items.items() if name.casefold() in _titles(found)]
    met = [ident for ident in called if item(ident) in there]
    if len(met) == 1:
        return item(met[0])
    if met:
        raise InputError("several items have this title", remedy=f"name one by its id: {', '.join(met)}", value=name)
    if called or bare in items:
        raise InputError("nobody met this item in the run", remedy="name one that the log tells of", value=name)
    raise _unknown(name, items, trace)


def _titles(found: Item) -> tuple[str, str]:
    return found.title.casefold(), found.raw_title.casefold()


def _unknown(name: str, items: Mapping[str, Item], trace: Trace) -> InputError:
    """The error for an item that is not there: it names the nearest ids and titles."""
    bare = [agent.removeprefix("item:") for agent in trace.agents if agent.startswith("item:")]
    known = [(ident, ident) for ident in bare if ident not in items]
    known += [(text, f"{found.title} ({ident})") for ident, found in items.items() for text in (ident, found.title)]
    near = process.extract(name.casefold(), [text.casefold() for text, _ in known], scorer=fuzz.ratio, limit=6)
    shown = list(dict.fromkeys(known[place][1] for _, _, place in near))[:3]
    remedy = f"Nearest: {', '.join(shown)}." if shown else "The log names no item."
    return InputError("there is no such item in the run, by id or by title", remedy=remedy, value=name)
