"""What a scenario may say about embeddings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class EmbedSettings(BaseModel):
    """Which embedder: ``tfidf`` needs nothing, the others the name of a ``model``.

    ``openai`` asks the server of the scenario's ``llm`` section, with its limits, budget and journal;
    ``sentence-transformers`` runs a model in this process (extra ``embed``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["tfidf", "openai", "sentence-transformers"] = "tfidf"
    model: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _model_where_needed(self) -> EmbedSettings:
        if self.kind == "tfidf" and self.model is not None:
            raise ValueError("tfidf counts words and has no model: leave `model` out, or choose another `kind`")
        if self.kind != "tfidf" and self.model is None:
            example = {"openai": "text-embedding-3-small", "sentence-transformers": "all-MiniLM-L6-v2"}[self.kind]
            raise ValueError(f"say which model {self.kind} shall use, such as `model: {example}`")
        return self
