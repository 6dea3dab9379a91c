"""Data sets: reading them, splitting them, drawing negatives, inventing small markets. Knows no agent and no model."""

from __future__ import annotations

from simengine.data.dataset import Case, Dataset, Interaction, Interactions, Item, Unit
from simengine.data.load import load
from simengine.data.mapped import from_frame
from simengine.data.market_truth import Truth, market_truth
from simengine.data.negatives import (
    PopularityNegatives,
    RecordedNegatives,
    by_popularity,
    redrawn,
    with_drawn_candidates,
)
from simengine.data.settings import (
    AmazonSettings,
    AtomicSettings,
    AudienceSettings,
    CsvSettings,
    DataSettings,
    MarketSettings,
    MovieLensSettings,
    ParquetSettings,
    SteamSettings,
)

__all__ = [
    "AmazonSettings",
    "AtomicSettings",
    "AudienceSettings",
    "Case",
    "CsvSettings",
    "DataSettings",
    "Dataset",
    "Interaction",
    "Interactions",
    "Item",
    "MarketSettings",
    "MovieLensSettings",
    "ParquetSettings",
    "PopularityNegatives",
    "RecordedNegatives",
    "SteamSettings",
    "Truth",
    "Unit",
    "by_popularity",
    "from_frame",
    "load",
    "market_truth",
    "redrawn",
    "with_drawn_candidates",
]
