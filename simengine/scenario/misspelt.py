"""Finds names in a scenario that nothing answers to: tasks under ``llm.roles``, models under ``llm.prices``."""

from __future__ import annotations

from collections.abc import Iterable

from simengine.data.table import nearest
from simengine.errors import InputError
from simengine.llm.prompts import PromptBook
from simengine.llm.task import tasks_of
from simengine.llm.tokens import EMBED
from simengine.scenario.schema import Scenario


def check_names(scenario: Scenario, prompts: PromptBook) -> None:
    """Raise :class:`InputError` for a role that no task goes by, or a price whose model must be another one.

    ``prompts`` are those of the scenario's method and stages: what they ask for are its tasks. Prices of models that
    are not asked are welcome, as a list may serve many scenarios; but not where a model that is asked has none and is
    spelled much alike.
    """
    tasks = tasks_of(prompts.hashes())
    known = sorted({*tasks, *(task.partition(".")[0] for task in tasks), EMBED})
    for name in scenario.llm.roles:
        if name not in known:
            raise InputError(
                f"there is no task `{name}` in this scenario",
                field=f"llm.roles.{name}",
                remedy=_meant(name, known, f"Tasks here: {', '.join(tasks)}, or the part before the dot for several."),
            )
    prices = scenario.llm.prices
    asked = [model for model in (*scenario.llm.models, scenario.embed.model) if model]
    for name in (name for name in prices if name not in asked):
        near = nearest(name, (model for model in asked if model not in prices))
        if near is not None:
            raise InputError(
                f"this is the price of a model that is not asked, and `{near}` has none",
                field=f"llm.prices.{name}",
                remedy=f"Did you mean `{near}`? Else add its price.",
            )


def _meant(name: str, known: Iterable[str], listed: str) -> str:
    near = nearest(name, known)
    return f"Did you mean `{near}`? {listed}" if near else listed
