"""Contacts as trials: in which of them could a preference have been passed on, and in which was it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simengine.measure.contacts import READ, Contacts, is_grouping
from simengine.measure.held import Held

STRENGTH = ("interaction", "exposure", "membership", "attendance", "group", "venue", READ)
"""Kinds of contact, the strongest first; kinds not named here are weaker, in the order of their names."""


@dataclass(frozen=True)
class Trials:
    """Successes and trials: of all contacts, of each kind (the strongest first), and where no source held it before."""

    all: tuple[int, int]
    by_kind: Mapping[str, tuple[int, int]]
    spontaneous: tuple[int, int]


def contact_trials(contacts: Contacts, held: Held) -> Trials:
    """The trials of one log; ``held`` is over the contacts' agents.

    All contacts of one target in one event are one trial, as the memory is written once in view of them all. It is one
    where the target, a user or an item, does not hold the preference before the event, and of the strongest kind among
    the sources that do; without any such source it is a chance to come to hold it spontaneously. It succeeds where the
    target holds it after the event.
    """
    able = ~np.array([is_grouping(agent) for agent in contacts.agents], np.bool_)
    open_ = able[contacts.target] & ~held.before(contacts.target, contacts.position)
    position, target, kind = (each[open_] for each in (contacts.position, contacts.target, contacts.kind))
    names = sorted(contacts.kinds, key=by_strength)
    rank = np.array([names.index(kind) for kind in contacts.kinds], np.int64)
    strength = np.where(held.before(contacts.source[open_], position), rank[kind], len(names))
    order = np.lexsort((strength, target, position))
    position, target, strength = position[order], target[order], strength[order]
    first = np.ones(len(position), np.bool_)
    first[1:] = (position[1:] != position[:-1]) | (target[1:] != target[:-1])
    success = held.after(target[first], position[first])
    tried = np.bincount(strength[first], minlength=len(names) + 1)
    passed = np.bincount(strength[first][success], minlength=len(names) + 1)
    pairs = [(int(good), int(total)) for good, total in zip(passed, tried, strict=True)]
    by_kind = {name: pair for name, pair in zip(names, pairs, strict=False) if pair[1]}
    return Trials((int(passed[:-1].sum()), int(tried[:-1].sum())), by_kind, pairs[-1])


def by_strength(kind: str) -> tuple[int, str]:
    """A key that sorts kinds of contact, the strongest first."""
    return (STRENGTH.index(kind) if kind in STRENGTH else len(STRENGTH)), kind
