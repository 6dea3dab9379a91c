"""Rankers that are no agents: the baselines that agents are compared with, behind one protocol."""

from __future__ import annotations

from simengine.rankers.base import Ranker
from simengine.rankers.catalog import RANKERS, known_ranker

__all__ = ["RANKERS", "Ranker", "known_ranker"]
