"""What a scenario may say under ``data``: a folder of atomic files, or a small invented market."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, model_validator

Clock: TypeAlias = Literal["step", "time"]


class AtomicSettings(BaseModel):
    """A folder of RecBole atomic files: split files (``*.train.inter`` ...) used as given, or one ``*.inter``.

    ``path`` is relative to the working directory, ``negatives`` to ``path``. ``noun`` is what prompts call an item.
    ``clock: step`` lets the k-th interaction of each user happen at k, ``clock: time`` takes the timestamps; left out,
    the data decide. ``users`` keeps the first so many users in the stated order, ``min_rating`` the rows rated so high
    or higher. ``negatives`` is a JSON-lines file of recorded negatives (``user_id, pos_item_id, neg_item_ids``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["atomic"]
    path: Path
    noun: str = "item"
    clock: Clock | None = None
    users: PositiveInt | None = None
    negatives: Path | None = None
    min_rating: float | None = None


class MarketSettings(BaseModel):
    """An invented market: users with latent interests over an invented catalogue of albums.

    ``interactions`` is the number per user, the held-out last two included. ``skew`` is the exponent of the Zipf law of
    item popularity (0: all alike), ``sharpness`` how strongly a user's interests differ (0: not at all).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["market"]
    users: PositiveInt = 40
    items: PositiveInt = 80
    interests: Annotated[int, Field(ge=1, le=12)] = 6
    interactions: Annotated[int, Field(ge=2)] = 8
    seed: int = 0
    noun: str = "album"
    clock: Clock = "step"
    skew: NonNegativeFloat = 1.0
    sharpness: NonNegativeFloat = 6.0

    @model_validator(mode="after")
    def _items_suffice(self) -> MarketSettings:
        if self.items <= self.interactions:
            raise ValueError(
                f"{self.items} items do not suffice for {self.interactions} interactions of a user and a negative"
            )
        return self


DataSettings: TypeAlias = Annotated[AtomicSettings | MarketSettings, Field(discriminator="format")]
"""Either of the two, told apart by ``format``."""
