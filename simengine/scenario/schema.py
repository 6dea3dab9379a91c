"""What a scenario may say. The sections of data, model and method belong to their rooms; here they are put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PositiveInt,
    Tag,
    model_validator,
)

from simengine.data import DataSettings
from simengine.embed import EmbedSettings
from simengine.errors import InputError
from simengine.llm import LLMSettings
from simengine.methods import MethodSettings, PlantSettings, strategies
from simengine.methods.studies.advertising import AdvertisingSettings
from simengine.methods.studies.chat import ChatSettings
from simengine.methods.studies.cold_start import ColdStartSettings
from simengine.methods.studies.converse import ConverseSettings
from simengine.methods.studies.demonstrate import DemonstrateSettings
from simengine.methods.studies.discussion import DiscussionSettings
from simengine.methods.studies.one_turn import OneTurnSettings
from simengine.methods.studies.probe import ProbeSettings
from simengine.methods.studies.reviews import ReviewsSettings
from simengine.rankers import known_ranker
from simengine.scenario.compose import composed, variants
from simengine.scenario.published import Published
from simengine.scenario.yamlfile import validate, with_sets

_TALKS = ("converse", "one_turn", "chat", "demonstrate")
_EVERY = re.compile(r"every (\d+(?:\.\d+)?) ?(events?|steps?|s|m|h|d|w)")


def _known_visibility(text: str) -> str:
    if text != "latest" and not _EVERY.fullmatch(text):
        raise ValueError("say latest, or a period such as `every 1d`, `every 6h`, `every 2 steps`, `every 100 events`")
    return text


RankerName: TypeAlias = Annotated[str, AfterValidator(known_ranker)]
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


class RecordedRanker(Section):
    """Rankings that were made elsewhere: a JSON-lines file, relative to the data's folder, and what to call them."""

    name: Annotated[str, Field(min_length=1)]
    recorded: Path


def _ranker_form(said: Any) -> str:
    return "name" if isinstance(said, str) else "recorded"


RankerEntry: TypeAlias = Annotated[
    Annotated[RankerName, Tag("name")] | Annotated[RecordedRanker, Tag("recorded")], Discriminator(_ranker_form)
]


class RankingStage(Section):
    """What all stages of rankings say: how agents rank, and which ``rankers`` that are no agents stand beside them."""

    strategies: Annotated[list[str], Field(min_length=1)] = ["B"]
    rankers: list[RankerEntry] = ["random", "pop"]
    k: Annotated[list[PositiveInt], Field(min_length=1)] = [1, 5, 10]

    @property
    def live(self) -> bool:
        """Whether the rankings stand among the interactions of the stage before."""
        return False


class RankStage(RankingStage):
    """Let agents rank the candidates of each test case, ``repeats`` times.

    ``candidates: fresh`` draws the negatives of each repeat anew, uniformly from what is not known of the user; else
    they are those of the data. ``when: after`` ranks behind the stage before, as the papers do; ``when: live`` at the
    time of the target, so that nothing later can be in a memory; ``when: [2.5, 3.5]`` at each of these times of the
    data's clock, so that one can see how an answer changes.
    """

    repeats: PositiveInt = 1
    candidates: Literal["given", "fresh"] = "given"
    when: Literal["after", "live"] | Annotated[list[int | float], Field(min_length=1)] = "after"

    @property
    def live(self) -> bool:
        """Whether the rankings stand among the interactions of the stage before."""
        return self.when != "after"


class BiasStage(RankingStage):
    """Let agents rank each test case under conditions that should not matter (section 3.3.2 of AgentCF).

    ``by: position`` shows the target at each place of the list in turn. ``by: popularity`` draws the negatives from the
    rarest, the middle and the most popular third of the items, by their training interactions.
    """

    by: Literal["position", "popularity"]
    k: Annotated[list[PositiveInt], Field(min_length=1)] = [10]


