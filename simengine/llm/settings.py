"""What a scenario says under ``llm``: the backend, its address, sampling per task, limits, budget, retries."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from simengine.llm.request import Sampling
from simengine.llm.tokens import EMBED


class Section(BaseModel):
    """A part of the settings: unknown keys are errors, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RoleSettings(Section):
    """What one task asks for otherwise. Only what is written here is changed; ``null`` means *do not send it*.

    ``mode: offline`` asks through the server's Batch API: answers come within a day, for less.
    """

    model: str = Field(default="", min_length=1)
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    output: Literal["text", "json"] = "text"
    mode: Literal["online", "offline"] = "online"


class LimitSettings(Section):
    """What the endpoint allows, where that is known.

    ``rpm`` and ``tpm`` are requests and tokens per minute, counted over a sliding window of ``window`` seconds (the
    server's own: a limit of 600 per minute over 10 seconds is 100 in any 10 seconds). ``concurrency`` is how many
    attempts may be under way at one time. Limits that are not given are learned from headers and refusals.
    """

    rpm: float | None = Field(default=None, gt=0)
    tpm: float | None = Field(default=None, gt=0)
    concurrency: int = Field(default=64, ge=1)
    window: float = Field(default=60, gt=0)


class RetrySettings(Section):
    """How long failing calls are tried again.

    ``budget`` is the seconds that one call may lose to failed attempts and the pauses between them: more than a quarter
    of an hour, so that an overload of that length is survived. Where a server asks
    for a pause of more than ``max_wait`` seconds, the run stops, to be resumed later.
    """

    budget: float = Field(default=1200, ge=0)
    max_wait: float = Field(default=300, ge=0)


class BudgetSettings(Section):
    """The most that a run may come to, what its journal holds already included: calls, tokens, US dollars."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)


class Price(Section):
    """US dollars per million tokens of prompt (``input``) and reply (``output``)."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class BatchSettings(Section):
    """Packing, where the endpoint takes several prompts in one request: at most ``size``, gathered for ``linger`` s."""

    size: int = Field(default=16, ge=1)
    linger: float = Field(default=0.02, ge=0)


class OfflineSettings(Section):
    """How batches of ``mode: offline`` are watched: pauses between two looks grow from a second to ``poll`` seconds."""

    poll: float = Field(default=60, gt=0)


class LatencySettings(Section):
    """Rehearsal: answers come after log-normal delays of this median (seconds) and this sigma (of the logarithm)."""

    median: float = Field(gt=0)
    sigma: float = Field(default=0, ge=0)
    seed: int = 0


_EXAMPLES = {"base_url": "http://127.0.0.1:8000/v1", "model": "NAME"}


class LLMSettings(Section):
    """The whole ``llm`` section. ``base_url`` and ``api_key`` may hold ``${VAR}`` and are kept as written.

    ``api`` is the part of the protocol that is spoken: ``chat``, or ``completions`` for text completions, where a
    prompt is the contents of all messages with blank lines between them. ``timeout`` counts seconds from the moment an
    attempt is sent. A key of ``roles`` is a task (``reflect.user``) or the part before its first dot (``reflect``),
    which then covers all tasks of that name; the full name wins. ``output: json`` asks for answers as JSON, held to a
    schema where the server can (a part of ``chat`` alone); an answer that is plain text all the same is read, too.
    ``merge_roles`` sends system texts inside the first user message and joins neighbours of one role; it is also
    learned from a server that refuses them. ``reasoning_as_answer`` takes the reasoning of a reply without content for
    its text. ``trust_env`` lets HTTP_PROXY, HTTPS_PROXY and NO_PROXY (and the like) decide about proxies; without it
    none is used. ``prices`` are by model.
    """

    backend: Literal["lexical", "openai"] = "lexical"
    api: Literal["chat", "completions"] = "chat"
    base_url: str = ""
    api_key: str = Field(default="", repr=False)
    model: str = ""
    temperature: float | None = Field(default=0.0, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    output: Literal["text", "json"] = "text"
    roles: dict[str, RoleSettings] = {}
    merge_roles: bool = False
    reasoning_as_answer: bool = False
    limits: LimitSettings = LimitSettings()
    timeout: float = Field(default=120, gt=0)
    retry: RetrySettings = RetrySettings()
    batch: BatchSettings = BatchSettings()
    offline: OfflineSettings = OfflineSettings()
    budget: BudgetSettings = BudgetSettings()
    prices: dict[str, Price] = {}
    trust_env: bool = False
    latency: LatencySettings | None = None

    OUTCOME_NEUTRAL: ClassVar[frozenset[str]] = frozenset(
        {
            "base_url", "api_key", "merge_roles", "limits", "timeout", "retry", "batch", "offline", "budget",
            "prices", "trust_env", "latency",
        }
    )  # fmt: skip
    """The keys that cannot change what a model is asked or what its answer says: a run may be resumed with others.

    So is ``mode`` in each of ``roles``.
    """

    @model_validator(mode="after")
    def _served(self) -> LLMSettings:
        missing = [name for name in ("base_url", "model") if not getattr(self, name)]
        if self.backend == "openai" and missing:
            error = ValueError(f"the openai backend needs {' and '.join(missing)}")
            error.add_note(f"Add {', '.join(f'`{name}: {_EXAMPLES[name]}`' for name in missing)} under `llm`.")
            raise error
        return self

    @model_validator(mode="after")
    def _embedded_at_once(self) -> LLMSettings:
        if self.is_offline(EMBED):
            raise ValueError(f"roles.{EMBED}: embeddings are needed at once, so they have no `mode: offline`")
        return self

    @model_validator(mode="after")
    def _priced(self) -> LLMSettings:
        unpriced = [model for model in self.models if model not in self.prices]
        if self.budget.usd is not None and self.backend != "lexical" and unpriced:
            raise ValueError(f"a budget in usd needs llm.prices of every model; there is none of {', '.join(unpriced)}")
        return self

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that a task may be asked of, each once."""
        return tuple(dict.fromkeys((self.model, *(role.model for role in self.roles.values() if role.model))))

    def sampling_for(self, task: str) -> tuple[str, Sampling]:
        """The model and the sampling parameters for one task, its role's own values over the common ones."""
        chosen = self._chosen_for(task)
        model = chosen.pop("model")
        del chosen["output"], chosen["mode"]
        return model, Sampling(**chosen)

    def json_for(self, task: str) -> bool:
        """Whether the answer to a task is asked for as JSON."""
        return bool(self._chosen_for(task)["output"] == "json")

    def is_offline(self, task: str) -> bool:
        """Whether a task is asked for through the Batch API."""
        return bool(self._chosen_for(task)["mode"] == "offline")

    def _chosen_for(self, task: str) -> dict[str, Any]:
        """What holds for a task, by the names in a role; ``mode`` is said by roles alone."""
        chosen = {name: getattr(self, name, field.default) for name, field in RoleSettings.model_fields.items()}
        for name in dict.fromkeys((task.partition(".")[0], task)):
            if (role := self.roles.get(name)) is not None:
                chosen |= role.model_dump(exclude_unset=True)
        return chosen
