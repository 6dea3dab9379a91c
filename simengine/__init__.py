"""simengine re-enacts recommender-system interactions with language-model agents: run, replay, measure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simengine.data.mapped import from_frame
    from simengine.errors import Divergence, InputError, LogError, RunStopped, SimengineError
    from simengine.llm.backends.scripted import Scripted
    from simengine.llm.request import Completion, LanguageModel, Request
    from simengine.scenario.face import (
        check,
        compare,
        decay,
        fork,
        fork_async,
        read_scenario,
        replay,
        replay_async,
        resume,
        resume_async,
        run,
        run_async,
        run_variants,
        run_variants_async,
    )
    from simengine.scenario.opened import Run, Table
    from simengine.scenario.schema import Scenario
    from simengine.scenario.spread import Spread

    __version__: str

_FACE = "simengine.scenario.face"
_ERRORS = "simengine.errors"
_HOME = {
    **dict.fromkeys(("check", "compare", "decay", "fork", "fork_async", "read_scenario"), _FACE),
    **dict.fromkeys(("replay", "replay_async", "resume", "resume_async"), _FACE),
    **dict.fromkeys(("run", "run_async", "run_variants", "run_variants_async"), _FACE),
    **dict.fromkeys(("Run", "Table"), "simengine.scenario.opened"),
    **dict.fromkeys(("Completion", "LanguageModel", "Request"), "simengine.llm.request"),
    **dict.fromkeys(("Divergence", "InputError", "LogError", "RunStopped", "SimengineError"), _ERRORS),
    "from_frame": "simengine.data.mapped",
    "Scenario": "simengine.scenario.schema",
    "Scripted": "simengine.llm.backends.scripted",
    "Spread": "simengine.scenario.spread",
}

__all__ = [
    "Completion",
    "Divergence",
    "InputError",
    "LanguageModel",
    "LogError",
    "Request",
    "Run",
    "RunStopped",
    "Scenario",
    "Scripted",
    "SimengineError",
    "Spread",
    "Table",
    "__version__",
    "check",
    "compare",
    "decay",
    "fork",
    "fork_async",
    "from_frame",
    "read_scenario",
    "replay",
    "replay_async",
    "resume",
    "resume_async",
    "run",
    "run_async",
    "run_variants",
    "run_variants_async",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that ``import simengine`` is quick."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("simengine")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'simengine' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
