"""Which items a list of titles recommends, and at which rank: by id, as a title that means no one item means none."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

import msgspec

from simengine.methods.interec.table import ItemTable
from simengine.methods.interec.vocabulary import Found

_Why: TypeAlias = Literal["invented", "ambiguous", "repeated", "outside"]

_REASON = re.compile(r"\A(\S.*?)(?:\s+[-–—]|:)\s+(?=[^\W\d_])(\S+(?:\s+\S+){2,})\Z", re.DOTALL)


class Picks(msgspec.Struct, frozen=True):
    """What an ordered list of titles came to.

    ``ranks`` has an entry for each title: the id of the item, or an empty one where the title is in vain, so that it
    takes up its rank all the same. The other fields tell these titles: ``invented`` ones mean no item of the catalogue,
    ``ambiguous`` ones several, ``repeated`` ones an item that stands before, ``outside`` ones an item that was not to
    choose from. ``beyond`` counts the titles behind the last that was allowed, which are not looked at.
    """

    ranks: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    beyond: int = 0

    @property
    def items(self) -> tuple[str, ...]:
        """The items recommended, each once, the best first."""
        return tuple(filter(None, self.ranks))


def pick(titles: Sequence[str], most: int, table: ItemTable, among: Collection[str] | None = None) -> Picks:
    """The items that the first ``most`` titles mean; ``among`` are those to choose from, where not the whole catalogue.

    A title means an item as a whole (:class:`~simengine.methods.interec.vocabulary.Titles`); where two items share one,
    it means the one that was to choose from. What is said behind a title, after a dash or a colon, is left aside where
    it is no title with it, begins with a small letter and has three words or more: a subtitle does not.
    """
    ranks: list[str] = []
    vain: dict[_Why, list[str]] = {"invented": [], "ambiguous": [], "repeated": [], "outside": []}
    for title in titles[:most]:
        meant = [table.items[at] for at in _found(title, table).named]
        there = meant if among is None else [item for item in meant if item in among]
        why: _Why | None = None
        if not meant:
            why = "invented"
        elif not there:
            why = "outside"
        elif len(there) > 1:
            why = "ambiguous"
        elif there[0] in ranks:
            why = "repeated"
        ranks.append("" if why else there[0])
        if why:
            vain[why].append(title)
    told = {name: tuple(said) for name, said in vain.items()}
    return Picks(tuple(ranks), **told, beyond=max(len(titles) - most, 0))


def _found(title: str, table: ItemTable) -> Found:
    found = table.by_title.find(title)
    reason = _REASON.match(title)
    if found.named or reason is None or not reason[2][0].islower():
        return found
    return table.by_title.find(reason[1])
