"""Small folders as publishers give them out, for the tests of this room, and what makes two data sets the same."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from simengine.data import AtomicSettings, Dataset, load
from simengine.data.sources import convert
from simengine.data.sources.source import SourceSettings

Object = Mapping[str, Any]


def lines(path: Path, rows: Iterable[Object]) -> Path:
    """Write JSON lines; gzipped where the name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def review(user: str, item: str, time: int, rating: float = 5.0, variant: str = "") -> dict[str, Any]:
    """A review of 2023."""
    return {"rating": rating, "title": "", "text": "so so", "images": [], "asin": variant or item, "parent_asin": item,
            "user_id": user, "timestamp": time, "helpful_vote": 0, "verified_purchase": True}  # fmt: skip


def old_review(user: str, item: str, time: int, rating: float = 5.0) -> dict[str, Any]:
    """A review of 2018."""
    return {"overall": rating, "verified": True, "reviewTime": "03 1, 2013", "reviewerID": user, "asin": item,
            "reviewerName": "N", "reviewText": "so so", "summary": "", "unixReviewTime": time}  # fmt: skip


def content(dataset: Dataset) -> list[Any]:
    """Everything but names, digests, notes and source lines."""
    tables = (dataset.train, dataset.history, dataset.training_part, dataset.cases)
    return [dataset.users, *map(tuple, tables), dict(dataset.own), dataset.unit, dict(dataset.items)]


def read_back(settings: SourceSettings, out: Path, **said: Any) -> Dataset:
    """The data set of the atomic files that the source is converted to."""
    convert(settings, out)
    return load(AtomicSettings(format="atomic", path=out, **said))
