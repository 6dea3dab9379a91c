"""The methods by name: those of this package, those that installed packages offer, those registered by hand.

A method of this package can be taken out by deleting its files and its lines here. One of another package is found
by an entry point of the group ``simengine.methods``, whose name is the method's kind and whose value is a
:class:`Registered`; one in a notebook is made known by :func:`register`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import or_
from typing import Annotated, Any, TypeAlias, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from simengine.data import Dataset
from simengine.errors import InputError
from simengine.llm.layers.local import Tool
from simengine.methods.agentcf import AgentCF, AgentCFSettings
from simengine.methods.agentcf_rank import STRATEGIES
from simengine.methods.agentcfpp import AgentCFpp
from simengine.methods.agentcfpp_rank import STRATEGIES as PP_STRATEGIES
from simengine.methods.agentcfpp_settings import AgentCFppSettings
from simengine.methods.interec.agent import InteRec
from simengine.methods.interec.chat_rec import searched
from simengine.methods.interec.settings import InteRecSettings
from simengine.methods.interec.workshop import WORKSHOP, Workshop
from simengine.methods.method import Method, Settings
from simengine.methods.turn import Asker

GROUP = "simengine.methods"
_PROMPTS = files("simengine.methods") / "prompts"


def _no_tools(settings: Settings, dataset: Dataset, seed: int) -> Mapping[str, Tool]:
    return {}


def _workshop(settings: InteRecSettings, dataset: Dataset, seed: int) -> Mapping[str, Tool]:
    return {WORKSHOP: Workshop(settings, dataset, seed)} if settings.recommender == "agent" else {}


def _no_corpora(settings: Settings, dataset: Dataset) -> Mapping[str, Sequence[str]]:
    return {}


@dataclass(frozen=True)
class Registered:
    """A method as it is made known.

    ``settings`` are what a scenario may say under ``method``; their ``kind: Literal[...]`` holds the method's name.
    ``make(settings, dataset, asker, seed)`` gives the method on a data set; ``prompts`` is the folder of its templates
    (``<name>.j2``). ``strategies`` are the ways in which its agents rank, with what reports call them; where a method
    names none it has one, ``B``. ``tools(settings, dataset, seed)`` are the local computations that it asks for, by
    task. ``corpora(settings, dataset)`` are texts that it searches by the scenario's embeddings (the local computation
    ``search``), by name; they are embedded once in a run.
    """

    settings: type[Settings]
    make: Callable[[Any, Dataset, Asker, int], Method]
    prompts: Traversable
    strategies: Mapping[str, str] = field(default_factory=dict)
    tools: Callable[[Any, Dataset, int], Mapping[str, Tool]] = _no_tools
    corpora: Callable[[Any, Dataset], Mapping[str, Sequence[str]]] = _no_corpora


METHODS: Mapping[str, Registered] = {
    "agentcf": Registered(AgentCFSettings, AgentCF, _PROMPTS / "agentcf", STRATEGIES),
    "agentcfpp": Registered(AgentCFppSettings, AgentCFpp, _PROMPTS / "agentcfpp", PP_STRATEGIES),
    "interec": Registered(InteRecSettings, InteRec, _PROMPTS / "interec", tools=_workshop, corpora=searched),
}
_BY_HAND: dict[str, Registered] = {}


def register(kind: str, method: Registered) -> None:
    """Make a method known in this process, or take its last definition in place of an earlier one.

    Raises :class:`InputError` where the name is taken by a method of this package, or the settings do not name it.
    """
    _check(kind, method)
    _BY_HAND[kind] = method


def known() -> Mapping[str, Registered]:
    """All methods by name; one that was registered by hand goes before one that is installed."""
    return {**METHODS, **_installed(), **_BY_HAND}


def make(settings: Settings, dataset: Dataset, asker: Asker, seed: int) -> Method:
    """The method that the settings ask for, on this data set."""
    return known()[settings.kind].make(settings, dataset, asker, seed)


def tools(settings: Settings, dataset: Dataset, seed: int) -> Mapping[str, Tool]:
    """The local computations that the method of these settings asks for, by task.

    Raises :class:`InputError` where a library that they need is not installed.
    """
    return known()[settings.kind].tools(settings, dataset, seed)


def corpora(settings: Settings, dataset: Dataset) -> Mapping[str, Sequence[str]]:
    """The texts that the method of these settings searches, by name."""
    return known()[settings.kind].corpora(settings, dataset)


def prompts(kind: str) -> Traversable:
    """The folder of a method's templates."""
    return known()[kind].prompts


def strategies(kind: str) -> Mapping[str, str]:
    """The strategies of a method by name, with what reports call them."""
    return known()[kind].strategies or {"B": f"{kind} B"}


@cache
def _installed() -> Mapping[str, Registered]:
    """The methods of other packages. They are looked for when a scenario is read, as they may import this package."""
    found = {}
    for point in sorted(entry_points(group=GROUP)):
        method = point.load()
        _check(point.name, method)
        found[point.name] = method
    return found


def _check(kind: str, method: object) -> None:
    if kind in METHODS:
        problem = "this name is taken by a method of simengine"
    elif not isinstance(method, Registered):
        problem = f"a method is made known by a Registered, not by {type(method).__name__}"
    elif _literals(method.settings) != (kind,):
        problem = f"its settings need the field `kind: Literal[{kind!r}]`"
    else:
        return
    raise InputError(problem, method=kind, remedy="see docs/your-own-method.md")


def _literals(settings: type[Settings]) -> tuple[Any, ...]:
    """What the field ``kind`` may be."""
    said = settings.model_fields.get("kind")
    return get_args(said.annotation) if said is not None else ()


class _ByKind:
    """Tells pydantic to take what is known when a scenario is read, told apart by ``kind``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        as_data = core_schema.plain_serializer_function_ser_schema(_plain, info_arg=True)
        return core_schema.no_info_plain_validator_function(_read, serialization=as_data)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        kinds = [method.settings for method in known().values()]
        either: Any = Annotated[reduce(or_, kinds), Field(discriminator="kind")] if len(kinds) > 1 else kinds[0]
        return handler(TypeAdapter(either).core_schema)

    def chosen(self, value: Any) -> type[Settings]:
        """The settings of the method that a value names; where it names none, of any, which tell what is missing."""
        methods = known()
        kind = value.get("kind") if isinstance(value, Mapping) else None
        return methods[kind if isinstance(kind, str) and kind in methods else next(iter(methods))].settings


def _plain(settings: Settings, info: SerializationInfo) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude_defaults=info.exclude_defaults)


def _read(value: Any) -> Settings:
    """Settings from what a scenario says; errors are placed as if the settings stood in the scenario themselves."""
    methods = known()
    if isinstance(value, Settings) and any(isinstance(value, method.settings) for method in methods.values()):
        return value
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if isinstance(kind, str) and kind not in methods:
        expected = " or ".join(map(repr, methods))
        wrong: Any = {"type": "literal_error", "loc": ("kind",), "input": kind, "ctx": {"expected": expected}}
        raise ValidationError.from_exception_data("method", [wrong])
    return _SETTINGS.chosen(value).model_validate(value)


_SETTINGS = _ByKind()
MethodSettings: TypeAlias = Annotated[Settings, _SETTINGS]
"""What a scenario may say under ``method``: the settings of whatever method is known, told apart by ``kind``."""
