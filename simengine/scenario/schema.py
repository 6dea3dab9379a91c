"""What a scenario may say. The sections of data, model and method belong to their rooms; here they are put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, model_validator

from simengine.data import DataSettings
from simengine.errors import InputError
from simengine.llm import LLMSettings
from simengine.methods import MethodSettings
from simengine.rankers import RANKERS
from simengine.scenario.compose import composed, variants
from simengine.scenario.yamlfile import validate, with_sets

_EVERY = re.compile(r"every (\d+(?:\.\d+)?) ?(events?|steps?|s|m|h|d|w)")


def _known_visibility(text: str) -> str:
    if text != "latest" and not _EVERY.fullmatch(text):
        raise ValueError("say latest, or a period such as `every 1d`, `every 6h`, `every 2 steps`, `every 100 events`")
    return text


def _known_ranker(name: str) -> str:
    if name not in RANKERS:
        raise ValueError(f"there is no such ranker; there are {', '.join(RANKERS)}")
    return name


VisibilityText: TypeAlias = Annotated[str, AfterValidator(_known_visibility)]


class Section(BaseModel):
    """A section of a scenario: unknown keys are errors, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Batch(Section):
    """``batch``: so many source rows read one snapshot, as AgentCF's authors ran it."""

    batch: PositiveInt


class EngineSettings(Section):
    """How events are executed. ``visibility`` says when others see an agent's versions, by the kind of the agent."""

    schedule: Literal["chronological"] | Batch = "chronological"
    visibility: dict[Literal["users", "items"], VisibilityText] = {}
    window: PositiveInt = 4096
    on_error: Literal["skip", "stop"] = "skip"


class OptimizeStage(Section):
    """Re-enact the training interactions."""


class RankStage(Section):
    """Let agents rank the candidates of each test case, beside ``rankers`` that are no agents.

    ``when: after`` ranks behind the stage before, as the papers do; ``when: live`` at the time of the target, so that
    nothing later can be in a memory.
    """

    strategies: Annotated[list[Literal["B"]], Field(min_length=1)] = ["B"]
    rankers: list[Annotated[str, AfterValidator(_known_ranker)]] = ["random", "pop"]
    repeats: PositiveInt = 1
    k: Annotated[list[PositiveInt], Field(min_length=1)] = [1, 5, 10]
    when: Literal["after", "live"] = "after"


class Stage(Section):
    """One stage: a mapping with a single key that names its kind."""

    optimize: OptimizeStage | None = None
    rank: RankStage | None = None

    @model_validator(mode="after")
    def _one(self) -> Stage:
        if (self.optimize is None) == (self.rank is None):
            raise ValueError("a stage has exactly one key and a mapping behind it: `optimize: {}` or `rank: {}`")
        return self


class Scenario(Section):
    """A whole scenario. ``prompts`` names files to use in place of packaged templates."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    seed: int = 0
    data: DataSettings
    llm: LLMSettings = LLMSettings()
    engine: EngineSettings = EngineSettings()
    method: MethodSettings
    stages: Annotated[list[Stage], Field(min_length=1)]
    prompts: dict[str, Path] = {}

    @model_validator(mode="after")
    def _stages_fit(self) -> Scenario:
        if sum(stage.optimize is not None for stage in self.stages) > 1:
            raise ValueError("a scenario re-enacts its interactions once, but there are several `optimize` stages")
        first = self.stages[0].rank
        if first is not None and first.when == "live":
            raise ValueError("a ranking `when: live` stands among the interactions of an `optimize` stage before it")
        return self

    def semantic(self) -> dict[str, Any]:
        """What can change the outcome, as plain data: all but names, places, time-outs, limits and the like.

        What says the default is left out, so that a setting which a later version adds does not part old runs from
        their scenario.
        """
        said = self.model_dump(
            mode="json",
            exclude_defaults=True,
            exclude={
                "name": True,
                "seed": True,  # it stands in the header by itself, as do the prompts
                "prompts": True,
                "data": {"path": True, "negatives": True, "items": {"path"}},
                "llm": set(LLMSettings.OUTCOME_NEUTRAL),
                "engine": {"window", "on_error"},
                "stages": {"__all__": {"rank": {"k", "rankers"}}},  # these only measure what the log holds
            },
        )
        # a section of which nothing is left says no more than one that was never written
        return {name: value for name, value in said.items() if value != {}}


class ScenarioFile(Scenario):
    """What a scenario's file may say beside the scenario: a file that it extends, and variants of itself.

    ``extends`` is relative to the file. ``variants`` maps a name to changes, which are laid over the scenario key by
    key; each variant is run into a folder of its own.
    """

    extends: Path | None = None
    variants: dict[str, dict[str, Any]] = {}


Read: TypeAlias = tuple[Scenario, dict[str, Any]]


def read(path: str | Path, sets: Sequence[str] = (), text: str | None = None) -> Read:
    """The scenario in a YAML file with ``--set`` entries laid over it, and its plain data.

    Raises :class:`~simengine.errors.InputError` that names every problem by file, line, column, field and value; and
    where the file has variants, which :func:`read_all` reads.
    """
    found = read_all(path, sets, text)
    if list(found) != [""]:
        raise InputError(
            "this scenario has variants, and one scenario is wanted here",
            file=str(path),
            field="variants",
            remedy=f"Its variants are {', '.join(found)}; take them out, or run the file with `simengine run`.",
        )
    return found[""]


def read_all(path: str | Path, sets: Sequence[str] = (), text: str | None = None) -> dict[str, Read]:
    """The variants of a scenario file by name, each like :func:`read`; the name is empty where there are none.

    ``--set`` entries are laid over the file and again over each variant, so that they win.
    """
    root = with_sets(composed(Path(path), text), sets)
    own = [entry for entry in sets if not entry.lstrip().startswith("variants.")]
    return {name: validate(with_sets(tree, own), Scenario) for name, tree in variants(root)}


def every(text: str) -> tuple[float, str] | None:
    """A visibility as number and unit, or ``None`` for latest."""
    found = _EVERY.fullmatch(text)
    return (float(found[1]), found[2].rstrip("s") or "s") if found else None
