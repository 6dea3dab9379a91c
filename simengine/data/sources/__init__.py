"""Data as published (Amazon Reviews, MovieLens, Steam): read in bounded memory, loaded, converted, built upon."""

from __future__ import annotations

from simengine.data.sources.construction_notes import Kept
from simengine.data.sources.convert import Converted, convert
from simengine.data.sources.cross_domain import Construction, cross_domain
from simengine.data.sources.item_table import read_items
from simengine.data.sources.lines import Reading, Watch
from simengine.data.sources.source import SourceSettings, load_source

__all__ = [
    "Construction",
    "Converted",
    "Kept",
    "Reading",
    "SourceSettings",
    "Watch",
    "convert",
    "cross_domain",
    "load_source",
    "read_items",
]
