"""From settings to a data set: each format has a loader of its own."""

from __future__ import annotations

from simengine.data.audience import make_audience
from simengine.data.dataset import Dataset
from simengine.data.folder import load_folder
from simengine.data.mapped import load_mapped
from simengine.data.market import make_market
from simengine.data.settings import (
    AtomicSettings,
    AudienceSettings,
    CsvSettings,
    DataSettings,
    GivenSettings,
    MarketSettings,
    ParquetSettings,
)
from simengine.data.sources import load_source
from simengine.data.sources.lines import LoggedReading
from simengine.errors import InputError


def load(settings: DataSettings) -> Dataset:
    """The data set that the settings describe. Raises :class:`InputError` with file, line and field."""
    if isinstance(settings, GivenSettings):
        raise InputError(
            "these data are handed over in Python, not read from a file",
            field="data.format",
            remedy="call run, resume or replay with data=simengine.from_frame(...)",
        )
    if isinstance(settings, MarketSettings):
        return make_market(settings)
    if isinstance(settings, AudienceSettings):
        return make_audience(settings, LoggedReading())
    if isinstance(settings, AtomicSettings):
        return load_folder(settings)
    if isinstance(settings, CsvSettings | ParquetSettings):
        return load_mapped(settings)
    return load_source(settings, LoggedReading())
