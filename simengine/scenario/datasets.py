"""Making data sets for scenarios: published data as atomic files, and cross-domain sets built from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from simengine.data.sources import Construction, Converted, Kept, Reading, SourceSettings, Watch
from simengine.data.sources import convert as convert_source
from simengine.data.sources import cross_domain as construct
from simengine.errors import InputError
from simengine.scenario.explain import expected_of

__all__ = ["Converted", "Kept", "Reading", "Watch", "convert", "cross_domain"]

_Model = TypeVar("_Model")
_OPTIONS = {"path": "SOURCE", "split": "--ratio", "split.ratio": "--ratio", "split.by": "--split-by"}
"""What the options are called whose names are not those of their settings."""


def convert(said: Mapping[str, Any], out: Path, watch: Watch) -> Converted:
    """Write the data that ``said`` names, as under ``data`` in a scenario, to a folder of atomic files."""
    settings: SourceSettings = _checked(TypeAdapter(SourceSettings), said)
    return convert_source(settings, out, watch)


def cross_domain(
    source: Path, out: Path, said: Mapping[str, Any], watch: Watch
) -> tuple[tuple[Kept, ...], tuple[str, ...]]:
    """Build a cross-domain data set in a folder; ``said`` are the numbers that differ from the paper's."""
    return construct(source, out, _checked(TypeAdapter(Construction), said), watch)


def _checked(adapter: TypeAdapter[_Model], said: Mapping[str, Any]) -> _Model:
    try:
        return adapter.validate_python(said)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        names = [str(part) for part in detail["loc"] if part not in ("amazon", "movielens", "steam")]
        own_words = detail["type"] == "value_error"
        problem = str(detail["ctx"]["error"]) if own_words else f"expected {expected_of(detail)}"
        option = _OPTIONS.get(".".join(names), f"--{names[0].replace('_', '-')}") if names else None
        given = None if own_words else detail["input"]
        raise InputError(problem, remedy="Correct this option.", option=option, value=given) from None
