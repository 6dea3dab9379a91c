"""Libraries that some rankers need and that are installed apart: whether they are here, and what to do where not."""

from __future__ import annotations

from importlib.util import find_spec

from simengine.errors import InputError


def require(ranker: str, *modules: str) -> None:
    """Check, without importing them, that these libraries are installed.

    A ranker asks when it is made, so that a run which cannot end well says so before it has paid for anything. Raises
    :class:`~simengine.errors.InputError` with the command that installs what is missing.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise InputError(
            f"the ranker {ranker} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            "installed",
            field="rankers",
            value=ranker,
            remedy=f"Install: pip install {' '.join(missing)}",
        )
