"""From settings to a data set: each format has a loader of its own."""

from __future__ import annotations

from simengine.data.dataset import Dataset
from simengine.data.folder import load_folder
from simengine.data.mapped import load_mapped
from simengine.data.market import make_market
from simengine.data.settings import AtomicSettings, DataSettings, MarketSettings


def load(settings: DataSettings) -> Dataset:
    """The data set that the settings describe. Raises :class:`InputError` with file, line and field."""
    if isinstance(settings, MarketSettings):
        return make_market(settings)
    if isinstance(settings, AtomicSettings):
        return load_folder(settings)
    return load_mapped(settings)
