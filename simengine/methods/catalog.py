"""The methods by name: a method can be taken out by deleting its files and its line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from simengine.data import Dataset
from simengine.methods.agentcf import AgentCF, AgentCFSettings
from simengine.methods.method import Method
from simengine.methods.turn import Asker

MethodSettings: TypeAlias = AgentCFSettings
"""What a scenario may say under ``method``, told apart by ``kind``."""

METHODS: Mapping[str, type[AgentCF]] = MappingProxyType({"agentcf": AgentCF})


def make(settings: MethodSettings, dataset: Dataset, asker: Asker, seed: int) -> Method:
    """The method that the settings ask for, on this data set."""
    return METHODS[settings.kind](settings, dataset, asker, seed)
