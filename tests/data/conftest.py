"""Writes small data sets for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Write files into a fresh folder and return it. In texts, ``|`` stands for a tab."""

    def write_files(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.replace("|", "\t").encode()
            (tmp_path / name).write_bytes(data)
        return tmp_path

    return write_files
