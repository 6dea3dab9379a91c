"""What the tests of commands share: the program, called in this process, in an empty folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from console import Command

from simengine.cli.main import main


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Command]:
    """Call the program, on a console of 120 columns; exit status, stdout and stderr."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["simengine", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    yield call
    structlog.reset_defaults()
