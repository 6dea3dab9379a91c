"""What studies found, read out of a run's log: one reading a study, by the kind of its stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simengine.data import Dataset
from simengine.measure.studies.advertising import AdvertisingReading
from simengine.measure.studies.chat import ChatReading
from simengine.measure.studies.cold_start import ColdStartReading
from simengine.measure.studies.converse import ConverseReading
from simengine.measure.studies.discussion import DiscussionReading
from simengine.measure.studies.one_turn import OneTurnReading
from simengine.measure.studies.reading import Found, PairedReading, Reading, Spoken
from simengine.measure.studies.reflection import Reflection
from simengine.measure.studies.reviews import ReviewsReading

READINGS: Mapping[str, Callable[[str, Dataset], Reading]] = {
    "optimize": Reflection,
    "cold_start": ColdStartReading,
    "advertising": AdvertisingReading,
    "reviews": ReviewsReading,
    "discussion": DiscussionReading,
    "converse": ConverseReading,
    "chat": ChatReading,
    "one_turn": OneTurnReading,
}
"""Makes a reading of the stage of this name on these data."""

__all__ = ["READINGS", "Found", "PairedReading", "Reading", "Spoken"]
