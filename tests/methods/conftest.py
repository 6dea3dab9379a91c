"""Tests of methods run scenarios many times and look at their logs: figures are painted only where a test asks."""

from __future__ import annotations

import pytest

WHOLE = "test_it_runs_to_the_end"  # of a contract, the first of its tests: there, too, the figure is painted


@pytest.fixture
def painted() -> None:
    """Asked for by tests that look at figures."""


@pytest.fixture(autouse=True)
def unpainted_unless_asked_for(request: pytest.FixtureRequest) -> None:
    if "painted" not in request.fixturenames and request.node.name != WHOLE:
        request.getfixturevalue("unpainted")
