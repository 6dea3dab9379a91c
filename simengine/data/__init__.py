"""Data sets: reading them, splitting them, drawing negatives, inventing small markets. Knows no agent and no model."""

from __future__ import annotations

from simengine.data.dataset import Case, Dataset, Interaction, Interactions, Item, Unit
from simengine.data.load import load
from simengine.data.negatives import PopularityNegatives, RecordedNegatives, with_drawn_candidates
from simengine.data.settings import AtomicSettings, DataSettings, MarketSettings

__all__ = [
    "AtomicSettings",
    "Case",
    "DataSettings",
    "Dataset",
    "Interaction",
    "Interactions",
    "Item",
    "MarketSettings",
    "PopularityNegatives",
    "RecordedNegatives",
    "Unit",
    "load",
    "with_drawn_candidates",
]
