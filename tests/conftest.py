"""Shared fixtures: where the real data sets lie, if they are here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or a skip that says how to provide it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SIMENGINE_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"real data sets are not here ({folder}); set SIMENGINE_DATA to their folder")
    return folder
