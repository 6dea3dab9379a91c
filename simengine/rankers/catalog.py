"""The rankers by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from simengine.data.table import nearest
from simengine.rankers.base import Ranker
from simengine.rankers.bm25 import BM25
from simengine.rankers.itemknn import ItemKNN
from simengine.rankers.pop import Pop
from simengine.rankers.seqsim import SeqSim
from simengine.rankers.trained import BPR, SASRec
from simengine.rankers.uniform import Random


class RankerMaker(Protocol):
    """Makes a ranker that is yet to be fitted; ``seed`` matters to those that draw when they learn.

    Raises :class:`~simengine.errors.InputError` where a library that the ranker needs is not installed.
    """

    def __call__(self, *, seed: int = 0) -> Ranker: ...


def _seedless(kind: Callable[[], Ranker]) -> RankerMaker:
    """A maker for a ranker that draws nothing."""
    return lambda *, seed=0: kind()


RANKERS: Mapping[str, RankerMaker] = MappingProxyType(
    {
        Random.name: _seedless(Random),
        Pop.name: _seedless(Pop),
        BM25.name: _seedless(BM25),
        SeqSim.name: _seedless(SeqSim),
        ItemKNN.name: _seedless(ItemKNN),
        BPR.name: BPR,
        SASRec.name: SASRec,
    }
)


def known_ranker(name: str) -> str:
    """The name, for settings to validate with. Raises ``ValueError``, with what may be meant as its note."""
    if name not in RANKERS:
        error = ValueError(f"there is no such ranker; there are {', '.join(RANKERS)}")
        near = nearest(name, RANKERS)
        error.add_note(f"Did you mean `{near}`?" if near else "Choose one of these.")
        raise error
    return name
