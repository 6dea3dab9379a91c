"""What agents do: each method says which events there are and what happens in them; ``turn`` is how an agent acts."""

from simengine.methods.catalog import (
    METHODS,
    MethodSettings,
    Registered,
    corpora,
    make,
    prompts,
    register,
    strategies,
    tools,
)
from simengine.methods.method import Handler, Method, Ranks, Trial
from simengine.methods.planting import Planting, PlantSettings, check_plantings
from simengine.methods.studies import STUDIES
from simengine.methods.study import Ground, Study, StudyKind

__all__ = [
    "METHODS",
    "STUDIES",
    "Ground",
    "Handler",
    "Method",
    "MethodSettings",
    "PlantSettings",
    "Planting",
    "Ranks",
    "Registered",
    "Study",
    "StudyKind",
    "Trial",
    "check_plantings",
    "corpora",
    "make",
    "prompts",
    "register",
    "strategies",
    "tools",
]
