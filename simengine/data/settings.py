"""What a scenario may say under ``data``: files in one of several forms, an invented market or audience."""

from __future__ import annotations

import codecs
import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from simengine.data.catalogue import INTERESTS, shelves
from simengine.data.catalogue_words import DOMAINS

Clock: TypeAlias = Literal["step", "time"]


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        raise ValueError(
            "Python knows no such encoding; utf-8, latin-1, cp1252 and gbk are some that it knows"
        ) from None
    return name


def _one_character(text: str) -> str:
    if len(text) != 1 or text in '"\r\n':
        raise ValueError("a separator is one character, which is no quote and no line end")
    return text


def _shares(ratio: tuple[float, ...]) -> tuple[float, ...]:
    if len(ratio) != 3 or not math.isclose(sum(ratio), 1) or not ratio[0] or not ratio[2]:
        raise ValueError(
            "the shares are those of training, validation and test; they add up to 1, and only that of validation may "
            "be 0, as in [0.8, 0.1, 0.1]"
        )
    return ratio


def _sold(domains: tuple[str, ...]) -> tuple[str, ...]:
    if not domains or len(set(domains)) < len(domains) or not set(domains) <= set(DOMAINS):
        raise ValueError(f"the domains of a market are some of {', '.join(DOMAINS)}, each named once")
    return domains


class Ratio(BaseModel):
    """Shares of training, validation and test, which add up to 1: on the global time line, all users together, or
    ``by: user``, of the interactions of each. Of the test part every interaction is a test case, or only each user's
    ``first``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: Annotated[tuple[NonNegativeFloat, ...], AfterValidator(_shares)]
    by: Literal["timeline", "user"] = "timeline"
    cases: Literal["all", "first"] = "all"


class LogSettings(BaseModel):
    """What may be said of every log of interactions.

    ``noun`` is what prompts call an item. ``clock: step`` lets the k-th interaction of each user happen at k,
    ``clock: time`` takes the timestamps; left out, the data decide. ``domains`` keeps the items of these domains and
    the rows about them, then ``min_rating`` the rows rated so high or higher, then ``core: k`` the users and items that
    have k rows or more when all others are left out, and of the item table these items alone, then
    ``min_interactions`` the users who have so many rows or more, then ``users`` the first so many users in the stated
    order; after the last two an item may have fewer than k rows. ``split`` is ``leave_one_out`` (user by user: the
    last for testing, the last but one to validate), which a whole log gets where nothing is said, or
    ``{ratio: [train, validation, test]}``, with ``by: user`` of each user's own interactions: all of its test part are
    test cases, with ``cases: first`` only the first of each user.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    noun: str = "item"
    clock: Clock | None = None
    users: PositiveInt | None = None
    domains: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    min_rating: float | None = None
    core: PositiveInt | None = None
    min_interactions: PositiveInt = 1
    split: Literal["leave_one_out"] | Ratio | None = None

    @property
    def needs_time(self) -> bool:
        """Whether these settings can be followed only where there are timestamps."""
        return self.clock == "time" or (isinstance(self.split, Ratio) and self.split.by == "timeline")


class AtomicSettings(LogSettings):
    """A folder of RecBole atomic files: split files (``*.train.inter`` ...) used as given, or one ``*.inter``.

    ``path`` is relative to the working directory, ``negatives`` to ``path``: a JSON-lines file of recorded negatives
    (``user_id, pos_item_id, neg_item_ids``). ``domain`` is the column of the item table that tells an item's domain,
    by default ``domain`` where there is one.
    """

    format: Literal["atomic"]
    path: Path
    negatives: Path | None = None
    domain: str | None = None


class PublishedSettings(LogSettings):
    """A folder of files as their publishers give them out. ``path`` is relative to the working directory."""

    path: Path


class AmazonSettings(PublishedSettings):
    """Amazon Reviews of 2018 or 2023, below ``path`` in any folder: for each domain, which its files are named after,
    ``Books.jsonl`` (or ``Books.json``, ``Books_5.json``) and ``meta_Books.jsonl``, plain or gzipped. ``domains`` says
    which are read; the others are not opened."""

    format: Literal["amazon"]


