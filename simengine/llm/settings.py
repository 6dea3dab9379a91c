"""What a scenario says under ``llm``: the backend, its address, sampling per task, limits, time-outs, retries."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from simengine.llm.request import Sampling


class Section(BaseModel):
    """A part of the settings: unknown keys are errors, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RoleSettings(Section):
    """What one task asks for otherwise. Only what is written here is changed; ``null`` means *do not send it*."""

    model: str = Field(default="", min_length=1)
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None


class LimitSettings(Section):
    """``concurrency``: how many attempts may be under way at one time."""

    concurrency: int = Field(default=64, ge=1)


class RetrySettings(Section):
    """``budget``: seconds that one call may lose to failed attempts and the pauses between them."""

    budget: float = Field(default=900, ge=0)


class LatencySettings(Section):
    """Rehearsal: answers come after log-normal delays of this median (seconds) and this sigma (of the logarithm)."""

    median: float = Field(gt=0)
    sigma: float = Field(default=0, ge=0)
    seed: int = 0


class LLMSettings(Section):
    """The whole ``llm`` section. ``base_url`` and ``api_key`` may hold ``${VAR}`` and are kept as written.

    ``timeout`` counts seconds from the moment an attempt is sent. A key of ``roles`` is a task (``reflect.user``) or
    the part before its first dot (``reflect``), which then covers all tasks of that name; the full name wins.
    """

    backend: Literal["lexical", "openai"] = "lexical"
    base_url: str = ""
    api_key: str = Field(default="", repr=False)
    model: str = ""
    temperature: float | None = Field(default=0.0, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    roles: dict[str, RoleSettings] = {}
    limits: LimitSettings = LimitSettings()
    timeout: float = Field(default=120, gt=0)
    retry: RetrySettings = RetrySettings()
    latency: LatencySettings | None = None

    @model_validator(mode="after")
    def _served(self) -> LLMSettings:
        missing = [name for name in ("base_url", "model") if not getattr(self, name)]
        if self.backend == "openai" and missing:
            raise ValueError(f"the openai backend needs {' and '.join(missing)}")
        return self

    def sampling_for(self, task: str) -> tuple[str, Sampling]:
        """The model and the sampling parameters for one task, its role's own values over the common ones."""
        chosen = {name: getattr(self, name) for name in RoleSettings.model_fields}
        for name in dict.fromkeys((task.partition(".")[0], task)):
            if (role := self.roles.get(name)) is not None:
                chosen |= role.model_dump(exclude_unset=True)
        model = chosen.pop("model")
        return model, Sampling(**chosen)