class Stage(Section):
    """One stage: a mapping with a single key that names its kind."""

    optimize: OptimizeStage | None = None
    rank: RankStage | None = None
    bias: BiasStage | None = None
    cold_start: ColdStartSettings | None = None
    advertising: AdvertisingSettings | None = None
    probe: ProbeSettings | None = None
    reviews: ReviewsSettings | None = None
    discussion: DiscussionSettings | None = None
    converse: ConverseSettings | None = None
    chat: ChatSettings | None = None
    demonstrate: DemonstrateSettings | None = None
    one_turn: OneTurnSettings | None = None

    @model_validator(mode="after")
    def _one(self) -> Stage:
        if len(self._said()) != 1:
            raise ValueError("a stage has exactly one key, its kind, and a mapping behind it, as in `rank: {}`")
        return self

    @property
    def kind(self) -> str:
        """The stage's key."""
        return next(iter(self._said()))

    @property
    def settings(self) -> BaseModel:
        """What stands behind the key."""
        return next(iter(self._said().values()))

    def _said(self) -> dict[str, BaseModel]:
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}


class Scenario(Section):
    """A whole scenario. ``prompts`` names files to use in place of packaged templates.

    ``plant`` gives users preferences that can be followed. ``fork`` names the variant that this one is forked from, so
    that only what its changes reach is paid for. ``published`` quotes a paper's numbers, to be printed beside ours.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    seed: int = 0
    data: DataSettings
    llm: LLMSettings = LLMSettings()
    embed: EmbedSettings = EmbedSettings()
    engine: EngineSettings = EngineSettings()
    method: MethodSettings
    stages: Annotated[list[Stage], Field(min_length=1)]
    prompts: dict[str, Path] = {}
    plant: PlantSettings = PlantSettings()
    fork: str | None = None
    published: Published | None = None

    @model_validator(mode="after")
    def _strategies_known(self) -> Scenario:
        known = strategies(self.method.kind)
        for stage in self.stages:
            said = stage.settings.strategies if isinstance(stage.settings, RankingStage) else []
            for name in said:
                if name not in known:
                    raise ValueError(
                        f"{self.method.kind} has no strategy {name!r} to rank by; it has {', '.join(known)}"
                    )
        return self

    @model_validator(mode="after")
    def _stages_fit(self) -> Scenario:
        if sum(stage.optimize is not None for stage in self.stages) > 1:
            raise ValueError("a scenario re-enacts its interactions once, but there are several `optimize` stages")
        alien = next((it.kind for it in self.stages if (it.kind in _TALKS) != (self.method.kind == "interec")), None)
        if alien is not None:
            told = ", ".join(f"`{kind}`" for kind in _TALKS)
            error = ValueError(f"the method `{self.method.kind}` does not play a stage `{alien}`")
            error.add_note(f"The stages {told} are those of the method `interec`, which plays no others.")
            raise error
        first = self.stages[0].rank
        if first is not None and first.live:
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
                "published": True,
                "fork": True,
                "seed": True,  # it stands in the header by itself, as do the prompts
                "prompts": True,
                "data": {"path": True, "negatives": True, "items": {"path"}},
                "llm": {**dict.fromkeys(LLMSettings.OUTCOME_NEUTRAL, True), "roles": {"__all__": {"mode"}}},
                "engine": {"window", "on_error"},
                "stages": {"__all__": {kind: {"k", "rankers"} for kind in ("rank", "bias")}},  # these only measure
            },
        )
        for task, role in self.llm.roles.items():
            if role.model_fields_set == {"mode"}:
                del said["llm"]["roles"][task]
                said["llm"] = {name: value for name, value in said["llm"].items() if value != {}}
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
    own = [entry for entry in sets if not re.match(r"\s*variants\s*[.=]", entry)]
    return {name: validate(with_sets(tree, own), Scenario) for name, tree in variants(root)}


def every(text: str) -> tuple[float, str] | None:
    """A visibility as number and unit, or ``None`` for latest."""
    found = _EVERY.fullmatch(text)
    return (float(found[1]), found[2].rstrip("s") or "s") if found else None