class MovieLensSettings(PublishedSettings):
    """MovieLens: ``u.data`` and ``u.item``, ``ratings.dat`` and ``movies.dat``, or ``ratings.csv``, ``movies.csv``."""

    format: Literal["movielens"]


class SteamSettings(PublishedSettings):
    """Steam: a file of reviews with ``reviews`` in its name (JSON lines or Python literals), and one of games with
    ``games`` in its name (the same, or CSV); plain or gzipped."""

    format: Literal["steam"]


class LogColumns(BaseModel):
    """The names that a log's columns have in its source. Without ``time`` the order of rows is that of time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str
    item: str
    time: str | None = None
    rating: str | None = None

    @model_validator(mode="after")
    def _different(self) -> LogColumns:
        seen: dict[str, str] = {}
        for role, name in self.named().items():
            if name in seen:
                raise ValueError(f"the column {name} cannot be both {seen[name]} and {role}")
            seen[name] = role
        return self

    def named(self) -> dict[str, str]:
        """The name for each role that has one."""
        return {role: name for role, name in self if name is not None}


class ItemColumns(BaseModel):
    """The names that an item table's columns have in its source. Its other columns keep the names that they have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    category: str | None = None
    domain: str | None = None


class ItemFile(ItemColumns):
    """An item table in a file of the log's own format. ``path`` is relative to the folder of the log."""

    path: Path


class MappedSettings(LogSettings):
    """A log of one row an interaction, whose columns have names of the user's own."""

    columns: LogColumns

    @model_validator(mode="after")
    def _columns_suffice(self) -> MappedSettings:
        wants = (
            ("clock: time", "time", self.clock == "time"),
            ("a ratio split", "time", self.needs_time),
            ("min_rating", "rating", self.min_rating is not None),
        )
        for what, role, wanted in wants:
            if wanted and role not in self.columns.named():
                raise ValueError(f"{what} needs a column: say which under columns, as in `{role}: NAME`")
        return self


class FrameSettings(MappedSettings):
    """A data frame handed over in Python, with an item table or without."""

    item_columns: ItemColumns | None = None


class CsvSettings(MappedSettings):
    """A CSV file with a header, quoted as RFC 4180 says. ``path`` is relative to the working directory."""

    format: Literal["csv"]
    path: Path
    items: ItemFile | None = None
    separator: Annotated[str, AfterValidator(_one_character)] = ","
    encoding: Annotated[str, AfterValidator(_known_encoding)] = "utf-8"


class ParquetSettings(MappedSettings):
    """A Parquet file; needs the extra ``parquet``. ``path`` is relative to the working directory."""

    format: Literal["parquet"]
    path: Path
    items: ItemFile | None = None


class GivenSettings(BaseModel):
    """A data set that is handed over in Python, made by ``from_frame``; a scenario's file only says so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["frame"]
    noun: str = "item"


class Fashion(BaseModel):
    """An interest that comes into fashion and goes out again, among some of a market's users.

    From ``from_day`` (days since the market opened) the liking of the interest rises among the ``share`` of users who
    follow the fashion, is ``strength`` times what it was after half of the ``days``, and is back at their end. With
    ``domain`` it is the interest's items of that domain only. Those who follow are drawn by lot; with ``among`` they
    are the users who like that interest most, so that people of one taste follow one fashion.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    interest: str
    share: Annotated[float, Field(gt=0, le=1)]
    from_day: NonNegativeFloat
    days: PositiveFloat
    strength: Annotated[float, Field(ge=1)] = 20.0
    domain: str | None = None
    among: str | None = None

    def check(self, interests: tuple[str, ...], domains: tuple[str, ...]) -> None:
        """Raise ``ValueError`` where a market of these interests and domains does not know what is named here."""
        for what, name, known in (
            ("interests", self.interest, interests),
            ("interests", self.among, interests),
            ("domains", self.domain, domains),
        ):
            if name is not None and name not in known:
                raise ValueError(f"{name} is not among the {what} of this market, which are {', '.join(known)}")


