"""The room for language models: requests, prompts, replies, the journal of calls, layers and backends.

It knows no agent and no event. The rest of the house asks through a :class:`~simengine.llm.stack.Stack`.
"""

from __future__ import annotations

from simengine.llm.calls import CallStore
from simengine.llm.layers.limit import Rates
from simengine.llm.request import Completion, LanguageModel, Message, Request, Sampling, Usage
from simengine.llm.settings import LLMSettings
from simengine.llm.stack import Stack, Stats, build, make_backend, replay

__all__ = [
    "CallStore",
    "Completion",
    "LLMSettings",
    "LanguageModel",
    "Message",
    "Rates",
    "Request",
    "Sampling",
    "Stack",
    "Stats",
    "Usage",
    "build",
    "make_backend",
    "replay",
]
