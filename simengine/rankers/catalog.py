"""The rankers by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from simengine.rankers.base import Ranker
from simengine.rankers.pop import Pop
from simengine.rankers.uniform import Random

RANKERS: Mapping[str, type[Ranker]] = MappingProxyType({ranker.name: ranker for ranker in (Random, Pop)})
