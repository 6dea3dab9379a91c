"""What all tests share: where the real data sets lie, if they are here, and that no example has to be quick."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # how long an example takes is the machine's affair, not ours
settings.load_profile("patient")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or a skip that says how to provide it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SIMENGINE_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"real data sets are not here ({folder}); set SIMENGINE_DATA to their folder")
    return folder


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are composed, and their files stay empty: to lay them out and paint them is a third of a small run."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args, **options: None)