class MarketSettings(BaseModel):
    """An invented market: users with latent tastes take items of an invented catalogue.

    ``interactions`` is the number per user, the held-out last two included. ``interests`` is how many kinds of things
    there are to like, in each of ``domains``: albums, films, books, games, the first so many or those named. Of an item
    its date, price, makers and a description are told too, by which nobody's taste goes. ``skew`` is the exponent of
    the Zipf law by which items are shown (0: all alike), ``sharpness`` how strongly a user's interests differ (0: not
    at all), ``carry`` the chance that a user likes an interest the same in all domains, not in each as it comes.
    ``planted: false`` makes the null market: tastes and fashions are drawn as before, but nobody follows them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["market"]
    users: PositiveInt = 40
    items: PositiveInt = 80
    interests: Annotated[int, Field(ge=1, le=len(INTERESTS))] = 6
    domains: Annotated[int, Field(ge=1, le=len(DOMAINS))] | Annotated[tuple[str, ...], AfterValidator(_sold)] = 1
    interactions: Annotated[int, Field(ge=2)] = 8
    seed: int = 0
    noun: str = "item"
    clock: Clock = "step"
    skew: NonNegativeFloat = 1.0
    sharpness: NonNegativeFloat = 6.0
    carry: Annotated[float, Field(ge=0, le=1)] = 1.0
    fashions: tuple[Fashion, ...] = ()
    planted: bool = True

    @property
    def sold(self) -> tuple[str, ...]:
        """The names of the domains."""
        return DOMAINS[: self.domains] if isinstance(self.domains, int) else self.domains

    @model_validator(mode="before")
    @classmethod
    def _noun_of_one_domain(cls, data: Any) -> Any:
        if isinstance(data, dict) and "noun" not in data and data.get("domains", 1) == 1:
            return {**data, "noun": DOMAINS[0]}
        return data

    @model_validator(mode="after")
    def _whole(self) -> MarketSettings:
        if self.items <= self.interactions:
            raise ValueError(
                f"{self.items} items do not suffice for {self.interactions} interactions of a user and a negative"
            )
        if len(self.sold) > 1:
            fewest = min(map(len, shelves(self.items, self.interests, len(self.sold))))
            if fewest <= self.interactions:
                raise ValueError(
                    f"a domain has only {fewest} of the {self.items} items, which do not suffice for "
                    f"{self.interactions} interactions of a user and a negative"
                )
        for fashion in self.fashions:
            fashion.check(INTERESTS[: self.interests], self.sold)
        return self


class GivenItems(BaseModel):
    """An item table without a log: the ``*.item`` of a folder of atomic files, or the games of a folder of Steam, in a
    file with ``games`` in its name. ``path`` is relative to the working directory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["atomic", "steam"]
    path: Path


class AudienceSettings(BaseModel):
    """An invented audience for the items of a given table: users with latent tastes for its categories take items.

    ``interactions`` is the number per user, the held-out last two included. ``skew`` is the exponent of the Zipf law by
    which items are shown (0: all alike), ``sharpness`` how strongly a user's likings of categories differ (0: not at
    all).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["audience"]
    items: GivenItems
    users: PositiveInt = 40
    interactions: Annotated[int, Field(ge=2)] = 8
    seed: int = 0
    noun: str = "item"
    clock: Clock = "step"
    skew: NonNegativeFloat = 1.0
    sharpness: NonNegativeFloat = 6.0


DataSettings: TypeAlias = Annotated[
    AtomicSettings
    | CsvSettings
    | ParquetSettings
    | AmazonSettings
    | MovieLensSettings
    | SteamSettings
    | GivenSettings
    | MarketSettings
    | AudienceSettings,
    Field(discriminator="format"),
]
"""One of these, told apart by ``format``."""
